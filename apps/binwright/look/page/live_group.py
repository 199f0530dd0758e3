"""A group's view for the page, through outages and while its topics are missing."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client import CollectorRegistry, Histogram

from binwright.look.follower import Connect, GroupFollower
from binwright.look.group_view import GroupView
from binwright.look.page.metrics import MOVE_PAUSE_SECONDS
from binwright.protocol.errors import BrokerUnavailable, ExternalError, TopicMissing
from binwright.protocol.metrics import Measurement
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.exposition import histogram
from binwright.runtime.run import root_cause
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.group_config import group_config

RETRY_S = 1.0
STALE_S, STALE_PASSES = 10.0, 3  # rates are old after both

OutdatedKind = Literal["reading", "missing", "unreachable"]
"""reading: the topics are not read up to now yet. missing: the group's topic is not there.
unreachable: Kafka does not answer, or refuses.
"""


@dataclass(frozen=True, slots=True)
class Outdated:
    """Why the view is not up to date."""

    kind: OutdatedKind
    text: str


def ignore(_: str) -> None:
    """Say nothing: the page shows it."""


READING = Outdated("reading", "the topics are being read")


@dataclass(slots=True)
class LiveGroup:
    """A group as last reported; what was known stays while Kafka is away.

    Attributes:
        view: The group, read up to the end of its topic at least once; empty before.
        problem: Why the view is not up to date; None while it is.
        measured: The last measurement of a topic of the group.
        on_problem: Called with each new problem, in words.
        registry: Of the metrics.
        pauses: Of the partitions that moved while the group was followed. Those of earlier moves,
            as the topic has them, would be counted again each time that it is read from its start.
    """

    settings: Settings
    on_problem: Callable[[str], None] = ignore
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    view: GroupView = field(default_factory=GroupView)
    problem: Outdated | None = READING
    measured: Measurement | None = None
    pauses: Histogram = field(init=False)
    _up_to_date: bool = False  # what is being followed was read to its end once

    def __post_init__(self) -> None:
        pauses = histogram(MOVE_PAUSE_SECONDS, self.registry)
        self.pauses = pauses.labels(self.settings.group)

    async def run(self, connect: Connect) -> None:
        """Follow the group for ever; when Kafka or the topic is away, say so and try again.

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
        topic, view = self.settings.metadata_topic, GroupView.of(group_config(self.settings))
        self._up_to_date = False

        async def outage(topic: str, exc: BrokerUnavailable) -> None:
            self._failed(exc)
            await self._until_back(bus, topic)

        async with GroupFollower(
            bus,
            {topic: view},
            self.settings.monitor.topic,
            on_measurement=self._measured,
            on_outage=outage,
        ) as follower:
            await follower.catch_up()
            self.view, self.problem, self._up_to_date = view, None, True
            view.on_move = lambda move: self.pauses.observe(move.pause_s)
            await follower.follow()

    def _measured(self, measurement: Measurement) -> None:
        topics = self.settings.landed_topics
        if topics is None or topics.includes(measurement.topic):
            self.measured = measurement

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
        problem = Outdated("unreachable", str(cause))
        if isinstance(cause, TopicMissing):
            group = self.settings.group
            why = f"no controller has led group {group} on this Kafka yet, or it has another name"
            problem = Outdated("missing", f"{why} (--group)")
        if self.problem != problem:
            self.on_problem(problem.text)
        self.problem = problem
