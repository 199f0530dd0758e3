"""Samples the log of every partition on its leader: size, offsets, and batches for want of a size.

Where a leader returns no sizes, bytes per record are estimated from the headers of batches. The
sampled batch is that of a random offset among those new since the last sample. So a batch is
sampled in proportion to its records, and the mean of bytes / offsets over samples is that of the
log.
"""

import asyncio
import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Self

from aiokafka.errors import NoError, for_code
from aiokafka.protocol.fetch import FetchRequest

from binwright.kafka.client import (
    EARLIEST,
    LATEST,
    ClusterClient,
    TopicsMetadata,
    UnsupportedVersion,
)
from binwright.kafka.leaders import PendingReplies, by_leader
from binwright.kafka.log_dirs import DescribeLogDirs, is_refused, sizes
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.protocol.patterns import Pattern
from binwright.protocol.ports.kafka import LogSample
from binwright.protocol.selection import PatternMatcher, Selection
from binwright.runtime.logs import log
from binwright.runtime.settings.kafka import KafkaSettings

BATCHES_UNAVAILABLE = LogEvent.warning(
    "batches.unavailable",
    "The monitor may not read a topic, so it cannot estimate bytes per record from its batches.",
)
BROKER_LATE = LogEvent.warning(
    "broker.late",
    "A broker did not answer the monitor in time; its partitions are `stale`, or missing, until "
    "it does.",
)
TOPIC_MISSING = LogEvent.warning("topic.missing", "A topic that is to be measured does not exist.")
SIZES_UNAVAILABLE = LogEvent.warning(
    "sizes.unavailable",
    "A broker does not return log sizes; rates are estimated from records and batches.",
)
MEASUREMENT_RECOVERED = LogEvent.info(
    "measurement.recovered", "What the event in `after` reported of a broker or topic is over."
)

LIST_S = 5.0
"""Between listings of all topics, to match patterns: a large cluster's list is long."""
MATCHING_S = 0.5
"""Of a pass, to match new topics; those that are left are matched in the next ones."""

Key = tuple[str, int]
Partitions = Mapping[str, Collection[int]]
Samples = Mapping[Key, LogSample]
LogChange = Callable[[LogEvent, object, str | None], None]

SAMPLES = 50
"""At most, per broker and pass: the broker responds with a whole batch."""
GOLDEN_RATIO = 0.6180339887498949
_HEADER = struct.Struct(">qi4xb6xi")  # base offset, bytes that follow, format, last offset's delta
_BEFORE = 12  # bytes before those that the length counts
_FORMAT = 2  # since Kafka 0.11; older ones have no such header

NO_SIZES = (
    "this user needs the right DESCRIBE on the CLUSTER. Until it has it, rates are estimated: "
    "records/s x bytes per record of batches looked at now and then (needs READ on the topics)"
)
NO_BATCHES = "this user needs the right READ on the topic too; without it its rates are not known"


def bytes_per_offset(records: bytes) -> float | None:
    """Return the first batch's bytes per offset; None if its header is incomplete or older."""
    if len(records) < _HEADER.size:
        return None
    _, length, version, delta = _HEADER.unpack_from(records)
    return (_BEFORE + length) / (delta + 1) if version == _FORMAT else None


class BatchSampler:
    """Samples batches among the records new since the last sample of each partition."""

    def __init__(self, cluster: ClusterClient, log_change: LogChange) -> None:
        """Sample through `cluster`; `log_change` logs refusals when they begin and end."""
        self._cluster, self._log_change = cluster, log_change
        self._ends: dict[Key, int] = {}
        self._fraction = 0.0

    async def measure_batches(
        self, broker: int, wanted: Sequence[Key], ends: Mapping[Key, int]
    ) -> Mapping[Key, float]:
        """Return bytes per offset of a recent batch of some of the partitions `broker` leads.

        Raises:
            BrokerUnavailable: It does not answer.
        """
        keys = [key for key in wanted if ends.get(key)][:SAMPLES]
        ratios = await asyncio.gather(*(self._sample(broker, key, ends[key]) for key in keys))
        return {key: ratio for key, ratio in zip(keys, ratios, strict=True) if ratio is not None}

    async def _sample(self, broker: int, key: Key, end: int) -> float | None:
        topic, partition = key
        since = min(self._ends.get(key, end - 1), end - 1)
        self._ends[key] = end
        self._fraction = (self._fraction + GOLDEN_RATIO) % 1.0
        offset = since + int(self._fraction * (end - since))
        # One partition per request: of the first one the broker sends a whole batch, whatever the
        # limit. No wait: the records exist, unless retention has deleted them.
        request = FetchRequest(0, 0, 1, 0, [(topic, [(partition, offset, 1)])])
        reply: Any = await self._cluster.send_request(broker, request)
        for _, rows in reply.topics:
            for _, code, *_, records in rows:
                error = for_code(code)
                denied = error.__name__ == "TopicAuthorizationFailedError"
                self._log_change(BATCHES_UNAVAILABLE, topic, NO_BATCHES if denied else None)
                return bytes_per_offset(records) if error is NoError and records else None
        return None


