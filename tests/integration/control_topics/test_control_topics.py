"""`KafkaControlTopics` against a real broker."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from aiokafka import TopicPartition
from pydantic import SecretStr
from tests.integration.control_topics.broker_helpers import (
    DEADLINE_S,
    admin_client,
    delete_records_before,
    read,
    settings,
)

from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import run_broker
from binwright.protocol.errors import BrokerUnavailable, RecordTooLarge, TopicMissing
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration


async def test_what_is_published_is_read_back_with_its_offset(
    bus: ControlTopics, topic: str
) -> None:
    await bus.ensure(topic, 2, {})
    offsets = [await bus.publish(topic, 1, b"k%d" % n, b"v%d" % n) for n in range(3)]
    reader = await bus.reader(topic, 1, 0)
    records = await read(reader, 3)
    await reader.close()
    assert offsets == [0, 1, 2] == [r.offset for r in records]
    assert [(r.key, r.value) for r in records] == [(b"k%d" % n, b"v%d" % n) for n in range(3)]
    assert (await bus.end(topic, 0), await bus.end(topic, 1)) == (0, 3)


async def test_a_time_is_the_offset_of_the_first_record_since_then(
    bus: KafkaControlTopics, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    assert await bus.offset_at(topic, 0, 0) == 0
    for number in range(3):
        await bus.publish(topic, 0, b"k", b"%d" % number)
    reader = await bus.reader(topic, 0, 0)
    times = [record.timestamp_ms for record in await read(reader, 3)]
    await reader.close()
    for at_ms in (-5, *times, *(at_ms + 1 for at_ms in times)):
        later = [offset for offset, written_ms in enumerate(times) if written_ms >= at_ms]
        assert await bus.offset_at(topic, 0, at_ms) == min(later, default=3)


async def test_concurrent_publishes_keep_the_order_of_calls(bus: ControlTopics, topic: str) -> None:
    await bus.ensure(topic, 1, {})
    values = [b"%d" % n * 500 for n in range(500)]  # more than fits in one batch
    offsets = await asyncio.gather(*(bus.publish(topic, 0, b"k", value) for value in values))
    reader = await bus.reader(topic, 0, 0)
    records = await read(reader, 500)
    await reader.close()
    assert offsets == list(range(500))
    assert [r.value for r in records] == values


async def test_readers_are_independent_and_wait_for_news(bus: ControlTopics, topic: str) -> None:
    await bus.ensure(topic, 1, {})
    first = await bus.reader(topic, 0, 0)
    await bus.publish(topic, 0, b"k", b"a")
    second = await bus.reader(topic, 0, await bus.end(topic, 0))
    waiting = asyncio.create_task(second.read(DEADLINE_S))
    await bus.publish(topic, 0, b"k", b"b")
    assert [r.value for r in await waiting] == [b"b"]
    assert [r.value for r in await read(first, 2)] == [b"a", b"b"]
    assert await second.read(0.0) == []
    await first.close()
    await second.close()


async def test_a_topic_that_does_not_exist_is_reported(bus: KafkaControlTopics, topic: str) -> None:
    for call in (bus.publish(topic, 0, b"k", b"v"), bus.end(topic, 0), bus.reader(topic, 0, 0)):
        with pytest.raises(TopicMissing, match=topic):
            await call
    assert await bus.partitions(topic) == 0


async def test_a_partition_that_does_not_exist_is_reported(bus: ControlTopics, topic: str) -> None:
    await bus.ensure(topic, 1, {})
    for call in (bus.publish(topic, 1, b"k", b"v"), bus.end(topic, 1), bus.reader(topic, 1, 0)):
        with pytest.raises(TopicMissing, match=f"{topic}-1"):
            await call


async def test_an_offset_beyond_the_end_is_reported(bus: ControlTopics, topic: str) -> None:
    await bus.ensure(topic, 1, {})
    with pytest.raises(TopicMissing, match="ends at 0"):
        await bus.reader(topic, 0, 7)


async def test_a_reader_begins_at_the_oldest_record_there_is(
    broker: str, bus: ControlTopics, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    await asyncio.gather(*(bus.publish(topic, 0, b"k", b"v") for _ in range(3)))
    await delete_records_before(broker, topic, 2)
    reader = await bus.reader(topic, 0, 0)
    assert [r.offset for r in await read(reader, 1)] == [2]
    await reader.close()


async def test_a_reader_skips_records_that_retention_deleted(
    broker: str, bus: KafkaControlTopics, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    reader = await bus.reader(topic, 0, 0)
    await asyncio.gather(*(bus.publish(topic, 0, b"k", b"v") for _ in range(3)))
    await read(reader, 3)
    await delete_records_before(broker, topic, 2)
    reader._next = 0  # as if it had been away since the beginning
    reader._shared.seek(TopicPartition(topic, 0), 0)
    assert [r.offset for r in await read(reader, 1)] == [2]
    await reader.close()


async def test_a_reader_reports_that_its_topic_was_recreated(
    broker: str, bus: ControlTopics, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    reader = await bus.reader(topic, 0, await bus.publish(topic, 0, b"k", b"v") + 1)
    async with admin_client(broker) as admin:
        await admin.delete_topics([topic])
        while await bus.partitions(topic):  # noqa: ASYNC110 - a broker calls nobody back
            await asyncio.sleep(0.05)
        await bus.ensure(topic, 1, {})
    with pytest.raises(TopicMissing, match="was recreated"):
        await read(reader, 1)
    await reader.close()


async def test_a_topic_grows_and_never_shrinks(bus: ControlTopics, topic: str) -> None:
    for wanted, there in ((1, 1), (5, 5), (3, 5)):
        await bus.ensure(topic, wanted, {"cleanup.policy": "compact"})
        assert await bus.partitions(topic) == there
    await bus.publish(topic, 0, b"k", b"v")
    await bus.ensure(topic, 8, {})
    assert await bus.publish(topic, 7, b"k", b"v") == 0  # the producer knew five


async def test_several_processes_may_create_a_topic_at_once(
    broker: str, bus: ControlTopics, topic: str
) -> None:
    async with KafkaControlTopics(settings(broker)) as other:
        await asyncio.gather(*(b.ensure(topic, 3, {}) for b in (bus, other) * 3))
        assert await other.partitions(topic) == 3


async def test_a_refused_topic_is_reported_with_the_reason(broker: str, topic: str) -> None:
    kafka = settings(broker).model_copy(update={"replication_factor": 3})
    async with KafkaControlTopics(kafka) as bus:
        with pytest.raises(BrokerUnavailable, match="InvalidReplicationFactor"):
            await bus.ensure(topic, 1, {})


async def test_an_unknown_setting_of_a_topic_is_reported_with_the_reason(
    bus: ControlTopics, topic: str
) -> None:
    with pytest.raises(BrokerUnavailable, match="no\\.such\\.thing"):
        await bus.ensure(topic, 1, {"no.such.thing": "1"})


async def test_a_refused_record_does_not_spoil_the_next(bus: ControlTopics, topic: str) -> None:
    """Its place in the producer's sequence stays empty; Kafka refuses what comes after a gap."""
    await bus.ensure(topic, 1, {"max.message.bytes": "1000"})
    await bus.publish(topic, 0, b"k", b"v")
    with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes"):
        await bus.publish(topic, 0, b"k", Random(1).randbytes(16_000))
    assert await bus.publish(topic, 0, b"k", b"v") == 1


