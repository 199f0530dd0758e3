"""What the intake tells of offsets, and what ails a broker or a topic."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import OffsetAndMetadata
from aiokafka import TopicPartition as Theirs
from aiokafka.consumer import AIOKafkaConsumer
from aiokafka.protocol.produce import ProduceRequest
from tests.consumer.batches import stored
from tests.integration.intake.hands import (
    DEADLINE_S,
    Hands,
    fetched,
    intake_of,
    numbered,
    ready,
    values,
)

from binwright.consumer.intake import KafkaIntake
from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import GroupOffset
from binwright.embedded.broker import run_broker
from binwright.shell.settings import KafkaSettings

pytestmark = pytest.mark.integration


async def test_bounds_tell_what_there_is(hands: Hands) -> None:
    await hands.produce(0, *numbered(10))
    await hands.forget(0, 4)
    async with intake_of(hands) as intake:
        assert await intake.bounds([hands.partition(0), hands.partition(1)]) == {
            hands.partition(0): (4, 10),
            hands.partition(1): (0, 0),
        }


async def test_missing_topics_and_partitions_are_named(hands: Hands) -> None:
    async with intake_of(hands) as intake:
        with pytest.raises(TopicMissing, match=f"{hands.topic}-7"):
            await intake.bounds([hands.partition(7)])
        with pytest.raises(TopicMissing, match=f"{hands.topic}-7"):
            await intake.start(hands.partition(7), 0)
        with pytest.raises(TopicMissing, match="nowhere"):
            await intake.partitions("nowhere")
        with pytest.raises(TopicMissing, match="nowhere"):
            await intake.topic_id("nowhere")
        with pytest.raises(TopicMissing, match="nowhere"):
            await intake.start(TopicPartition("nowhere", 0), 0)
        assert sorted(await intake.partitions(hands.topic)) == [
            hands.partition(0),
            hands.partition(1),
        ]


async def test_committed_offsets_come_back_as_they_were_given(hands: Hands) -> None:
    offset = GroupOffset(5, "0b8f-id")
    async with intake_of(hands, group="ours") as intake:
        await intake.commit({hands.partition(0): offset, hands.partition(1): GroupOffset(7)})
        assert await intake.committed([hands.partition(0), hands.partition(1)]) == {
            hands.partition(0): offset,
            hands.partition(1): GroupOffset(7),
        }
        assert await intake.committed([]) == {}
        await intake.commit({})
    async with intake_of(hands, group="others") as intake:
        assert await intake.committed([hands.partition(0)]) == {}


async def test_committed_offsets_are_where_people_look_for_them(hands: Hands) -> None:
    async with intake_of(hands, group="looked-at") as intake:
        await intake.commit({hands.partition(0): GroupOffset(5, "t")})
    told = await hands.admin.list_consumer_group_offsets("looked-at")

    assert {where.partition: offset.offset for where, offset in told.items()} == {0: 5}


async def test_offsets_that_others_committed_are_none_of_ours(hands: Hands) -> None:
    """But those of our own version 0.1 are."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=hands.address, group_id="foreign", enable_auto_commit=False
    )
    await consumer.start()
    consumer.assign([Theirs(hands.topic, 0), Theirs(hands.topic, 1)])
    await consumer.commit(
        {
            Theirs(hands.topic, 0): OffsetAndMetadata(3, ""),
            Theirs(hands.topic, 1): OffsetAndMetadata(3, '{"v": 9, "t": "x", "i": "id"}'),
        }
    )
    await consumer.stop()
    async with intake_of(hands, group="foreign") as intake:
        assert await intake.committed([hands.partition(0), hands.partition(1)]) == {
            hands.partition(1): GroupOffset(3, "id")
        }


async def test_a_header_key_that_is_not_utf8_costs_nothing(hands: Hands) -> None:
    """librdkafka lets anybody send one; aiokafka's decoder raises in the middle of a fetch."""
    batch = stored(0, 3, header=b"\xff\xfe\xfd!")
    request = ProduceRequest(None, 1, 1_000, [(hands.topic, [(0, batch)])])
    client = hands.producer.client
    await hands.produce(1, b"other")
    node = client.cluster.leader_for_partition(Theirs(hands.topic, 0))
    answer = await client.send(node, request)
    assert answer.topics[0][1][0][1] == 0
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 0)
        await intake.start(hands.partition(1), 0)
        found = await fetched(intake, lambda f: sum(map(len, f.values())) == 4)

    assert [r.value for r in found[hands.partition(0)]] == [b"v0", b"v1", b"v2"]
    assert found[hands.partition(0)][1].headers == (("\\xff\\xfe\\xfd!", b"x"),)


async def test_a_deleted_topic_is_not_created_by_reading_it(hands: Hands) -> None:
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 0)
        await intake.fetch(1_000, 0.3)
        await hands.admin.delete_topics([hands.topic])
        for _ in range(10):
            await intake.fetch(1_000, 0.3)
        with pytest.raises(TopicMissing):
            await intake.topic_id(hands.topic)
        assert hands.topic not in await hands.admin.list_topics()


async def test_a_topic_made_anew_has_another_id(hands: Hands) -> None:
    async with intake_of(hands) as intake:
        before = await intake.topic_id(hands.topic)
        assert before
        assert await intake.topic_id(hands.topic) == before
        await hands.admin.delete_topics([hands.topic])
        await hands.make(2)
        after = await intake.topic_id(hands.topic)
        assert after not in {None, before}


async def test_a_client_whose_fetcher_died_is_replaced(hands: Hands) -> None:
    await hands.produce(0, *numbered(3))
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 0)
        assert await values(intake, hands.partition(0), 3) == list(numbered(3))
        intake._read._consumer._fetcher._fetch_task.cancel()
        await hands.produce(0, *numbered(3, first=3))

        assert await values(intake, hands.partition(0), 3) == list(numbered(3, first=3))


async def test_a_broker_that_is_not_there_is_named() -> None:
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:9")
    with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:9"):
        async with KafkaIntake(kafka, "g"):
            pass


async def test_a_silent_broker_is_told_of_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    async with (
        run_broker(tmp_path / "own") as server,
        ready(server.bootstrap_servers, "t") as hands,
    ):
        kafka = KafkaSettings(bootstrap_servers=hands.address, request_timeout_s=2)
        async with KafkaIntake(kafka, "g") as intake:
            await intake.start(hands.partition(0), 0)
            await hands.produce(0, *numbered(5))
            assert await values(intake, hands.partition(0), 5) == list(numbered(5))
            await server.stop()
            with pytest.raises(BrokerUnavailable, match="no broker has answered"):
                await fetched(intake, bool)
            with pytest.raises(BrokerUnavailable):
                await intake.bounds([hands.partition(0)])
            with pytest.raises(BrokerUnavailable):
                await intake.commit({hands.partition(0): GroupOffset(5, "t")})
            await server.start()
            await hands.produce(0, *numbered(5, first=5))

            seen: list[bytes | None] = []
            async with asyncio.timeout(DEADLINE_S):
                while len(seen) < 5:
                    try:
                        found = await intake.fetch(1_000, 0.5)
                    except BrokerUnavailable:
                        continue
                    seen += [record.value for record in found.get(hands.partition(0), ())]
            assert seen == list(numbered(5, first=5))
