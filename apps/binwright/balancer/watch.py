"""Looks at brokers again and again, and has a reaction when a threshold is crossed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from binwright.balancer.cluster_model import (
    Snapshot,
    check_directories,
    cluster_model,
    known_limits,
)
from binwright.balancer.decide.forecast import topic_trends
from binwright.balancer.decide.loads import Imbalance
from binwright.balancer.decide.model import Cluster
from binwright.balancer.decide.plans import Balance, Goal, Infeasible, PlacementPlan, PlanOutcome
from binwright.balancer.decide.rate_history import HOUR_S
from binwright.balancer.decide.thresholds import (
    Crossing,
    CrossingKey,
    Thresholds,
    crossings,
    imbalances,
)
from binwright.balancer.description import ClusterDescription
from binwright.balancer.metrics import (
    BROKERS_DEAD_LOG_DIRECTORIES,
    BROKERS_IMBALANCE_RATIO,
    BROKERS_PROPOSED_BYTES,
)
from binwright.balancer.ports import ClusterState
from binwright.protocol.errors import (
    BalanceError,
    ExternalError,
    PlacementError,
    ReassignmentRefused,
)
from binwright.protocol.log_events import LogEvent
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.metrics import Sample

BALANCE_REFUSED = LogEvent.warning(
    "balance.refused",
    "Kafka does not let the balancer look at the brokers: it needs DESCRIBE on the cluster. It "
    "rests for an hour.",
)
BALANCE_FAILED = LogEvent.warning(
    "balance.failed",
    "The brokers could not be looked at, or there is no placement for what they hold; the next "
    "look follows.",
)
BALANCER_CRASHED = LogEvent.error(
    "balancer.crashed",
    "The watch over brokers has a fault of its own: please report it. It rests for an hour.",
)
BALANCE_PROPOSED = LogEvent.info(
    "balance.proposed",
    "Brokers are uneven, or will be full. A plan with a number is carried out when it is approved"
    " (`waits`), or at once; without one nothing is moved.",
)

REST_S = 3_600.0
"""Until the next look when Kafka refuses one: rights change rarely."""


PLAN_AGAIN_S = 3_600.0
"""A plan costs a core for seconds: the same crossings are not planned for again so soon."""


@dataclass(frozen=True, slots=True)
class Look:
    """A cluster at one time.

    Attributes:
        state: As Kafka reports it.
        cluster: The model of it.
        crossed: The thresholds that it crosses.
        thresholds: Those of the settings.
        find_plan: Plans for a model; raises `PlacementError` if there is no placement.
    """

    state: ClusterState
    cluster: Cluster
    crossed: tuple[Crossing, ...]
    thresholds: Thresholds
    find_plan: Callable[[Cluster], Awaitable[PlacementPlan]]


class Reaction(Protocol):
    """What follows from looks."""

    async def react(self, look: Look) -> None:
        """Do what follows from this look."""

    async def rest(self, seconds: float) -> None:
        """Return when the next look is due: after so many seconds, or earlier."""

    def samples(self) -> Iterator[Sample]:
        """Yield metrics."""


class BrokerWatch:
    """Looks at the cluster, and hands what it sees to a reaction."""

    def __init__(  # noqa: PLR0917 - each is a choice of the settings
        self,
        read: Callable[[], Awaitable[Snapshot]],
        plan: Callable[[Cluster, Goal], PlanOutcome],
        wanted: ClusterDescription,
        thresholds: Thresholds,
        interval_s: float,
        reaction: Reaction,
    ) -> None:
        """Prepare a watch.

        Args:
            read: Reads the cluster.
            plan: Finds a plan; called in a thread.
            wanted: What a person describes.
            thresholds: When a plan is proposed.
            interval_s: Between looks, s.
            reaction: What follows from a look.
        """
        self._read, self._plan, self._wanted = read, plan, wanted
        self._thresholds, self._interval_s, self._reaction = thresholds, interval_s, reaction
        self._imbalance: tuple[Imbalance, ...] = ()
        self._dead: dict[int, int] = {}  # broker -> its log directories that are dead
        self._fault = ""  # logged

    async def run(self) -> None:
        """Look until cancelled; a cluster that cannot be read is read again later."""
        while True:
            pause_s = self._interval_s
            try:
                await self._reaction.react(await self._look())
            except ReassignmentRefused as exc:
                self._log_fault(BALANCE_REFUSED, str(exc))
                pause_s = max(pause_s, REST_S)
            except (ExternalError, PlacementError, BalanceError) as exc:
                self._log_fault(BALANCE_FAILED, str(exc))
            except Exception:  # noqa: BLE001 - the next look may go well
                log(BALANCER_CRASHED, exc_info=True)
                pause_s = max(pause_s, REST_S)
            else:
                self._fault = ""
            await self._reaction.rest(pause_s)

    def _log_fault(self, event: LogEvent, reason: str) -> None:
        """Log why nothing follows, once for each reason."""
        if reason != self._fault:
            log(event, reason=reason)
        self._fault = reason

    async def _look(self) -> Look:
        seen = await self._read()
        # Seconds of CPU for 100,000 replicas, in which the loop must answer Kafka and the probes.
        cluster, crossed = await asyncio.to_thread(self._evaluated, seen)

        async def find_plan(model: Cluster) -> PlacementPlan:
            check_directories(seen)
            outcome = await asyncio.to_thread(self._plan, model, Balance())
            if isinstance(outcome, Infeasible):
                raise PlacementError("; ".join(map(str, outcome.conflicts)))
            return outcome

        return Look(seen.state, cluster, crossed, self._thresholds, find_plan)

    def _evaluated(self, seen: Snapshot) -> tuple[Cluster, tuple[Crossing, ...]]:
        """Return the model of a cluster, and the thresholds that it crosses."""
        cluster = cluster_model(seen, self._wanted)
        self._dead = {broker: len(disk.dead) for broker, disk in seen.disks.items()}
        self._imbalance = imbalances(cluster, self._thresholds)
        limits = known_limits(cluster, seen, self._wanted)
        trends = topic_trends(seen.history.topics(), HOUR_S)
        return cluster, tuple(crossings(cluster, trends, self._thresholds, limits))

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of the last look."""
        for each in self._imbalance:
            labels = {"resource": each.resource}
            yield Sample(BROKERS_IMBALANCE_RATIO, each.factor, labels)
        for broker, number in sorted(self._dead.items()):
            yield Sample(BROKERS_DEAD_LOG_DIRECTORIES, number, {"broker": str(broker)})
        yield from self._reaction.samples()


