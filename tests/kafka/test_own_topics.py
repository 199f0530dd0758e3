"""binwright writes to topics of its own, and leaves those of others as they are."""

import pytest
from structlog.testing import capture_logs

from binwright.kafka.control_records import LANDING_CONFIG, LANDING_PARTITIONS
from binwright.kafka.own_topics import check_own, ensure_own
from binwright.kafka.publishing import publish_message
from binwright.protocol.errors import ForeignTopic
from binwright.protocol.metadata import Claim
from binwright.protocol.model import BytesPerSecond
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC = "payments.landing"
CLAIM = Claim(controller="c", limit=BytesPerSecond(1.0))


async def ensure(bus: FakeControlTopics) -> None:
    await ensure_own(bus, TOPIC, LANDING_PARTITIONS, LANDING_CONFIG)


async def test_a_topic_that_is_missing_is_created() -> None:
    bus = FakeControlTopics()
    await check_own(bus, TOPIC)
    await ensure(bus)
    assert await bus.partitions(TOPIC) == LANDING_PARTITIONS
    await ensure(bus)


@pytest.mark.parametrize("partition", [0, 2])
async def test_a_topic_with_records_of_others_is_neither_grown_nor_written(partition: int) -> None:
    bus = FakeControlTopics({TOPIC: 3})
    await bus.publish(TOPIC, partition, b"a key", b"a payment")
    for attempt in (ensure(bus), check_own(bus, TOPIC)):
        with pytest.raises(ForeignTopic, match=f"offset 0 of partition {partition}"):
            await attempt
    assert await bus.partitions(TOPIC) == 3


async def test_a_topic_with_records_of_binwright_s_grows() -> None:
    bus = FakeControlTopics({TOPIC: 3})
    await publish_message(bus, TOPIC, 1, CLAIM)
    await ensure(bus)
    assert await bus.partitions(TOPIC) == LANDING_PARTITIONS


@pytest.mark.parametrize("own", [0, 1])
async def test_a_record_of_others_beside_ours_changes_nothing(own: int) -> None:
    """A wrong record is skipped wherever it is read; it makes the topic nobody else's."""
    bus = FakeControlTopics({TOPIC: 3})
    await bus.publish(TOPIC, 0, b"a key", b"odd")
    await publish_message(bus, TOPIC, own, CLAIM)
    await ensure(bus)


async def test_a_topic_with_tombstones_alone_is_like_an_empty_one() -> None:
    """Whose they are is not known; another tool may have removed a group's needs."""
    bus = FakeControlTopics({TOPIC: 3})
    await bus.remove(TOPIC, 0, b"a group")
    await check_own(bus, TOPIC)
    with pytest.raises(ForeignTopic, match="has 3 partitions"):
        await ensure(bus)


async def test_an_empty_topic_that_is_large_enough_is_taken() -> None:
    """The topics may be created by hand, for a user without the right to."""
    bus = FakeControlTopics({TOPIC: LANDING_PARTITIONS})
    await ensure(bus)


async def test_an_empty_topic_of_another_configuration_is_not_grown() -> None:
    bus = FakeControlTopics({TOPIC: 3})
    with pytest.raises(ForeignTopic, match="has 3 partitions and no record of binwright's"):
        await ensure(bus)
    bus.configs[TOPIC] = dict(LANDING_CONFIG)  # as after an interrupted creation
    await ensure(bus)
    assert await bus.partitions(TOPIC) == LANDING_PARTITIONS


async def test_a_topic_that_may_not_be_read_is_written_but_not_grown() -> None:
    bus = FakeControlTopics({TOPIC: LANDING_PARTITIONS})
    bus.unreadable.add(TOPIC)
    with capture_logs() as logs:
        await ensure(bus)
    assert [log["event"] for log in logs] == ["topic.unchecked"]
    bus = FakeControlTopics({TOPIC: 3})
    bus.unreadable.add(TOPIC)
    with pytest.raises(ForeignTopic):
        await ensure(bus)
