"""Keeps a group's view up to date from its topics, through outages and topics that are missing."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog

from binwright.kafka.control_records import Decoder
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable, ExternalError, TopicMissing
from binwright.protocol.measurements import Measurement
from binwright.protocol.ports.kafka import ControlTopics, Reader, Record
from binwright.runtime.run import must_not_end, root_cause
from binwright.runtime.settings import Settings
from binwright.views.group_view import GroupView
from binwright.views.topic_readers import read_history, read_recent_measurements

log = structlog.get_logger()

READ_S, RETRY_S = 1.0, 1.0
STALE_S, STALE_PASSES = 10.0, 3  # rates are old after both

Connect = Callable[[], AbstractAsyncContextManager[ControlTopics]]
ProblemKind = Literal["reading", "missing", "unreachable"]
"""reading: the topics are not read up to now yet. missing: the group's topic is not there.
unreachable: Kafka does not answer, or refuses.
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the view is not up to date."""

    kind: ProblemKind
    text: str


READING = Problem("reading", "the topics are being read")


@dataclass(slots=True)
class Follower:
    """A group as last reported; what was known stays while Kafka is away.

    Attributes:
        view: The group, read up to the end of its topic at least once; empty before.
        problem: Why the view is not up to date; None while it is.
        measured: The last measurement of a topic of the group.
    """

    settings: Settings
    view: GroupView = field(default_factory=GroupView)
    problem: Problem | None = READING
    measured: Measurement | None = None
    _up_to_date: bool = False  # what is being followed was read to its end once

    async def run(self, connect: Connect) -> None:
        """Follow the group for ever; when Kafka or the topic is away, log it and try again.

        Raises:
            UserError: The connection's settings do not hold.
        """
        while True:
            try:
                async with connect() as bus:
                    await self._follow(bus)
            except (ExternalError, ExceptionGroup) as exc:
                cause = root_cause(exc)
                if not isinstance(cause, ExternalError):
                    raise
                self._failed(cause)
            await asyncio.sleep(RETRY_S)

    def rates_age_s(self, now_ms: int) -> float | None:
        """Return how old the rates are; None: nothing was measured."""
        return None if self.measured is None else max(0, now_ms - self.measured.at_ms) / 1000

    def rates_stale(self, now_ms: int) -> bool:
        """Whether a monitor should have published newer rates by now."""
        age_s = self.rates_age_s(now_ms)
        if age_s is None or self.measured is None:
            return True
        return age_s > max(STALE_S, STALE_PASSES * self.measured.interval_s)

    async def _follow(self, bus: ControlTopics) -> None:
        topic, view = self.settings.metadata_topic, GroupView()
        self._up_to_date = False
        reader, end = await read_history(bus, topic)

        def apply(record: Record, message: Any) -> None:
            view.apply(record.offset, record.timestamp_ms, message)

        def applied() -> None:
            if not self._up_to_date and reader.position >= end:
                self.view, self.problem, self._up_to_date = view, None, True

        async with asyncio.TaskGroup() as tasks:
            decoder = Decoder(wire.decode_inbound, history_end=end)
            group = self._read(bus, topic, reader, decoder, apply, applied)
            tasks.create_task(must_not_end(group))
            tasks.create_task(must_not_end(self._measurements(bus, view)))

    async def _measurements(self, bus: ControlTopics, view: GroupView) -> None:
        topic = self.settings.monitor.topic
        while not await bus.partitions(topic):  # noqa: ASYNC110 - Kafka tells nobody of new topics
            await asyncio.sleep(RETRY_S)
        reader, _ = await read_recent_measurements(bus, topic)

        def apply(_: Record, measurement: Measurement) -> None:
            view.apply_measurement(measurement)
            topics = self.settings.landed_topics
            if topics is None or topics.includes(measurement.topic):
                self.measured = measurement

        await self._read(bus, topic, reader, Decoder(wire.decode_measurement), apply)

    async def _read(  # noqa: PLR0913, PLR0917 - one topic, and what to do with it
        self,
        bus: ControlTopics,
        topic: str,
        reader: Reader,
        decoder: Decoder[Any],
        apply: Callable[[Record, Any], None],
        applied: Callable[[], None] = lambda: None,
    ) -> None:
        try:
            while True:
                try:
                    records = await reader.read(READ_S)
                except BrokerUnavailable as exc:
                    self._failed(exc)
                    await self._until_back(bus, topic)
                    continue
                for record, message in decoder.decode(records):
                    apply(record, message)
                applied()
        finally:
            await reader.close()

    async def _until_back(self, bus: ControlTopics, topic: str) -> None:
        """Wait until Kafka answers: a reader that returns nothing does not say whether it does."""
        while True:
            try:
                await bus.end(topic, 0)
            except BrokerUnavailable as exc:
                self._failed(exc)
                await asyncio.sleep(RETRY_S)
            else:
                self.problem = None if self._up_to_date else READING
                return

    def _failed(self, cause: ExternalError) -> None:
        kind: ProblemKind = "missing" if isinstance(cause, TopicMissing) else "unreachable"
        if self.problem is None or self.problem.text != str(cause):
            log.error("page.outdated", reason=str(cause))
        self.problem = Problem(kind, str(cause))
