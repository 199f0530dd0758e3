"""Old staged files are collected, whoever staged them, unless their rows are nowhere else."""

import asyncio
from dataclasses import replace

import pytest
from tests.consumer.harness import CONFIG, ConsumerHarness, P, harness

from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset, Record
from binwright.tables.ports import Footer
from binwright.testing.records import in_columns

pytestmark = pytest.mark.looptime(noop_cycles=1)

OLD_S = 3_000.0
SHORT = replace(CONFIG, staged_retention_s=OLD_S)
NAME = "7-1-1-0a1b2c3d.parquet"


async def leave(b: ConsumerHarness, topic: str = "orders", topic_id: str = "orders-1") -> None:
    """Stage offsets 0 to 9 of partition 0, as another process did that never announced them."""
    rows = {TopicPartition(topic, 0): [Record(o, 0, None, b"x") for o in range(10)]}
    await b.staging.write(topic, NAME, in_columns(rows), Footer(topic_id, 10, {0: (0, 10)}))


async def test_files_that_were_not_deleted_are_collected_by_age() -> None:
    async with harness({"orders": 1}, SHORT) as b:
        b.topics.produce(P, *[b"x"] * 10)
        await leave(b)
        await asyncio.sleep(OLD_S)
        assert b.staging.rows("orders", NAME) is not None
        await asyncio.sleep(3_600)
        assert b.staging.rows("orders", NAME) is None


async def test_files_of_a_topic_that_is_not_read_or_was_deleted_are_collected() -> None:
    """Such topics are found in the staging place alone."""
    async with harness({"orders": 1, "clicks": 1}, SHORT) as b:
        b.topics.produce(TopicPartition("clicks", 0), *[b"x"] * 10)
        await leave(b, "clicks", "clicks-1")
        await leave(b, "deleted", "deleted-1")
        await asyncio.sleep(OLD_S + 3_700)
        assert not b.staging.rows("clicks", NAME)
        assert not b.staging.rows("deleted", NAME)


async def test_rows_that_are_neither_landed_nor_in_kafka_are_kept() -> None:
    """The table was refused for longer than the topic's retention: it lands them later."""
    async with harness({"orders": 1}, SHORT) as b:
        b.topics.produce(P, *[b"x"] * 12)
        b.topics.delete_records(P, 11)
        await leave(b)
        await asyncio.sleep(OLD_S + 3_700)
        assert b.staging.rows("orders", NAME) is not None
        b.topics.offsets["g"][P] = GroupOffset(10, "orders-1")
        await asyncio.sleep(3_700)
        assert b.staging.rows("orders", NAME) is None


async def test_files_of_a_table_with_another_name_are_of_the_topic_that_they_name() -> None:
    async with harness({"orders": 1}, SHORT) as b:
        b.topics.produce(P, *[b"x"] * 12)
        b.topics.delete_records(P, 11)
        rows = in_columns({P: [Record(o, 0, None, b"x") for o in range(10)]})
        footer = Footer("orders-1", 10, {0: (0, 10)}, topic="orders")
        await b.staging.write("orders_typed", NAME, rows, footer)
        await asyncio.sleep(OLD_S + 3_700)
        assert b.staging.rows("orders_typed", NAME) is not None
        b.topics.offsets["g"][P] = GroupOffset(10, "orders-1")
        await asyncio.sleep(3_700)
        assert b.staging.rows("orders_typed", NAME) is None


async def test_an_offset_of_an_earlier_topic_is_not_about_these_rows() -> None:
    async with harness({"orders": 1}, SHORT) as b:
        b.topics.produce(P, *[b"x"] * 12)
        b.topics.delete_records(P, 11)
        b.topics.offsets["g"][P] = GroupOffset(10, "an earlier one")
        await leave(b)
        await asyncio.sleep(OLD_S + 3_700)
        assert b.staging.rows("orders", NAME) is not None


async def test_nothing_is_collected_while_kafka_does_not_answer() -> None:
    async with harness({"orders": 1}, SHORT) as b:
        b.topics.produce(P, *[b"x"] * 10)
        b.topics.silent.add("orders")
        await leave(b)
        await asyncio.sleep(OLD_S + 3_700)
        assert b.staging.rows("orders", NAME) is not None
        b.topics.silent.clear()
        await asyncio.sleep(3_700)
        assert b.staging.rows("orders", NAME) is None
