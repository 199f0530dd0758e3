"""The monitor's loop: sample, measure, publish, once every interval."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from uuid import uuid4

import structlog

from binwright.core.errors import WorldError
from binwright.core.messages import Measurement, PartitionRate
from binwright.core.ports import Bus, Logs, LogSample
from binwright.core.rate import TopicRates
from binwright.core.selection import Selection
from binwright.shell.letters import METRICS_CONFIG, METRICS_PARTITION, post
from binwright.shell.settings import MonitorSettings

log = structlog.get_logger()

LONGEST_REST_S = 30.0
LARGEST_PART = 4_000
"""Partitions in one message: of at most 160 bytes each, well below a broker's limit of 1 MiB."""
GONE_PASSES = 3
"""A topic that is missing in so many passes on end is gone: a broker may know less for a while."""
GONE_SAID_S = 600.0
"""How long it is said of a topic that nobody named; of one named in the settings for ever."""


class Watch:
    """One monitor: the topics it measures, and what it knows of them.

    Attributes:
        trouble: Why the last pass failed, in words; empty when it did not.
    """

    def __init__(
        self,
        logs: Logs,
        bus: Bus,
        wanted: Selection,
        how: MonitorSettings,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Measure what `wanted` selects as `logs` tells it, say it on `bus`; `beat` every pass."""
        self.trouble = "no pass yet"
        self._beat = beat
        self._logs, self._bus, self._how = logs, bus, how
        self._wanted = self._measured = wanted  # from now on; up to the last pass
        self._name = str(uuid4())
        self._number = 0
        self._rates: dict[str, TopicRates] = {}
        self._known: dict[str, tuple[int, ...]] = {}  # topic -> its partitions
        self._missing: Counter[str] = Counter()  # topic -> passes on end without it
        self._has_topic = False

    def want(self, wanted: Selection) -> None:
        """Measure this instead, from the next pass on."""
        self._wanted = wanted

    async def run(self) -> None:
        """Make a pass every `interval_s`, for ever.

        Passes keep to the beat: one that takes too long costs those it runs into, no more. While
        the brokers fail, passes rest longer and longer; what was known bridges the gap.
        """
        loop = asyncio.get_running_loop()
        begin, beat = loop.time(), 0
        failures = 0
        while True:
            self._beat("pass")
            try:
                await self._pass()
            except WorldError as exc:
                failures += 1
                self.trouble = str(exc)
                self._has_topic = False  # it may be that which is gone
                rest_s = min(self._how.interval_s * 2 ** min(failures, 10), LONGEST_REST_S)
                log.warning("pass.failed", reason=str(exc), failures=failures, rest_s=rest_s)
                await asyncio.sleep(rest_s)
            else:
                if failures:
                    log.info("pass.recovered", failures=failures)
                failures, self.trouble = 0, ""
            beat = max(beat + 1, ceil((loop.time() - begin) / self._how.interval_s))
            await asyncio.sleep(begin + beat * self._how.interval_s - loop.time())

    async def _pass(self) -> None:
        if not self._has_topic:
            await self._bus.ensure(self._how.topic, 1, METRICS_CONFIG)
            self._has_topic = True
        measurements = await self._measure()
        await asyncio.gather(*map(self._publish, measurements))
        log.debug("topics.measured", messages=len(measurements))

    async def _measure(self) -> list[Measurement]:
        loop = asyncio.get_running_loop()
        if self._measured is not self._wanted:
            self._measured = self._wanted
            self._forget_others()
        blind = {topic: rates.blind() for topic, rates in self._rates.items()}
        asked = loop.time()
        found = await self._logs.sample(
            self._wanted.including({*self._known, *self._missing}), blind
        )
        sampled = (asked + loop.time()) / 2  # it was at some moment in between
        at_ms = time.time_ns() // 1_000_000
        self._number += 1
        self._notice(found)
        return [
            part
            for topic in sorted({*self._known, *self._gone()})
            for part in self._parts(topic, at_ms, self._rated(topic, sampled, found.get(topic)))
        ]

    def _forget_others(self) -> None:
        """Forget topics that are wanted no more; nothing is said of them: they are not gone."""
        for topic in {*self._known, *self._missing}:
            if not self._wanted.takes(topic):
                self._known.pop(topic, None)
                self._rates.pop(topic, None)
                del self._missing[topic]

    def _notice(self, found: Mapping[str, Mapping[int, LogSample | None]]) -> None:
        """Remember which topics there are, and which are missing."""
        for topic, samples in found.items():
            if samples:
                self._known[topic] = tuple(samples)
                del self._missing[topic]
            else:
                self._missing[topic] += 1
                # What is gone has no past when it comes again.
                self._known.pop(topic, None)
                self._rates.pop(topic, None)
                if self._missing[topic] == GONE_PASSES:
                    log.warning("topic.gone", topic=topic)

    def _gone(self) -> Iterator[str]:
        """Return the topics of which it is to be said that they are gone."""
        last = GONE_PASSES + ceil(GONE_SAID_S / self._how.interval_s)
        for topic, passes in list(self._missing.items()):
            if passes > last and topic not in self._wanted.topics:
                del self._missing[topic]
            elif passes >= GONE_PASSES:
                yield topic

    def _rated(
        self, topic: str, sampled: float, samples: Mapping[int, LogSample | None] | None
    ) -> tuple[PartitionRate, ...]:
        """Return the partitions' rates; of a topic that is gone none, of one unseen stale ones."""
        if topic not in self._known:
            return ()
        rates = self._rates.setdefault(topic, TopicRates(self._how.window_s))
        return rates.feed(sampled, samples or dict.fromkeys(self._known[topic]))

    def _parts(
        self, topic: str, at_ms: int, partitions: tuple[PartitionRate, ...]
    ) -> Iterator[Measurement]:
        for first in range(0, len(partitions) or 1, LARGEST_PART):
            yield Measurement(
                topic=topic,
                at_ms=at_ms,
                monitor=self._name,
                number=self._number,
                interval_s=self._how.interval_s,
                count=len(partitions),
                partitions=partitions[first : first + LARGEST_PART],
            )

    async def _publish(self, measurement: Measurement) -> None:
        await post(self._bus, self._how.topic, METRICS_PARTITION, measurement)
