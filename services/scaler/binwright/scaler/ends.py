"""The ends of topics' logs: from monitors' measurements, or looked up where no monitor follows."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

import structlog

from binwright.kafka.client import LATEST, ClusterClient
from binwright.kafka.leaders import Leaders, PendingReplies, by_leader
from binwright.kafka.metrics_topic import new_records
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable, MalformedMessage
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.clock import loop_s
from binwright.scaler.decide.lags import WINDOW_S, EndHistory, LogEnds

log = structlog.get_logger()

FOLLOWED_S = 10.0
"""A topic whose last measurement is older is looked up: no monitor follows it now."""


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
        """Return the ends of a topic; None: no monitor follows it, or it takes several messages."""
        at_s, payload = self._last.get(topic, (0.0, b""))
        if not payload or loop_s() - at_s > FOLLOWED_S:
            self._last.pop(topic, None)
            return None
        try:
            measurement = wire.decode_measurement(payload)
        except MalformedMessage as exc:
            log.warning("message.malformed", offset=None, reason=exc.reason)
            del self._last[topic]
            return None
        if len(measurement.partitions) != measurement.count:
            return None
        fresh = [row for row in measurement.partitions if row.quality != "stale"]
        ends = {row.partition: row.end for row in fresh}
        rates = {row.partition: row.records_per_s for row in fresh if row.records_per_s is not None}
        return LogEnds(at_s, ends, rates, measurement.count)


class TopicEnds:
    """The ends of topics, by one request for each broker; fits `ports.EndLookup`.

    Of a broker that is late (see `PendingReplies`) the ends of its partitions are missing.
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
        self._replies = PendingReplies[Mapping[tuple[str, int], int]](timeout_s)
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
        self._known.update(measured)
        if rest:
            try:
                async with asyncio.timeout(self._timeout_s):
                    leaders = (await self._cluster.topics(rest)).leaders
            except (BrokerUnavailable, TimeoutError) as exc:
                log.warning("ends.missing", topics=len(rest), reason=str(exc) or "no reply in time")
            else:
                for topic in rest:
                    if topic not in leaders:  # deleted
                        self._known.pop(topic, None)
                        self._histories.pop(topic, None)
                await self._ask_leaders(leaders)
        for topic in measured:
            self._histories.pop(topic, None)
        return {topic: self._known[topic] for topic in topics if topic in self._known}

    async def _ask_leaders(self, leaders: Leaders) -> None:
        await self._replies.round(
            {broker: partial(self._ask, broker, led) for broker, led in by_leader(leaders).items()}
        )
        self._keep({topic: len(partitions) for topic, partitions in leaders.items()})

    async def _ask(
        self, broker: int, partitions: Mapping[str, Collection[int]]
    ) -> Mapping[tuple[str, int], int]:
        try:
            return await self._cluster.offsets(broker, partitions, LATEST)
        except BrokerUnavailable as exc:
            log.warning("broker.late", about=broker, reason=str(exc))
            return {}

    def _keep(self, counts: Mapping[str, int]) -> None:
        """Store what has arrived; a broker whose reply is late is logged."""
        ends: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for broker in sorted(self._replies.late()):
            log.warning("broker.late", about=broker, reason="no reply in time")
        for reply in self._replies.take().values():
            for (topic, number), end in reply.items():
                ends[topic][number] = end
        now_s = loop_s()
        for topic, by_number in ends.items():
            history = self._histories.get(topic, self._new).with_ends(now_s, by_number)
            self._histories[topic] = history
            self._known[topic] = history.latest(counts.get(topic, len(by_number)))


async def look_closely(
    cluster: ClusterClient, topics: Collection[str], looks: int = 80, every_s: float = 0.1
) -> list[tuple[float, int]]:
    """Return times and the ends of all logs of these topics together, so close after each other.

    Raises:
        BrokerUnavailable: A broker does not answer.
    """
    leaders = by_leader((await cluster.topics(sorted(topics))).leaders)
    found: list[tuple[float, int]] = []
    for _ in range(looks):
        replies = await asyncio.gather(
            *(cluster.offsets(broker, led, LATEST) for broker, led in leaders.items())
        )
        found.append((loop_s(), sum(end for reply in replies for end in reply.values())))
        await asyncio.sleep(every_s)
    return found
