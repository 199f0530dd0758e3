"""Implements the port `LogSampler`: samples the log of every partition on its leader."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Self

import structlog

from binwright.kafka.client import (
    EARLIEST,
    LATEST,
    NO_LEADER,
    ClusterClient,
    TopicsMetadata,
    UnsupportedVersion,
)
from binwright.kafka.log_dirs import DescribeLogDirs, is_refused, sizes
from binwright.monitor.batch_sizes import BatchSampler, Key
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.ports.kafka import LogSample
from binwright.protocol.selection import PatternMatcher, Selection
from binwright.runtime.settings import KafkaSettings

log = structlog.get_logger()

LIST_S = 5.0
"""Between listings of all topics, to match patterns: a large cluster's list is long."""

Partitions = Mapping[str, Collection[int]]
Samples = Mapping[Key, LogSample]

NO_SIZES = (
    "this user needs the right DESCRIBE on the CLUSTER. Until it has it, rates are estimated: "
    "records/s x bytes per record of batches looked at now and then (needs READ on the topics)"
)


class KafkaLogs:
    """Sizes and offsets of partitions; see `LogSampler`. An async context manager.

    Each pass begins with the partitions' leaders, so that new, moved and deleted partitions show in
    the same pass. Then all leaders are queried concurrently: for end offsets, right after them for
    sizes, and for start offsets. Missing data is logged when it begins and when it ends.
    """

    def __init__(
        self, kafka: KafkaSettings, *, answer_s: float = 2.0, sizes_per_pass: int = 20_000
    ) -> None:
        """Wait `answer_s` for brokers in a pass; query `sizes_per_pass` sizes, of more in turns.

        The samples of a late broker are None in that pass and until it has replied; later passes
        do not wait for it.
        """
        self._answer_s = min(answer_s, kafka.request_timeout_s)
        self._sizes_per_pass = sizes_per_pass
        self._cluster = ClusterClient(kafka, answer_s=self._answer_s)
        self._queries: dict[int, asyncio.Task[Samples]] = {}  # by broker
        self._batch_sampler = BatchSampler(self._cluster, self._log_change)
        self._passes = 0
        self._matcher = PatternMatcher()
        self._listed: tuple[re.Pattern[str], ...] = ()  # the patterns of the last listing
        self._list_at = 0.0
        self._logged: defaultdict[str, dict[str, str]] = defaultdict(dict)

    async def __aenter__(self) -> Self:
        """Connect; raise `BrokerUnavailable`, which names what to check."""
        await self._cluster.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        for task in self._queries.values():
            task.cancel()
        await asyncio.gather(*self._queries.values(), return_exceptions=True)
        await self._cluster.close()

    async def sample(
        self, wanted: Selection, measure_batches: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return every partition of each wanted topic; see `LogSampler.sample`.

        A size is None if its broker did not report it, or if it is not queried in this pass.
        """
        found = await self._topics(wanted)
        self._passes += 1
        samples: dict[tuple[str, int], LogSample] = {}
        for reply in await self._collect(_by_leader(found), _urgent(measure_batches)):
            samples.update(reply)
        return {
            topic: {partition: samples.get((topic, partition)) for partition in leaders}
            for topic, leaders in found.leaders.items()
        } | {t: {} for t in wanted.topics if t not in found.leaders and t not in found.errors}

    async def _topics(self, wanted: Selection) -> TopicsMetadata:
        """Look up the named topics, and every `LIST_S` those that match a pattern."""
        now = asyncio.get_running_loop().time()
        if not wanted.patterns or (wanted.patterns == self._listed and now < self._list_at):
            found = await self._cluster.topics(wanted.topics)
        else:
            everything = await self._cluster.topics(None)
            # The list lacks topics this user may not see; queried by name, Kafka gives the reason.
            named = await self._cluster.topics(wanted.topics - everything.leaders.keys())
            matching = self._matcher.matching(wanted, everything.leaders) - everything.internal
            leaders = {
                topic: partitions
                for topic, partitions in everything.leaders.items()
                if topic in wanted.topics or topic in matching
            }
            found = TopicsMetadata({**leaders, **named.leaders}, named.errors)
            self._listed, self._list_at = wanted.patterns, now + LIST_S
        for topic in wanted.topics:
            why = found.errors.get(topic, "there is no such topic")
            self._log_change("topic.missing", topic, None if found.leaders.get(topic) else why)
        return found

    async def _collect(
        self, by_leader: Mapping[int, Partitions], measure_batches: Sequence[Key]
    ) -> list[Samples]:
        """Query every leader without a pending query; return the samples that arrived in time."""
        idle = [broker for broker in by_leader if broker not in self._queries]
        for broker in idle:
            self._queries[broker] = asyncio.create_task(
                self._sample_broker(broker, by_leader[broker], measure_batches)
            )
        if idle:
            await asyncio.wait([self._queries[b] for b in idle], timeout=self._answer_s)
        done = [broker for broker, task in self._queries.items() if task.done()]
        for broker in self._queries.keys() - done:
            self._log_change("broker.late", broker, f"no reply within {self._answer_s:g} s")
        return [self._queries.pop(broker).result() for broker in done]

    async def _sample_broker(
        self, broker: int, partitions: Partitions, measure_batches: Sequence[Key]
    ) -> Samples:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        try:
            async with asyncio.timeout(2 * self._answer_s):  # to connect, and to reply
                ends, (partition_sizes, at), starts = await asyncio.gather(
                    self._cluster.offsets(broker, partitions, LATEST),
                    self._sizes(broker, self._sizes_in_turn(partitions)),
                    self._cluster.offsets(broker, partitions, EARLIEST),
                )
                bytes_per_record = await self._batch_sampler.measure_batches(
                    broker, measure_batches, ends
                )
        except (BrokerUnavailable, TimeoutError) as exc:
            self._log_change("broker.late", broker, str(exc) or "no reply in time")
            return {}
        self._log_change("broker.late", broker, None)
        at = (asked + at) / 2  # the sample is from some time in between
        return {
            key: LogSample(
                broker,
                min(starts[key], end),
                end,
                partition_sizes.get(key),
                at,
                bytes_per_record.get(key),
            )
            for key, end in ends.items()
            if key in starts
        }

    def _sizes_in_turn(self, partitions: Partitions) -> Partitions:
        """Return the partitions whose sizes are queried in this pass: every nth of many."""
        turns = -(-sum(map(len, partitions.values())) // self._sizes_per_pass)
        if turns <= 1:
            return partitions
        now = self._passes % turns
        return {t: [p for p in numbers if p % turns == now] for t, numbers in partitions.items()}

    async def _sizes(
        self, broker: int, partitions: Partitions
    ) -> tuple[Mapping[tuple[str, int], int], float]:
        """Return the bytes of each partition, and the time of the reply, s."""
        partition_sizes: Mapping[tuple[str, int], int] = {}
        fault = None
        try:
            reply = await self._cluster.send_request(broker, DescribeLogDirs(partitions))
        except UnsupportedVersion as exc:
            fault = str(exc)
        else:
            fault = NO_SIZES if is_refused(reply) else None
            partition_sizes = sizes(reply)
        self._log_change("sizes.unavailable", broker, fault)
        return partition_sizes, asyncio.get_running_loop().time()

    def _log_change(self, event: str, about: object, reason: str | None) -> None:
        """Log `event` when it begins and when it ends (its reason is None)."""
        reasons = self._logged[event]
        if reason is None:
            if reasons.pop(str(about), None):
                log.info("trouble.ended", trouble=event, about=about)
        elif str(about) not in reasons:
            reasons[str(about)] = reason
            log.warning(event, about=about, reason=reason)


def _urgent(measure_batches: Mapping[str, Collection[int]]) -> Sequence[Key]:
    """Return the partitions to sample batches of, the most urgent of each topic first."""
    ranked = sorted(
        (rank, t, p) for t, some in measure_batches.items() for rank, p in enumerate(some)
    )
    return [(topic, partition) for _, topic, partition in ranked]


def _by_leader(found: TopicsMetadata) -> Mapping[int, Partitions]:
    by_leader: defaultdict[int, defaultdict[str, list[int]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for topic, leaders in found.leaders.items():
        for partition, broker in leaders.items():
            if broker != NO_LEADER:
                by_leader[broker][topic].append(partition)
    return by_leader