async def test_an_unreachable_broker_is_named_with_what_to_check() -> None:
    kafka = KafkaSettings(
        bootstrap_servers="127.0.0.1:9",
        security_protocol="SASL_PLAINTEXT",
        sasl_username="ann",
        sasl_password=SecretStr("xyzzy"),
        request_timeout_s=2,
    )
    with pytest.raises(BrokerUnavailable) as caught:
        async with KafkaControlTopics(kafka):
            pass
    result = str(caught.value)
    assert all(word in result for word in ("127.0.0.1:9", "bootstrap_servers", "ann", "PLAIN"))
    assert "xyzzy" not in result


async def test_asking_about_a_topic_never_creates_it(tmp_path: Path, topic: str) -> None:
    """Brokers create topics on sight unless told otherwise, and aiokafka asks for that."""
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path, settings={"auto.create.topics.enable": "true"}) as running,
        KafkaControlTopics(settings(running.bootstrap_servers)) as bus,
    ):
        for call in (bus.publish(topic, 0, b"k", b"v"), bus.end(topic, 0), bus.reader(topic, 0, 0)):
            with pytest.raises(TopicMissing):
                await call
        assert await bus.partitions(topic) == 0


async def test_a_broker_restart_passes_silently(tmp_path: Path, topic: str) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path) as running,
        KafkaControlTopics(settings(running.bootstrap_servers)) as bus,
    ):
        await bus.ensure(topic, 1, {})
        reader = await bus.reader(topic, 0, 0)
        await bus.publish(topic, 0, b"k", b"before")
        await running.stop()
        waiting = asyncio.create_task(bus.publish(topic, 0, b"k", b"during"))
        await running.start()
        assert await waiting == 1
        assert await bus.publish(topic, 0, b"k", b"after") == 2
        values = [r.value for r in await read(reader, 3)]
        await reader.close()
    assert values == [b"before", b"during", b"after"]


