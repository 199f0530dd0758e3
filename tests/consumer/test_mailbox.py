"""A consumer sends Hello once it can be commanded, and not before."""

import pytest

from binwright.consumer.mailbox import Mailbox, open_mailbox
from binwright.protocol import wire
from binwright.protocol.commands import StateQuery
from binwright.protocol.errors import ForeignTopic, TopicMissing
from binwright.protocol.metadata import Hello, decode_inbound
from binwright.protocol.model import Slot
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

METADATA, COMMANDS = "g.metadata", "g.commands"


async def opened(bus: FakeControlTopics, slot: int = 2) -> Mailbox:
    return await open_mailbox(bus, METADATA, COMMANDS, Slot(slot), "p", "test", lambda: 1)


async def test_a_consumer_is_commanded_in_the_partition_of_its_number() -> None:
    bus = FakeControlTopics({METADATA: 1, COMMANDS: 3})
    query = StateQuery(term=1)
    await bus.publish(COMMANDS, 2, wire.key(query), wire.encode(query))  # to the process before it
    mailbox = await opened(bus)
    await bus.publish(COMMANDS, 1, wire.key(query), b"to another slot")
    await bus.publish(COMMANDS, 2, wire.key(query), b"to this one")
    assert [record.value for record in await mailbox.reader.read(1.0)] == [b"to this one"]
    (hello,) = (decode_inbound(record.value) for record in bus.records(METADATA))
    assert isinstance(hello, Hello)
    assert hello.slot == 2


async def test_under_a_controller_of_an_older_version_a_consumer_sends_no_hello() -> None:
    """It has a partition of the metadata topic for the slot, and no topic of commands."""
    bus = FakeControlTopics({METADATA: 4})
    with pytest.raises(TopicMissing, match=r"partition 2 of g\.commands,.*of this version"):
        await opened(bus)
    assert bus.records(METADATA) == ()


@pytest.mark.parametrize("topic", [METADATA, COMMANDS])
async def test_a_topic_of_others_gets_no_hello(topic: str) -> None:
    bus = FakeControlTopics({METADATA: 1, COMMANDS: 3})
    await bus.publish(topic, 0, b"a key", b"a payment")
    before = bus.records(METADATA)
    with pytest.raises(ForeignTopic, match=topic):
        await opened(bus)
    assert bus.records(METADATA) == before
