"""What the intake tells of offsets, and what ails a broker or a topic."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer, OffsetAndMetadata
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.consumer import AIOKafkaConsumer
from tests.integration.intake.data_topic import (
    DEADLINE_S,
    DataTopic,
    fetch_until,
    new_data_topic,
    new_intake,
    numbered_values,
    values,
)
from tests.kafka.batches import produce, stored

from binwright.consumer.read.data_reader import KafkaDataReader
from binwright.local.kafka import run_broker
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import NO_RECORDS, GroupOffset
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.testing.records import in_rows

pytestmark = pytest.mark.integration


async def test_bounds_are_the_first_offset_and_the_end(data_topic: DataTopic) -> None:
    await data_topic.produce(0, *numbered_values(10))
    await data_topic.delete_before(0, 4)
    async with new_intake(data_topic) as intake:
        assert await intake.bounds([data_topic.partition(0), data_topic.partition(1)]) == {
            data_topic.partition(0): (4, 10),
            data_topic.partition(1): (0, 0),
        }


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_an_open_transaction_ends_what_can_be_read_and_not_the_log(
    data_topic: DataTopic, isolation: str
) -> None:
    first, second = data_topic.partition(0), data_topic.partition(1)
    await data_topic.produce(0, *numbered_values(5))
    transactional = AIOKafkaProducer(
        bootstrap_servers=data_topic.address, transactional_id=f"{data_topic.topic}-t"
    )
    await transactional.start()
    try:
        await transactional.begin_transaction()
        for value in numbered_values(3):
            await transactional.send_and_wait(data_topic.topic, value, partition=0)
        async with new_intake(data_topic, isolation=isolation) as intake:
            states = await intake.topic_states([data_topic.topic, "nowhere"])
            assert states.keys() == {data_topic.topic}
            state = states[data_topic.topic]
            assert state is not None
            assert state.topic_id == await intake.topic_id(data_topic.topic)
            assert state.bounds == {first: (0, 8), second: (0, 0)}
            committed = isolation == "read_committed"
            assert state.readable == ({first: 5, second: 0} if committed else {})
            read = 5 if committed else 8
            await intake.start(first, 0)
            await fetch_until(intake, lambda _: intake.progress().offsets == {first: (read, read)})
            await transactional.commit_transaction()
            await fetch_until(intake, lambda _: intake.progress().offsets == {first: (9, 9)})
            after = (await intake.topic_states([data_topic.topic]))[data_topic.topic]
            assert after is not None
            assert after.readable.get(first, 9) == after.bounds[first][1] == 9, "with its marker"
    finally:
        await transactional.stop()


async def test_missing_topics_and_partitions_are_named(data_topic: DataTopic) -> None:
    async with new_intake(data_topic) as intake:
        with pytest.raises(TopicMissing, match=f"{data_topic.topic}-7"):
            await intake.bounds([data_topic.partition(7)])
        with pytest.raises(TopicMissing, match=f"{data_topic.topic}-7"):
            await intake.start(data_topic.partition(7), 0)
        with pytest.raises(TopicMissing, match="nowhere"):
            await intake.partitions("nowhere")
        with pytest.raises(TopicMissing, match="nowhere"):
            await intake.topic_id("nowhere")
        with pytest.raises(TopicMissing, match="nowhere"):
            await intake.start(TopicPartition("nowhere", 0), 0)
        assert sorted(await intake.partitions(data_topic.topic)) == [
            data_topic.partition(0),
            data_topic.partition(1),
        ]


async def test_committed_offsets_come_back_as_they_were_given(data_topic: DataTopic) -> None:
    offset = GroupOffset(5, "0b8f-id")
    async with new_intake(data_topic, group="ours") as intake:
        await intake.commit(
            {data_topic.partition(0): offset, data_topic.partition(1): GroupOffset(7)}
        )
        assert await intake.committed([data_topic.partition(0), data_topic.partition(1)]) == {
            data_topic.partition(0): offset,
            data_topic.partition(1): GroupOffset(7),
        }
        assert await intake.committed([]) == {}
        await intake.commit({})
    async with new_intake(data_topic, group="others") as intake:
        assert await intake.committed([data_topic.partition(0)]) == {}


async def test_committed_offsets_are_visible_to_kafkas_tools(data_topic: DataTopic) -> None:
    async with new_intake(data_topic, group="looked-at") as intake:
        await intake.commit({data_topic.partition(0): GroupOffset(5, "t")})
    result = await data_topic.admin.list_consumer_group_offsets("looked-at")

    assert {where.partition: offset.offset for where, offset in result.items()} == {0: 5}


async def test_offsets_committed_by_other_clients_are_not_used(data_topic: DataTopic) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=data_topic.address, group_id="foreign", enable_auto_commit=False
    )
    await consumer.start()
    consumer.assign([KafkaPartition(data_topic.topic, 0), KafkaPartition(data_topic.topic, 1)])
    await consumer.commit(
        {
            KafkaPartition(data_topic.topic, 0): OffsetAndMetadata(3, ""),
            KafkaPartition(data_topic.topic, 1): OffsetAndMetadata(3, '{"i": "id"}'),
        }
    )
    await consumer.stop()
    async with new_intake(data_topic, group="foreign") as intake:
        assert await intake.committed([data_topic.partition(0), data_topic.partition(1)]) == {
            data_topic.partition(1): GroupOffset(3, "id")
        }


async def test_a_header_key_that_is_not_utf8_costs_nothing(data_topic: DataTopic) -> None:
    """librdkafka lets anybody send one; aiokafka's decoder raises in the middle of a fetch."""
    batch = stored(0, 3, header=b"\xff\xfe\xfd!")
    await data_topic.produce(1, b"other")
    await produce(data_topic.producer, data_topic.partition(0), batch)
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 0)
        await intake.start(data_topic.partition(1), 0)
        found = await fetch_until(intake, lambda f: sum(map(len, f.values())) == 4)

    assert [r.value for r in found[data_topic.partition(0)]] == [b"v0", b"v1", b"v2"]
    assert found[data_topic.partition(0)][1].headers == (("\\xff\\xfe\\xfd!", b"x"),)