class KafkaLogs:
    """Sizes and offsets of partitions; see `LogSampler`. An async context manager.

    Each pass begins with the partitions' leaders, so that new, moved and deleted partitions show in
    the same pass. Then all leaders are queried concurrently: for end offsets, right after them for
    sizes, and for start offsets. Missing data is logged when it begins and when it ends.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        *,
        broker_timeout_s: float = 2.0,
        sizes_per_pass: int = 20_000,
        follower_fetching: bool = False,
    ) -> None:
        """Wait `broker_timeout_s` in a pass; query `sizes_per_pass` sizes, of more in turns.

        With `follower_fetching` brokers let consumers read from any replica.

        The samples of a late broker are None in that pass and until it has replied; later passes
        do not wait for it.
        """
        self._broker_timeout_s = min(broker_timeout_s, kafka.request_timeout_s)
        self._sizes_per_pass, self._follower_fetching = sizes_per_pass, follower_fetching
        self._racks: Mapping[str, Mapping[int, Sequence[str]]] = {}  # see `TopicsMetadata`
        self._cluster = ClusterClient(kafka, broker_timeout_s=self._broker_timeout_s)
        self._replies = PendingReplies[Samples](self._broker_timeout_s)
        self._batch_sampler = BatchSampler(self._cluster, self._log_change)
        self._passes = 0
        self._matcher = PatternMatcher()
        self._listed: tuple[Pattern, ...] = ()  # the patterns of the last listing
        self._list_at = 0.0
        self._logged: defaultdict[str, dict[str, str]] = defaultdict(dict)

    async def __aenter__(self) -> Self:
        """Connect; raise `BrokerUnavailable`, which names what to check."""
        await self._cluster.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._replies.close()
        await self._cluster.close()

    async def sample(
        self, wanted: Selection, measure_batches: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return every partition of each wanted topic; see `LogSampler.sample`.

        A size is None if its broker did not report it, or if it is not queried in this pass.
        """
        topics = await self._topics(wanted)
        self._racks = topics.racks
        self._passes += 1
        urgent = _urgent(measure_batches)
        samples = dict(self._take_replies())  # of brokers that were late in the last pass
        await self._replies.round(
            {
                broker: partial(self._sample_broker, broker, led, urgent)
                for broker, led in by_leader(topics.leaders).items()
            }
        )
        samples |= self._take_replies()
        for broker in sorted(self._replies.late()):
            self._log_change(BROKER_LATE, broker, f"no reply within {self._broker_timeout_s:g} s")
        return {
            topic: {partition: samples.get((topic, partition)) for partition in leaders}
            for topic, leaders in topics.leaders.items()
        } | {t: {} for t in wanted.topics if t not in topics.leaders and t not in topics.errors}

    def zones(self, topic: str) -> Mapping[int, Collection[str]]:
        """Return where partitions can be read; see `LogSampler.zones`.

        Of replicas as they are assigned: which of them lead or lag at a moment changes too often.
        """
        most = None if self._follower_fetching else 1
        racks = self._racks.get(topic, {})
        return {number: {*some[:most]} - {""} for number, some in racks.items()}

    def _take_replies(self) -> Samples:
        replies = self._replies.take().values()
        return {key: sample for reply in replies for key, sample in reply.items()}

    async def _topics(self, wanted: Selection) -> TopicsMetadata:
        """Look up the named topics, and every `LIST_S` those that match a pattern."""
        now = asyncio.get_running_loop().time()
        if not wanted.patterns or (wanted.patterns == self._listed and now < self._list_at):
            metadata = await self._cluster.topics(wanted.topics)
        else:
            everything = await self._cluster.topics(None)
            # The list lacks topics this user may not see; queried by name, Kafka gives the reason.
            named = await self._cluster.topics(wanted.topics - everything.leaders.keys())
            until = asyncio.get_running_loop().time() + MATCHING_S
            matching = self._matcher.matching(
                wanted,
                everything.leaders.keys() - everything.internal,
                lambda: asyncio.get_running_loop().time() < until,
            )
            leaders = {
                topic: partitions
                for topic, partitions in everything.leaders.items()
                if topic in wanted.topics or topic in matching
            }
            racks = {**everything.racks, **named.racks}
            metadata = TopicsMetadata({**leaders, **named.leaders}, named.errors, racks=racks)
            self._listed = wanted.patterns
            self._list_at = now + (LIST_S if self._matcher.complete else 0.0)
        for topic in wanted.topics:
            why = metadata.errors.get(topic, "there is no such topic")
            self._log_change(TOPIC_MISSING, topic, None if metadata.leaders.get(topic) else why)
        return metadata

    async def _sample_broker(
        self, broker: int, partitions: Partitions, measure_batches: Sequence[Key]
    ) -> Samples:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        try:
            async with asyncio.timeout(2 * self._broker_timeout_s):  # to connect, and to reply
                ends, (partition_sizes, at), starts = await asyncio.gather(
                    self._cluster.offsets(broker, partitions, LATEST),
                    self._sizes(broker, self._sizes_in_turn(partitions)),
                    self._cluster.offsets(broker, partitions, EARLIEST),
                )
                bytes_per_record = await self._batch_sampler.measure_batches(
                    broker, measure_batches, ends
                )
        except (BrokerUnavailable, TimeoutError) as exc:
            self._log_change(BROKER_LATE, broker, str(exc) or "no reply in time")
            return {}
        self._log_change(BROKER_LATE, broker, None)
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
        self._log_change(SIZES_UNAVAILABLE, broker, fault)
        return partition_sizes, asyncio.get_running_loop().time()

    def _log_change(self, event: LogEvent, about: object, reason: str | None) -> None:
        """Log `event` when it begins and when it ends (its reason is None)."""
        reasons = self._logged[event]
        if reason is None:
            if reasons.pop(str(about), None):
                log(MEASUREMENT_RECOVERED, after=event, about=about)
        elif str(about) not in reasons:
            reasons[str(about)] = reason
            log(event, about=about, reason=reason)


def _urgent(measure_batches: Mapping[str, Collection[int]]) -> Sequence[Key]:
    """Return the partitions to sample batches of, the most urgent of each topic first."""
    ranked = sorted(
        (rank, t, p) for t, some in measure_batches.items() for rank, p in enumerate(some)
    )
    return [(topic, partition) for _, topic, partition in ranked]
