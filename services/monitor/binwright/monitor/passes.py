"""The monitor's loop: sample, measure, publish, once every interval."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import ceil
from uuid import uuid4

from binwright.kafka.control_records import METRICS_CONFIG, METRICS_PARTITION
from binwright.kafka.own_topics import ensure_own
from binwright.kafka.publishing import publish_message
from binwright.monitor.decide.estimator import TopicRates
from binwright.protocol.errors import ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.ports.kafka import ControlTopics, LogSample, LogSampler
from binwright.protocol.selection import Selection
from binwright.runtime.clock import wall_ms
from binwright.runtime.logs import log
from binwright.runtime.settings.monitor import MonitorSettings

PASS_FAILED = LogEvent.warning(
    "pass.failed", "A pass of the monitor failed; the next one follows after a pause."
)
PASS_RECOVERED = LogEvent.info("pass.recovered", "The monitor measures again.")
TOPICS_MEASURED = LogEvent.debug(
    "topics.measured", "A pass of the monitor has published its measurements."
)
TOPIC_GONE = LogEvent.warning(
    "topic.gone", "A topic was missing in three passes; its partitions are given up."
)

LONGEST_PAUSE_S = 30.0
MESSAGE_PARTITIONS = 4_000
"""Partitions per message: at most 200 bytes each, below the brokers' limit of 1 MiB."""
GONE_PASSES = 3
"""A topic missing in so many consecutive passes is gone; a broker may lag for a shorter time."""
GONE_REPORTED_S = 600.0
"""How long a topic that only matched a pattern is reported as gone; a named one: always."""


class Measurer:
    """Samples the selected topics, and measures how fast they are written."""

    def __init__(
        self, logs: LogSampler, selection: Selection, *, interval_s: float, window_s: float
    ) -> None:
        """Sample through `logs` every `interval_s`; rates are those of `window_s` seconds."""
        self._logs, self._interval_s, self._window_s = logs, interval_s, window_s
        self._selection = self._measured_selection = (
            selection  # the current one; that of the last pass
        )
        self._name = str(uuid4())
        self._number = 0
        self._rates: dict[str, TopicRates] = {}
        self._known: dict[str, tuple[int, ...]] = {}  # topic -> its partitions
        self._missing: Counter[str] = Counter()  # topic -> consecutive passes without it

    def set_selection(self, selection: Selection) -> None:
        """Measure this selection from the next pass on."""
        self._selection = selection

    async def measure(self) -> list[Measurement]:
        """Return the measurements of one pass; raise an `ExternalError`."""
        loop = asyncio.get_running_loop()
        if self._measured_selection is not self._selection:
            self._measured_selection = self._selection
            self._forget_unselected()
        lacking = {topic: rates.lacking_sizes() for topic, rates in self._rates.items()}
        asked = loop.time()
        samples = await self._logs.sample(
            self._selection.including({*self._known, *self._missing}), lacking
        )
        sampled_at = (asked + loop.time()) / 2  # the samples are from some time in between
        at_ms = wall_ms()
        self._number += 1
        self._update_topics(samples)
        return [
            part
            for topic in sorted({*self._known, *self._reported_gone()})
            for part in self._messages(
                topic, at_ms, self._rates_of(topic, sampled_at, samples.get(topic))
            )
        ]

    def _forget_unselected(self) -> None:
        """Forget topics that are no longer selected; they are not reported as gone."""
        for topic in {*self._known, *self._missing}:
            if not self._selection.includes(topic):
                self._known.pop(topic, None)
                self._rates.pop(topic, None)
                del self._missing[topic]

    def _update_topics(self, sampled: Mapping[str, Mapping[int, LogSample | None]]) -> None:
        """Record which topics exist, and which are missing."""
        for topic, samples in sampled.items():
            if samples:
                self._known[topic] = tuple(samples)
                del self._missing[topic]
            else:
                self._missing[topic] += 1
                # A topic that reappears starts without a history.
                self._known.pop(topic, None)
                self._rates.pop(topic, None)
                if self._missing[topic] == GONE_PASSES:
                    log(TOPIC_GONE, topic=topic)

    def _reported_gone(self) -> Iterator[str]:
        """Return the topics to report as gone."""
        last = GONE_PASSES + ceil(GONE_REPORTED_S / self._interval_s)
        for topic, passes in list(self._missing.items()):
            if passes > last and topic not in self._selection.topics:
                del self._missing[topic]
            elif passes >= GONE_PASSES:
                yield topic

    def _rates_of(
        self, topic: str, sampled_at: float, samples: Mapping[int, LogSample | None] | None
    ) -> tuple[PartitionRate, ...]:
        """Return the partitions' rates: none of a topic that is gone, stale ones if not sampled."""
        if topic not in self._known:
            return ()
        rates = self._rates.setdefault(topic, TopicRates(self._window_s))
        return rates.feed(sampled_at, samples or dict.fromkeys(self._known[topic]))

    def _messages(
        self, topic: str, at_ms: int, partitions: tuple[PartitionRate, ...]
    ) -> Iterator[Measurement]:
        zones = self._logs.zones(topic)
        for first in range(0, len(partitions) or 1, MESSAGE_PARTITIONS):
            some = partitions[first : first + MESSAGE_PARTITIONS]
            yield Measurement(
                topic=topic,
                at_ms=at_ms,
                monitor=self._name,
                number=self._number,
                interval_s=self._interval_s,
                count=len(partitions),
                partitions=some,
                zones=_by_zone(zones, some) if zones else {},
            )