async def test_a_deleted_topic_is_not_created_by_reading_it(data_topic: DataTopic) -> None:
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 0)
        await intake.fetch(1_000, 0.3)
        await data_topic.admin.delete_topics([data_topic.topic])
        for _ in range(10):
            await intake.fetch(1_000, 0.3)
        with pytest.raises(TopicMissing):
            await intake.topic_id(data_topic.topic)
        assert data_topic.topic not in await data_topic.admin.list_topics()


async def test_a_topic_recreated_has_another_id(data_topic: DataTopic) -> None:
    async with new_intake(data_topic) as intake:
        before = await intake.topic_id(data_topic.topic)
        assert before
        assert await intake.topic_id(data_topic.topic) == before
        await data_topic.admin.delete_topics([data_topic.topic])
        await data_topic.create(2)
        after = await intake.topic_id(data_topic.topic)
        assert after not in {None, before}


async def test_a_client_whose_fetcher_died_is_replaced(data_topic: DataTopic) -> None:
    await data_topic.produce(0, *numbered_values(3))
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 0)
        assert await values(intake, data_topic.partition(0), 3) == list(numbered_values(3))
        intake._assigned._consumer._fetcher._fetch_task.cancel()
        await data_topic.produce(0, *numbered_values(3, first=3))

        assert await values(intake, data_topic.partition(0), 3) == list(numbered_values(3, first=3))


async def test_a_broker_that_does_not_exist_is_named() -> None:
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:9")
    with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:9"):
        async with KafkaDataReader(kafka, "g"):
            pass


@pytest.mark.nightly
async def test_a_silent_broker_is_reported_of_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    async with (
        run_broker(tmp_path / "own") as server,
        new_data_topic(server.bootstrap_servers, "t") as data_topic,
    ):
        kafka = KafkaSettings(bootstrap_servers=data_topic.address, request_timeout_s=2)
        async with KafkaDataReader(kafka, "g") as intake:
            await intake.start(data_topic.partition(0), 0)
            await data_topic.produce(0, *numbered_values(5))
            assert await values(intake, data_topic.partition(0), 5) == list(numbered_values(5))
            await server.stop()
            with pytest.raises(BrokerUnavailable, match="no broker has answered"):
                await fetch_until(intake, bool)
            with pytest.raises(BrokerUnavailable):
                await intake.bounds([data_topic.partition(0)])
            with pytest.raises(BrokerUnavailable):
                await intake.commit({data_topic.partition(0): GroupOffset(5, "t")})
            await server.start()
            await data_topic.produce(0, *numbered_values(5, first=5))

            seen: list[bytes | None] = []
            async with asyncio.timeout(DEADLINE_S):
                while len(seen) < 5:
                    try:
                        found = await intake.fetch(1_000, 0.5)
                    except BrokerUnavailable:
                        continue
                    seen += [
                        record.value
                        for record in in_rows([found.get(data_topic.partition(0), NO_RECORDS)])
                    ]
            assert seen == list(numbered_values(5, first=5))
