"""What a monitor sees of `FakeTopics`, with the troubles that a monitor has."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

from binwright.core.errors import BrokerUnavailable
from binwright.core.model import TopicPartition
from binwright.core.ports import Logs, LogSample
from binwright.core.selection import Selection
from binwright.testing.intake import FakeTopics


async def look(logs: Logs, *topics: str) -> Mapping[str, Mapping[int, LogSample | None]]:
    """Return one sample of these topics."""
    return await logs.sample(Selection(frozenset(topics)), {})


class FakeLogs:
    """A `Logs` whose partitions grow steadily on the loop's own clock.

    `topics` holds the truth: create and delete there, let partitions grow, let retention take
    records, and set a log's leader.

    Attributes:
        topics: What there is.
        latency_s: How long a pass takes.
        late: Partitions whose broker does not answer in time.
        refused: Topics of which nothing is told.
        tells_sizes: Whether the brokers let us know sizes.
        passes: How many passes were answered.
    """

    def __init__(self, topics: FakeTopics, *, latency_s: float = 0.0) -> None:
        """Look at `topics`, for `latency_s` each time."""
        self.topics = topics
        self.latency_s = latency_s
        self.late: set[TopicPartition] = set()
        self.refused: set[str] = set()
        self.tells_sizes = True
        self.passes = 0
        self._failures = 0

    def fail_next(self, passes: int = 1) -> None:
        """Let no broker answer in the next passes."""
        self._failures += passes

    async def sample(
        self, wanted: Selection, weigh: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return every partition of each topic wanted; see `Logs.sample`."""
        await asyncio.sleep(self.latency_s / 2)
        seen = await self.topics.sample(wanted, weigh)
        await asyncio.sleep(self.latency_s / 2)
        if self._failures:
            self._failures -= 1
            raise BrokerUnavailable("told to fail")
        self.passes += 1
        return {
            topic: {p: self._told(TopicPartition(topic, p), s) for p, s in samples.items()}
            for topic, samples in seen.items()
            if topic not in self.refused
        }

    def _told(self, partition: TopicPartition, sample: LogSample | None) -> LogSample | None:
        if sample is None or partition in self.late:
            return None
        return sample if self.tells_sizes else replace(sample, size=None)
