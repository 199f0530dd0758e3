"""`KafkaBus` against a real broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from pydantic import SecretStr

from binwright.core import model as data
from binwright.core import wire
from binwright.core.errors import BrokerUnavailable, RecordTooLarge, TopicMissing
from binwright.core.messages import Accepted, Approved, Inbound
from binwright.core.ports import Bus, Reader, Record
from binwright.embedded.broker import run_broker
from binwright.shell.broker import client_options
from binwright.shell.bus import KafkaBus
from binwright.shell.letters import Decoder, post
from binwright.shell.settings import KafkaSettings

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0


@pytest.fixture
async def bus(broker: str) -> AsyncIterator[KafkaBus]:
    async with asyncio.timeout(DEADLINE_S), KafkaBus(settings(broker)) as opened:
        yield opened


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def settings(bootstrap: str, patience_s: float = 30.0) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=bootstrap, request_timeout_s=patience_s)


@asynccontextmanager
async def administered(broker: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(**client_options(settings(broker)))
    await admin.start()
    yield admin
    await admin.close()


async def read(reader: Reader, count: int) -> list[Record]:
    records: list[Record] = []
    while len(records) < count:
        records += await reader.read(1.0)
    return records


async def test_what_is_published_is_read_back_with_its_offset(bus: Bus, topic: str) -> None:
    await bus.ensure(topic, 2, {})
    offsets = [await bus.publish(topic, 1, b"k%d" % n, b"v%d" % n) for n in range(3)]
    reader = await bus.reader(topic, 1, 0)
    records = await read(reader, 3)
    await reader.close()
    assert offsets == [0, 1, 2] == [r.offset for r in records]
    assert [(r.key, r.value) for r in records] == [(b"k%d" % n, b"v%d" % n) for n in range(3)]
    assert (await bus.end(topic, 0), await bus.end(topic, 1)) == (0, 3)


async def test_concurrent_publishes_keep_the_order_of_calls(bus: Bus, topic: str) -> None:
    await bus.ensure(topic, 1, {})
    values = [b"%d" % n * 500 for n in range(500)]  # more than fits in one batch
    offsets = await asyncio.gather(*(bus.publish(topic, 0, b"k", value) for value in values))
    reader = await bus.reader(topic, 0, 0)
    records = await read(reader, 500)
    await reader.close()
    assert offsets == list(range(500))
    assert [r.value for r in records] == values


async def test_readers_are_independent_and_wait_for_news(bus: Bus, topic: str) -> None:
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


async def test_a_topic_that_is_not_there_is_told(bus: KafkaBus, topic: str) -> None:
    for call in (bus.publish(topic, 0, b"k", b"v"), bus.end(topic, 0), bus.reader(topic, 0, 0)):
        with pytest.raises(TopicMissing, match=topic):
            await call
    assert await bus.partitions(topic) == 0


async def test_a_partition_that_is_not_there_is_told(bus: Bus, topic: str) -> None:
    await bus.ensure(topic, 1, {})
    for call in (bus.publish(topic, 1, b"k", b"v"), bus.end(topic, 1), bus.reader(topic, 1, 0)):
        with pytest.raises(TopicMissing, match=f"{topic}-1"):
            await call


async def test_an_offset_beyond_the_end_is_told(bus: Bus, topic: str) -> None:
    await bus.ensure(topic, 1, {})
    with pytest.raises(TopicMissing, match="ends at 0"):
        await bus.reader(topic, 0, 7)


async def test_a_reader_begins_at_the_oldest_record_there_is(
    broker: str, bus: Bus, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    await asyncio.gather(*(bus.publish(topic, 0, b"k", b"v") for _ in range(3)))
    async with administered(broker) as admin:
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=2)})
    reader = await bus.reader(topic, 0, 0)
    assert [r.offset for r in await read(reader, 1)] == [2]
    await reader.close()


async def test_a_reader_that_retention_overtook_skips_what_is_gone(
    broker: str, bus: KafkaBus, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    reader = await bus.reader(topic, 0, 0)
    await asyncio.gather(*(bus.publish(topic, 0, b"k", b"v") for _ in range(3)))
    await read(reader, 3)
    async with administered(broker) as admin:
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=2)})
    reader._next = 0  # as if it had been away since the beginning
    reader._shared.seek(TopicPartition(topic, 0), 0)
    assert [r.offset for r in await read(reader, 1)] == [2]
    await reader.close()


async def test_a_reader_tells_that_its_topic_was_made_anew(
    broker: str, bus: Bus, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    reader = await bus.reader(topic, 0, await bus.publish(topic, 0, b"k", b"v") + 1)
    async with administered(broker) as admin:
        await admin.delete_topics([topic])
        while await bus.partitions(topic):  # noqa: ASYNC110 - a broker calls nobody back
            await asyncio.sleep(0.05)
        await bus.ensure(topic, 1, {})
    with pytest.raises(TopicMissing, match="made anew"):
        await read(reader, 1)
    await reader.close()


async def test_a_topic_grows_and_never_shrinks(bus: Bus, topic: str) -> None:
    for wanted, there in ((1, 1), (5, 5), (3, 5)):
        await bus.ensure(topic, wanted, {"cleanup.policy": "compact"})
        assert await bus.partitions(topic) == there
    await bus.publish(topic, 0, b"k", b"v")
    await bus.ensure(topic, 8, {})
    assert await bus.publish(topic, 7, b"k", b"v") == 0  # the producer knew five


async def test_everybody_may_create_at_once(broker: str, bus: Bus, topic: str) -> None:
    async with KafkaBus(settings(broker)) as other:
        await asyncio.gather(*(b.ensure(topic, 3, {}) for b in (bus, other) * 3))
        assert await other.partitions(topic) == 3


async def test_a_refused_topic_says_why(broker: str, topic: str) -> None:
    kafka = settings(broker).model_copy(update={"replication_factor": 3})
    async with KafkaBus(kafka) as bus:
        with pytest.raises(BrokerUnavailable, match="InvalidReplicationFactor"):
            await bus.ensure(topic, 1, {})


async def test_an_unknown_setting_of_a_topic_says_why(bus: Bus, topic: str) -> None:
    with pytest.raises(BrokerUnavailable, match="no\\.such\\.thing"):
        await bus.ensure(topic, 1, {"no.such.thing": "1"})


async def test_a_refused_record_does_not_spoil_the_next(bus: Bus, topic: str) -> None:
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
        async with KafkaBus(kafka):
            pass
    told = str(caught.value)
    assert all(word in told for word in ("127.0.0.1:9", "bootstrap_servers", "ann", "PLAIN"))
    assert "xyzzy" not in told


async def test_asking_about_a_topic_never_creates_it(tmp_path: Path, topic: str) -> None:
    """Brokers create topics on sight unless told otherwise, and aiokafka asks for that."""
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path, settings={"auto.create.topics.enable": "true"}) as running,
        KafkaBus(settings(running.bootstrap_servers)) as bus,
    ):
        for call in (bus.publish(topic, 0, b"k", b"v"), bus.end(topic, 0), bus.reader(topic, 0, 0)):
            with pytest.raises(TopicMissing):
                await call
        assert await bus.partitions(topic) == 0


async def test_a_broker_restart_passes_silently(tmp_path: Path, topic: str) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path) as running,
        KafkaBus(settings(running.bootstrap_servers)) as bus,
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


async def test_a_long_outage_is_told_and_then_forgotten(tmp_path: Path, topic: str) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path) as running,
        KafkaBus(settings(running.bootstrap_servers, patience_s=2)) as bus,
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
        KafkaBus(settings(running.bootstrap_servers, patience_s=2)) as bus,
    ):
        await bus.ensure(topic, 1, {})
        await bus.publish(topic, 0, b"k", b"v")
        await running.stop()
        with pytest.raises(BrokerUnavailable):
            await bus.publish(topic, 0, b"k", b"never landed")


async def test_closing_readers_while_the_broker_goes_away_cancels_nobody(
    tmp_path: Path, topic: str
) -> None:
    """A reign that ends in that moment must end by its own reason."""
    async with (
        asyncio.timeout(DEADLINE_S),
        run_broker(tmp_path) as running,
        KafkaBus(settings(running.bootstrap_servers, patience_s=5)) as bus,
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


async def test_a_topic_tells_how_it_is_set_up(bus: Bus, topic: str) -> None:
    await bus.ensure(topic, 2, {"cleanup.policy": "compact"})
    facts = await bus.describe(topic, ["cleanup.policy", "unclean.leader.election.enable"])
    assert facts.config == {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
    assert (facts.replicas, facts.brokers) == (1, 1)
    with pytest.raises(TopicMissing):
        await bus.describe(f"{topic}-none", ["cleanup.policy"])


async def test_a_message_of_several_megabytes_goes_through_a_broker_at_its_defaults(
    bus: Bus, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    partitions = (data.TopicPartition("team-0001.events.v1", n) for n in range(60_000))
    large = Accepted(term=1, plan=2, targets={p: data.Slot(p.partition) for p in partitions})
    assert await there_and_back(bus, topic, large)


async def test_a_topic_of_small_records_takes_a_message_in_smaller_parts(
    bus: Bus, topic: str
) -> None:
    await bus.ensure(topic, 1, {"max.message.bytes": "20000"})
    assert await there_and_back(bus, topic, Approved(plan=2, by=Random(1).randbytes(99_000).hex()))


async def there_and_back(bus: Bus, topic: str, message: Inbound) -> bool:
    """Whether all that is read back is this message, at the offset that its sender was told."""
    last = await post(bus, topic, 0, message)
    reader = await bus.reader(topic, 0, 0)
    records: list[Record] = []
    while reader.position <= last:
        records += await reader.read(1.0)
    await reader.close()
    found = list(Decoder(wire.decode_inbound).readable(records))
    return [(record.offset, said) for record, said in found] == [(last, message)]


async def test_many_readers_have_one_client_and_each_its_own_place(bus: KafkaBus) -> None:
    """Readers come and go while others read; nobody misses a record or gets one twice."""
    random, topics = Random(7), [f"shared-{n}" for n in range(8)]
    await asyncio.gather(*(bus.ensure(name, 2, {}) for name in topics))
    places = [(name, partition) for name in topics for partition in range(2)]
    written = dict.fromkeys(places, 0)

    async def write() -> None:
        for _ in range(1_500):
            name, partition = random.choice(places)
            number = written[name, partition]
            written[name, partition] += 1
            await bus.publish(name, partition, b"k", b"%d" % number)

    async def follow(name: str, partition: int) -> int:
        """Read in several turns; return where it got to."""
        offset = 0
        while not writing.done() or offset < written[name, partition]:
            reader = await bus.reader(name, partition, offset)
            for _ in range(random.randrange(1, 6)):
                for record in await reader.read(0.1):
                    assert (record.offset, record.value) == (offset, b"%d" % offset)
                    offset += 1
            await reader.close()
        return offset

    writing = asyncio.create_task(write())
    twice = [*places, places[0]]  # two readers of one partition, too
    found = await asyncio.gather(*(follow(*place) for place in twice))
    assert found == [written[place] for place in twice]
    assert bus.clients == 0


async def test_a_topic_that_is_deleted_stops_only_its_own_reader(
    broker: str, bus: KafkaBus, topic: str
) -> None:
    await asyncio.gather(bus.ensure(topic, 1, {}), bus.ensure(f"{topic}-2", 1, {}))
    gone, well = await bus.reader(topic, 0, 0), await bus.reader(f"{topic}-2", 0, 0)
    assert bus.clients == 1
    async with administered(broker) as admin:
        await admin.delete_topics([topic])
    gone._patience_s = 2.0
    with pytest.raises(TopicMissing, match=topic):
        await read(gone, 1)
    await bus.publish(f"{topic}-2", 0, b"k", b"v")
    assert [record.value for record in await read(well, 1)] == [b"v"]
    await gone.close()
    await well.close()


async def test_end_offsets_of_many_partitions_are_asked_for_together(bus: KafkaBus) -> None:
    topics = [f"ends-{n}" for n in range(40)]
    await asyncio.gather(*(bus.ensure(name, 1, {}) for name in topics))
    for number, name in enumerate(topics[:3]):
        for _ in range(number):
            await bus.publish(name, 0, b"k", b"v")
    ends = [bus.end(name, 0) for name in topics]
    found = await asyncio.gather(*ends, bus.end("nowhere", 0), return_exceptions=True)
    assert found[:4] == [0, 1, 2, 0]
    assert isinstance(found[-1], TopicMissing)
    with pytest.raises(TopicMissing):
        await bus.end(topics[0], 1)
    await bus.ensure(topics[0], 2, {})  # what grew is asked about anew
    assert await bus.end(topics[0], 1) == 0