class Monitor:
    """Samples the selected topics once per interval and publishes their measurements.

    Attributes:
        measurer: Has the selection of topics.
        last_error: Why the last pass failed; "" if it succeeded.
    """

    def __init__(
        self,
        logs: LogSampler,
        bus: ControlTopics,
        selection: Selection,
        config: MonitorSettings,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Sample `selection` topics through `logs`, publish on `bus`; call `beat` every pass."""
        self.last_error = "no pass yet"
        self._beat = beat
        self._bus, self._config = bus, config
        self.measurer = Measurer(
            logs, selection, interval_s=config.interval_s, window_s=config.window_s
        )
        self._has_topic = False

    async def run(self) -> None:
        """Make a pass every `interval_s` until cancelled.

        Passes keep to the grid of intervals: a long pass costs only those that it overlaps. While
        brokers fail, the pauses between passes grow; earlier samples bridge the gap.
        """
        loop = asyncio.get_running_loop()
        begin, count = loop.time(), 0
        failures = 0
        while True:
            self._beat("pass")
            try:
                await self._pass()
            except ExternalError as exc:
                failures += 1
                self.last_error = str(exc)
                self._has_topic = False  # it may have been deleted
                rest_s = min(self._config.interval_s * 2 ** min(failures, 10), LONGEST_PAUSE_S)
                log(PASS_FAILED, reason=str(exc), failures=failures, rest_s=rest_s)
                await asyncio.sleep(rest_s)
            else:
                if failures:
                    log(PASS_RECOVERED, failures=failures)
                failures, self.last_error = 0, ""
            count = max(count + 1, ceil((loop.time() - begin) / self._config.interval_s))
            await asyncio.sleep(begin + count * self._config.interval_s - loop.time())

    async def _pass(self) -> None:
        if not self._has_topic:
            await ensure_own(self._bus, self._config.topic, 1, METRICS_CONFIG)
            self._has_topic = True
        measurements = await self.measurer.measure()
        await asyncio.gather(*map(self._publish, measurements))
        log(TOPICS_MEASURED, messages=len(measurements))

    async def _publish(self, measurement: Measurement) -> None:
        await publish_message(self._bus, self._config.topic, METRICS_PARTITION, measurement)


def _by_zone(
    zones: Mapping[int, Collection[str]], partitions: Iterable[PartitionRate]
) -> dict[str, tuple[int, ...]]:
    """Return the numbers of these partitions by the zones in which they can be read."""
    readable: defaultdict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        for zone in zones.get(partition.partition, ()):
            readable[zone].append(partition.partition)
    return {zone: tuple(numbers) for zone, numbers in sorted(readable.items())}
