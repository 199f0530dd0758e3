"""Messages of any size, and many readers and questions by few clients, on a real broker."""

import asyncio
from random import Random

import pytest
from tests.integration.control_topics.broker_helpers import admin_client, read

from binwright.kafka.control_records import Decoder
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.protocol import model as data
from binwright.protocol.errors import TopicMissing
from binwright.protocol.metadata import Accepted, Inbound, Withdrawn, decode_inbound
from binwright.protocol.ports.kafka import ControlTopics, Record

pytestmark = pytest.mark.integration


async def test_a_message_of_several_megabytes_goes_through_a_broker_at_its_defaults(
    bus: ControlTopics, topic: str
) -> None:
    await bus.ensure(topic, 1, {})
    partitions = (data.TopicPartition("team-0001.events.v1", n) for n in range(60_000))
    large = Accepted(term=1, plan=2, targets={p: data.Slot(p.partition) for p in partitions})
    assert await there_and_back(bus, topic, large)


async def test_a_topic_of_small_records_takes_a_message_in_smaller_parts(
    bus: ControlTopics, topic: str
) -> None:
    await bus.ensure(topic, 1, {"max.message.bytes": "20000"})
    reason = Random(1).randbytes(99_000).hex()
    assert await there_and_back(bus, topic, Withdrawn(term=1, plan=2, reason=reason))


async def there_and_back(bus: ControlTopics, topic: str, message: Inbound) -> bool:
    """Whether all that is read back is this message, at the offset that its sender was told."""
    last = await publish_message(bus, topic, 0, message)
    reader = await bus.reader(topic, 0, 0)
    records: list[Record] = []
    while reader.position <= last:
        records += await reader.read(1.0)
    await reader.close()
    found = list(Decoder(decode_inbound).decode(records))
    return [(record.offset, sent) for record, sent in found] == [(last, message)]


async def test_many_readers_share_one_client_with_positions_of_their_own(
    bus: KafkaControlTopics,
) -> None:
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
    broker: str, bus: KafkaControlTopics, topic: str
) -> None:
    await asyncio.gather(bus.ensure(topic, 1, {}), bus.ensure(f"{topic}-2", 1, {}))
    gone, well = await bus.reader(topic, 0, 0), await bus.reader(f"{topic}-2", 0, 0)
    assert bus.clients == 1
    async with admin_client(broker) as admin:
        await admin.delete_topics([topic])
    gone._patience_s = 2.0
    with pytest.raises(TopicMissing, match=topic):
        await read(gone, 1)
    await bus.publish(f"{topic}-2", 0, b"k", b"v")
    assert [record.value for record in await read(well, 1)] == [b"v"]
    await gone.close()
    await well.close()


async def test_end_offsets_of_many_partitions_are_asked_for_together(
    bus: KafkaControlTopics,
) -> None:
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
