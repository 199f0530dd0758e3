"""The monitor's loop: sample, measure, publish, once every interval."""

import asyncio
import time
from collections.abc import Collection
from math import ceil

import structlog

from binwright.core import wire
from binwright.core.errors import WorldError
from binwright.core.messages import Measurement
from binwright.core.ports import Bus, Logs
from binwright.core.rate import TopicRates
from binwright.shell.letters import METRICS_CONFIG
from binwright.shell.settings import MonitorSettings

log = structlog.get_logger()

PARTITION = 0
"""Of the metrics topic: all that is measured, in order."""
LONGEST_REST_S = 30.0


class Watch:
    """One monitor: the topics it measures, and what it knows of them."""

    def __init__(self, logs: Logs, bus: Bus, topics: Collection[str], how: MonitorSettings) -> None:
        """Measure `topics` as `logs` tells them, and say it on `bus`."""
        self._logs, self._bus, self._topics, self._how = logs, bus, topics, how
        self._rates: dict[str, TopicRates] = {}
        self._has_topic = False

    async def run(self) -> None:
        """Make a pass every `interval_s`, for ever.

        Passes keep to the beat: one that takes too long costs those it runs into, no more. While
        the brokers fail, passes rest longer and longer; what was known bridges the gap.
        """
        loop = asyncio.get_running_loop()
        begin, beat = loop.time(), 0
        failures = 0
        while True:
            try:
                await self._pass()
            except WorldError as exc:
                failures += 1
                self._has_topic = False  # it may be that which is gone
                rest_s = min(self._how.interval_s * 2 ** min(failures, 10), LONGEST_REST_S)
                log.warning("pass.failed", reason=str(exc), failures=failures, rest_s=rest_s)
                await asyncio.sleep(rest_s)
            else:
                if failures:
                    log.info("pass.recovered", failures=failures)
                failures = 0
            beat = max(beat + 1, ceil((loop.time() - begin) / self._how.interval_s))
            await asyncio.sleep(begin + beat * self._how.interval_s - loop.time())

    async def _pass(self) -> None:
        if not self._has_topic:
            await self._bus.ensure(self._how.topic, 1, METRICS_CONFIG)
            self._has_topic = True
        measurements = await self._measure()
        await asyncio.gather(*map(self._publish, measurements))
        log.debug("topics.measured", topics=len(measurements))

    async def _measure(self) -> list[Measurement]:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        found = await self._logs.sample(self._topics)
        sampled = (asked + loop.time()) / 2  # it was at some moment in between
        at_ms = time.time_ns() // 1_000_000
        # A topic that is gone has no past when it comes again; nothing is said of it meanwhile.
        self._rates = {t: self._rates.get(t) or TopicRates(self._how.window_s) for t in found}
        return [
            Measurement(
                topic=topic,
                at_ms=at_ms,
                partitions=self._rates[topic].feed(sampled, samples),
            )
            for topic, samples in found.items()
            if samples
        ]

    async def _publish(self, measurement: Measurement) -> None:
        key, value = wire.key(measurement), wire.encode(measurement)
        await self._bus.publish(self._how.topic, PARTITION, key, value)