class PlanPace:
    """When to plan: for other crossings than before at once, for the same ones once an hour."""

    def __init__(self) -> None:
        self._keys: frozenset[CrossingKey] = frozenset()
        self._again_at = 0.0

    def due(self, crossed: Iterable[Crossing]) -> bool:
        """Whether to plan now, for these crossings; none: never."""
        before, self._keys = self._keys, frozenset(each.key for each in crossed)
        if not self._keys or (self._keys == before and loop_s() < self._again_at):
            return False
        self._again_at = loop_s() + PLAN_AGAIN_S
        return True


class Observing:
    """Proposes a plan when other thresholds are crossed than before."""

    def __init__(self) -> None:
        self._pace = PlanPace()
        self._logged: frozenset[CrossingKey] = frozenset()
        self._bytes: int | None = None  # of the plan that is proposed

    async def react(self, look: Look) -> None:
        """See `Reaction`."""
        due, keys = self._pace.due(look.crossed), frozenset(each.key for each in look.crossed)
        if not keys:
            self._bytes, self._logged = None, keys
        if not due:
            return
        self._bytes = None
        plan = await look.find_plan(look.cluster)
        if not plan.moves:
            return  # the replicas are too large for anything better
        self._bytes = plan.bytes
        if keys != self._logged:
            self._logged = keys
            log(
                BALANCE_PROPOSED,
                reasons=[each.text for each in look.crossed],
                partitions=len(plan.moves),
                bytes=plan.bytes,
            )

    async def rest(self, seconds: float) -> None:
        """See `Reaction`."""
        await asyncio.sleep(seconds)

    def samples(self) -> Iterator[Sample]:
        """See `Reaction`."""
        if self._bytes is not None:
            yield Sample(BROKERS_PROPOSED_BYTES, self._bytes)
