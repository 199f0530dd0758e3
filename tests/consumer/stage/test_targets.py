"""A topic with several tables is read once, and staged for each of them."""

import asyncio
from dataclasses import replace

import pytest
from tests.consumer.harness import (
    CONFIG,
    LANDING,
    ConsumerHarness,
    P,
    harness,
    landing_partition,
    numbered,
    until,
)

from binwright.consumer.ingest import IngestConfig
from binwright.protocol.errors import TableRefused
from binwright.protocol.metadata import Report
from binwright.tables.settings import TableSettings
from binwright.tables.targets import Target

pytestmark = pytest.mark.looptime(noop_cycles=1)

RAW, TYPED = "orders_raw", "orders_typed"
AWAY = "the registry is away"


class Decoding:
    """What decodes nothing, and may fail for one table."""

    def __init__(self) -> None:
        self.failing = ""
        self.calls = 0

    async def of(self, target: Target, _rows: object) -> None:
        self.calls += 1
        await asyncio.sleep(0)
        if target.name == self.failing:
            raise TableRefused(AWAY)


def config(decoding: Decoding) -> IngestConfig:
    def targets(topic: str) -> list[Target]:
        return [Target(topic, RAW), Target(topic, TYPED)]

    return replace(CONFIG, targets=targets, decoder_of=decoding.of)


def names(b: ConsumerHarness) -> list[str]:
    return [staged.target for staged in b.staged()]


async def test_one_read_of_kafka_is_staged_for_each_table() -> None:
    async with harness({"orders": 1}, config(Decoding())) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: len(b.staged()) == 2)
        assert sorted(names(b)) == [RAW, TYPED]
        assert b.ranges(P) == [(0, 5)] * 2
        for staged in b.staged():
            assert len((b.staging.rows(staged.target, staged.file) or {})[P]) == 5
            assert b.staging.files[staged.target][staged.file].footer.topic == "orders"
            records = b.bus.records(LANDING, landing_partition(staged.target))
            assert staged.target.encode() in {record.key for record in records}
        await until(lambda: b.sent(Report)[-1].reading == {P: 5})
        assert b.report().staged_rows == 5, "each row counts once"


async def test_files_of_a_table_that_is_partitioned_by_day_are_laid_out_for_that() -> None:
    def targets(topic: str) -> list[Target]:
        dated = TableSettings(topics=(topic,), format="string", partition_by="_kafka_date")
        return [Target(topic, RAW), Target(topic, TYPED, dated)]

    async with harness({"orders": 1}, replace(CONFIG, targets=targets)) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: len(b.staged()) == 2)
        assert {staged.file for staged in b.staged() if staged.target == TYPED} == b.staging.by_day


async def test_a_table_that_cannot_be_staged_holds_no_file_of_another() -> None:
    decoding = Decoding()
    async with harness({"orders": 1}, config(decoding)) as b:
        decoding.failing = TYPED
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(b.staged)
        await asyncio.sleep(60)
        assert names(b) == [RAW], "its file is staged once"
        assert b.report().faults == {TYPED: AWAY}
        assert b.report().reading == {P: 0}, "who reads on reads from what all tables have"
        decoding.failing = ""
        await until(lambda: len(b.staged()) == 2)
        await until(lambda: not b.report().faults)
        assert b.report().reading == {P: 5}
        b.topics.produce(P, *numbered(5))
        await until(lambda: len(b.staged()) == 4)


async def test_what_is_left_of_a_topic_that_was_recreated_is_dropped() -> None:
    decoding = Decoding()
    async with harness({"orders": 1}, config(decoding)) as b:
        decoding.failing = TYPED
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(b.staged)
        b.topics.delete("orders")
        b.topics.create("orders", 1)
        b.topics.produce(P, *numbered(3))
        decoding.failing = ""
        await until(lambda: len(b.staged()) == 3)
        assert {(s.target, s.topic_id) for s in b.staged()} == {
            (RAW, "orders-1"),
            (RAW, "orders-2"),
            (TYPED, "orders-2"),
        }
        await until(lambda: not b.report().faults)


async def test_a_topic_whose_table_has_no_valid_name_stands_and_is_reported() -> None:
    def refused(topic: str) -> list[Target]:
        if topic == "orders":
            raise TableRefused("no name")
        return [Target(topic, topic)]

    async with harness({"orders": 1, "clicks": 1}, replace(CONFIG, targets=refused)) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.sent(Report) and b.report().faults)
        assert b.report().faults == {"orders": "no name"}
        assert not b.staged()