@pytest.mark.nightly
async def test_a_long_outage_is_reported_and_then_forgotten(tmp_path: Path, topic: str) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path) as running,
        KafkaControlTopics(settings(running.bootstrap_servers, patience_s=2)) as bus,
    ):
        await bus.ensure(topic, 1, {})
        reader = await bus.reader(topic, 0, 0)
        await bus.publish(topic, 0, b"k", b"before")
        await read(reader, 1)
        await running.stop()
        for call in (
            bus.publish(topic, 0, b"k", b"given up on"),
            bus.end(topic, 0),
            bus.partitions(topic),
            bus.reader(topic, 0, 0),
            bus.ensure(topic, 2, {}),
            read(reader, 1),
        ):
            with pytest.raises(BrokerUnavailable):
                await call
        await running.start()
        # What was given up on may land, then in its old place: before what came later.
        await bus.publish(topic, 0, b"k", b"after")
        assert [r.value for r in await read(reader, 2)] == [b"given up on", b"after"]
        await reader.close()


async def test_closing_does_not_wait_for_a_broker_that_is_gone(tmp_path: Path, topic: str) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path) as running,
        KafkaControlTopics(settings(running.bootstrap_servers, patience_s=2)) as bus,
    ):
        await bus.ensure(topic, 1, {})
        await bus.publish(topic, 0, b"k", b"v")
        await running.stop()
        with pytest.raises(BrokerUnavailable):
            await bus.publish(topic, 0, b"k", b"never landed")


async def test_closing_readers_while_the_broker_goes_away_cancels_no_task(
    tmp_path: Path, topic: str
) -> None:
    """A leadership that ends at that moment must end for its own reason."""
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path) as running,
        KafkaControlTopics(settings(running.bootstrap_servers, patience_s=5)) as bus,
    ):
        await bus.ensure(topic, 1, {})
        readers = [await bus.reader(topic, 0, 0) for _ in range(10)]
        for reader in readers:
            await reader.read(0.05)
        await running.kill()

        async def close(after_s: float, reader: Reader) -> None:
            await asyncio.sleep(after_s)
            await reader.close()

        closing = [close(0.02 * number, reader) for number, reader in enumerate(readers)]
        assert await asyncio.gather(*closing, return_exceptions=True) == [None] * len(readers)


async def test_a_topic_is_described(bus: ControlTopics, topic: str) -> None:
    await bus.ensure(topic, 2, {"cleanup.policy": "compact"})
    facts = await bus.describe(topic, ["cleanup.policy", "unclean.leader.election.enable"])
    assert facts.config == {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
    assert (facts.replicas, facts.brokers) == (1, 1)
    with pytest.raises(TopicMissing):
        await bus.describe(f"{topic}-none", ["cleanup.policy"])
