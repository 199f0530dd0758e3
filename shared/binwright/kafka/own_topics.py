"""Tells binwright's own topics from others of the same name: by the records in them.

A topic's configuration has no room for a mark, and a record that is written as one would be deleted
with age. But each record of binwright's has its kind in the value, and a key that follows from it.
"""

from collections.abc import Mapping

from binwright.protocol.errors import ForeignTopic
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.wire import is_message
from binwright.runtime.logs import log

TOPIC_UNCHECKED = LogEvent.info(
    "topic.unchecked",
    "This user may not read a topic, so who made it is not known; it is not grown.",
)

LOOKED_AT = 16  # partitions; the first one of most topics has records, where any has


async def ensure_own(
    bus: ControlTopics, topic: str, partitions: int, config: Mapping[str, str]
) -> None:
    """Create a topic of binwright's, or add partitions to it; see `ControlTopics.ensure`.

    Partitions are added to an empty topic only if it has `config`.

    Raises:
        ForeignTopic: There is one of this name that binwright did not make.
        BrokerUnavailable: Kafka refuses, or is not done in time.
    """
    present = await bus.partitions(topic)
    known = await _is_known(bus, topic, min(present, LOOKED_AT))
    if 0 < present < partitions and not known:
        description = await bus.describe(topic, list(config))
        if description.config != config:
            raise ForeignTopic(
                f"topic {topic} has {present} partitions and no record of binwright's, so "
                f"binwright adds none; it needs {partitions}. {_remedy(topic)}"
            )
    await bus.ensure(topic, partitions, config)


async def check_own(bus: ControlTopics, topic: str) -> None:
    """Check that nothing but binwright has written to a topic; one that is missing is fine.

    Raises:
        ForeignTopic: There are records in it, and they are not binwright's.
        BrokerUnavailable: No broker replies.
    """
    await _is_known(bus, topic, min(await bus.partitions(topic), LOOKED_AT))


async def _is_known(bus: ControlTopics, topic: str, partitions: int) -> bool:
    """Whether the topic has records of binwright's; it may be empty, or not readable here.

    One partition with them is enough: whoever may write can leave a record in another one.
    """
    foreign = ""
    for partition in range(partitions):
        oldest = await bus.oldest(topic, partition)
        if oldest is None:
            log(TOPIC_UNCHECKED, topic=topic, reason="this user may not read it")
            return False
        if any(is_message(record.key, record.value) for record in oldest):
            return True
        others = [record for record in oldest if record.value is not None]  # no tombstones
        if others:
            foreign = foreign or f"offset {others[0].offset} of partition {partition}"
    if foreign:
        raise ForeignTopic(
            f"topic {topic} has records that are not binwright's (the first one is at {foreign}), "
            f"so binwright neither writes to it nor adds partitions. {_remedy(topic)}"
        )
    return False


def _remedy(topic: str) -> str:
    return (
        f"Give the group, or the setting that names it, another name; or, if {topic} is not in "
        "use, delete it"
    )
