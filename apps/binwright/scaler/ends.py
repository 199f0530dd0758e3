"""Where topics' logs begin and end: from monitors' measurements, or looked up without them."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from typing import NamedTuple

from binwright.kafka.client import EARLIEST, LATEST, ClusterClient, TopicsMetadata
from binwright.kafka.control_records import MESSAGE_MALFORMED
from binwright.kafka.leaders import Leaders, PendingReplies, by_leader
from binwright.kafka.metrics_topic import new_records
from binwright.protocol.errors import BrokerUnavailable, MalformedMessage
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metrics import decode_measurement
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.scaler.decide.lags import WINDOW_S, EndHistory, LogEnds, measured_ends

ENDS_MISSING = LogEvent.warning(
    "ends.missing",
    "The scaler could not look up which brokers lead the topics of scaled groups; no replica is "
    "taken away.",
)
BROKER_LATE = LogEvent.warning(
    "broker.late",
    "A broker did not answer the scaler in time; what was last known of its partitions counts "
    "until it does.",
)

FOLLOWED_S = 10.0
"""A topic whose last measurement is older is looked up: no monitor follows it now."""
STARTS_S = 30.0
"""How old the first offsets of a topic may be: until then, records that are deleted are lag."""
ABSENT_LOOKS = 3
"""So many looks in a row a topic is absent before it does not exist: brokers learn of it later."""


class MeasuredEnds:
    """The last measurement of each topic, as monitors publish them; `run` reads them.

    A measurement is decoded when it is asked for: of those that arrive each second, a scaler uses
    one of each period.
    """

    def __init__(self, bus: ControlTopics, topic: str) -> None:
        """Read this metrics topic."""
        self._bus, self._topic = bus, topic
        self._last: dict[str, tuple[float, bytes]] = {}

    async def run(self) -> None:
        """Read, for ever."""
        async with contextlib.aclosing(new_records(self._bus, self._topic)) as batches:
            async for records in batches:
                for record in records:
                    if record.key is not None and record.value is not None:
                        self._last[record.key.decode(errors="replace")] = (loop_s(), record.value)

    def latest(self, topic: str) -> LogEnds | None:
        """Return the logs of a topic; None: it is to be looked up.

        No monitor follows it, or it takes several messages, or it was deleted.
        """
        at_s, payload = self._last.get(topic, (0.0, b""))
        if not payload or loop_s() - at_s > FOLLOWED_S:
            self._last.pop(topic, None)
            return None
        try:
            measurement = decode_measurement(payload)
        except MalformedMessage as exc:
            log(MESSAGE_MALFORMED, offset=None, reason=exc.reason)
            del self._last[topic]
            return None
        if len(measurement.partitions) != measurement.count or not measurement.count:
            return None
        return measured_ends(measurement, at_s)


class _Offsets(NamedTuple):
    """What one broker has replied."""

    ends: Mapping[tuple[str, int], int]
    starts: Mapping[tuple[str, int], int]


class TopicEnds:
    """The logs of topics, by up to two requests for each broker; fits `ports.EndLookup`.

    Ends are asked for at each look, first offsets every `STARTS_S`. Of a broker that is late (see
    `PendingReplies`) the ends of its partitions are missing.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        measured: MeasuredEnds | None,
        *,
        timeout_s: float = 2.0,
        window_s: float = WINDOW_S,
    ) -> None:
        """Look up through `cluster` what is not in `measured`; rates are those of `window_s`."""
        self._cluster, self._measured, self._timeout_s = cluster, measured, timeout_s
        self._new = EndHistory(window_s=window_s)
        self._histories: dict[str, EndHistory] = {}
        self._known: dict[str, LogEnds] = {}
        self._starts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._starts_s: dict[str, float] = {}  # when a topic's first offsets were asked for
        self._ids: dict[str, str] = {}
        self._absent: Counter[str] = Counter()  # topic -> looks in a row
        self._replies = PendingReplies[_Offsets](timeout_s)
        self.looked_up = 0  # topics that the last pass looked up itself

    async def close(self) -> None:
        """End what is pending."""
        await self._replies.close()

    async def look_up(
        self, topics: Collection[str], windows: Mapping[str, float] | None = None
    ) -> Mapping[str, LogEnds]:
        """Fit `EndLookup.look_up`: each topic's ends have their time."""
        for topic, window_s in (windows or {}).items():
            known = self._histories.get(topic, self._new)
            self._histories[topic] = replace(known, window_s=window_s)
        measured = {t: e for t in topics if self._measured and (e := self._measured.latest(t))}
        rest = sorted(set(topics) - measured.keys())
        self.looked_up = len(rest)
        for topic in measured:
            for looked_up in (self._histories, self._starts, self._starts_s):
                looked_up.pop(topic, None)
        if not topics:
            return {}
        try:
            async with asyncio.timeout(self._timeout_s):
                metadata = await self._cluster.topics(topics, with_ids=True)
        except (BrokerUnavailable, TimeoutError) as exc:
            log(ENDS_MISSING, topics=len(topics), reason=str(exc) or "no reply in time")
            self._known |= measured
        else:
            self._take_metadata(topics, metadata)
            self._known |= {t: logs for t, logs in measured.items() if t in metadata.leaders}
            await self._ask_leaders({t: led for t, led in metadata.leaders.items() if t in rest})
        return {topic: self._ends_of(topic) for topic in topics if topic in self._known}

    def _take_metadata(self, topics: Collection[str], metadata: TopicsMetadata) -> None:
        """Forget what is known of topics that are gone, or made anew."""
        for topic in topics:
            refused = metadata.errors.get(topic, "")
            exists = topic in metadata.leaders
            self._absent[topic] = 0 if exists or refused else self._absent[topic] + 1
            topic_id = metadata.ids.get(topic, "")
            if not exists or topic_id != self._ids.get(topic, topic_id):
                for known in (self._known, self._histories, self._starts, self._starts_s):
                    known.pop(topic, None)
            self._ids[topic] = topic_id
            if refused or self._absent[topic] >= ABSENT_LOOKS:
                self._known[topic] = LogEnds(loop_s(), {}, {}, 0, refused=refused)

    def _ends_of(self, topic: str) -> LogEnds:
        """Return what is known; a partition whose first offset is not known has no end."""
        logs = replace(self._known[topic], topic_id=self._ids.get(topic, ""))
        if topic not in self._starts:
            return logs  # measured, or there is none
        starts = self._starts[topic]
        return replace(logs, ends={p: e for p, e in logs.ends.items() if p in starts})

    async def _ask_leaders(self, leaders: Leaders) -> None:
        """Ask for the ends of these topics, and for first offsets that are too old or missing."""
        now_s = loop_s()
        due = {
            topic: led
            for topic, led in leaders.items()
            if now_s - self._starts_s.get(topic, -inf) >= STARTS_S
            or led.keys() - self._starts[topic].keys()
        }
        self._starts_s |= dict.fromkeys(due, now_s)
        first = by_leader(due)
        await self._replies.round(
            {
                broker: partial(self._ask, broker, led, first.get(broker, {}))
                for broker, led in by_leader(leaders).items()
            }
        )
        self._keep({topic: len(partitions) for topic, partitions in leaders.items()})

    async def _ask(
        self,
        broker: int,
        ends: Mapping[str, Collection[int]],
        starts: Mapping[str, Collection[int]],
    ) -> _Offsets:
        try:
            # In this order a first offset is never behind the end.
            first = await self._cluster.offsets(broker, starts, EARLIEST) if starts else {}
            return _Offsets(await self._cluster.offsets(broker, ends, LATEST), first)
        except BrokerUnavailable as exc:
            log(BROKER_LATE, about=broker, reason=str(exc))
            return _Offsets({}, {})

    def _keep(self, counts: Mapping[str, int]) -> None:
        """Store what has arrived; a broker whose reply is late is logged."""
        ends: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for broker in sorted(self._replies.late()):
            log(BROKER_LATE, about=broker, reason="no reply in time")
        for reply in self._replies.take().values():
            for (topic, number), start in reply.starts.items():
                self._starts[topic][number] = start
            for (topic, number), end in reply.ends.items():
                ends[topic][number] = end
        now_s = loop_s()
        for topic, by_number in ends.items():
            history = self._histories.get(topic, self._new).with_ends(now_s, by_number)
            self._histories[topic] = history
            logs = history.latest(counts.get(topic, len(by_number)))
            self._known[topic] = replace(logs, starts=self._starts[topic])


async def look_closely(
    cluster: ClusterClient, topics: Collection[str], looks: int = 80, every_s: float = 0.1
) -> list[tuple[float, int]]:
    """Return times and the ends of all logs of these topics together, so close after each other.

    Raises:
        BrokerUnavailable: A broker does not answer.
    """
    leaders = by_leader((await cluster.topics(sorted(topics))).leaders)
    samples: list[tuple[float, int]] = []
    for _ in range(looks):
        replies = await asyncio.gather(
            *(cluster.offsets(broker, led, LATEST) for broker, led in leaders.items())
        )
        samples.append((loop_s(), sum(end for reply in replies for end in reply.values())))
        await asyncio.sleep(every_s)
    return samples
