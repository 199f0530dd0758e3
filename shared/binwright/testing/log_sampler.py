"""A `LogSampler` of `FakeTopics`, with failures."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import LogSample, LogSampler
from binwright.protocol.selection import Selection
from binwright.testing.data_topics import FakeTopics


async def sample_topics(
    logs: LogSampler, *topics: str
) -> Mapping[str, Mapping[int, LogSample | None]]:
    """Return one sample of these topics."""
    return await logs.sample(Selection(frozenset(topics)), {})


class FakeLogSampler:
    """A `LogSampler` whose partitions grow steadily on the loop's clock.

    Attributes:
        topics: The brokers' state, which tests change.
        latency_s: How long a pass takes.
        late: Partitions whose broker does not reply in time.
        refused: Topics that the client is not authorized to see.
        reports_sizes: Whether the brokers return the sizes of logs.
        passes: How many passes succeeded.
    """

    def __init__(self, topics: FakeTopics, *, latency_s: float = 0.0) -> None:
        """Sample `topics`."""
        self.topics = topics
        self.latency_s = latency_s
        self.late: set[TopicPartition] = set()
        self.refused: set[str] = set()
        self.reports_sizes = True
        self.passes = 0
        self._failures = 0

    def fail_next(self, passes: int = 1) -> None:
        """Make the next passes raise `BrokerUnavailable`."""
        self._failures += passes

    async def sample(
        self, wanted: Selection, measure_batches: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Fit `LogSampler.sample`."""
        await asyncio.sleep(self.latency_s / 2)
        seen = await self.topics.sample(wanted, measure_batches)
        await asyncio.sleep(self.latency_s / 2)
        if self._failures:
            self._failures -= 1
            raise BrokerUnavailable("injected failure")
        self.passes += 1
        return {
            topic: {p: self._visible(TopicPartition(topic, p), s) for p, s in samples.items()}
            for topic, samples in seen.items()
            if topic not in self.refused
        }

    def zones(self, topic: str) -> Mapping[int, Collection[str]]:
        """Fit `LogSampler.zones`."""
        return self.topics.zones(topic)

    def _visible(self, partition: TopicPartition, sample: LogSample | None) -> LogSample | None:
        if sample is None or partition in self.late:
            return None
        return sample if self.reports_sizes else replace(sample, size=None)
