"""A group that runs somewhere: its history is read, and nothing is published."""

from collections.abc import Callable
from dataclasses import dataclass

from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.timings.live.history import HistoryRange
from binwright.lab.timings.outcome import Timings
from binwright.protocol.errors import TopicMissing
from binwright.runtime.settings import Settings


@dataclass(frozen=True, slots=True)
class RunningGroup:
    """The group of these settings, in a range of seconds since 1970."""

    settings: Settings
    since_s: float
    until_s: float
    progress: Callable[[float], None]

    async def run(self) -> Timings:
        """Read the range, up to its end if that is still to come.

        Raises:
            TopicMissing: There is no such group, or no metrics topic.
            ExternalError: Kafka does not answer.
        """
        async with KafkaControlTopics(self.settings.kafka, read_only=True) as bus:
            if not await bus.partitions(self.settings.metadata_topic):
                name, topic = self.settings.group, self.settings.metadata_topic
                raise TopicMissing(f"there is no group {name} here: no topic {topic}")
            read = HistoryRange(self.settings, self.since_s, self.until_s, self.progress)
            return await read.timings(bus)
