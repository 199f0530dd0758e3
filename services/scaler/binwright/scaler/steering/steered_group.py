"""One ordinary consumer group: looked at, decided on, steered."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from binwright.protocol.errors import ExternalError
from binwright.protocol.model import Slot
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.clock import loop_s, wall_ms
from binwright.scaler.decide.assignor.even import imbalance
from binwright.scaler.decide.assignor.members import Members, in_order, owners
from binwright.scaler.decide.assignor.policies import SteeringPolicy
from binwright.scaler.decide.assignor.publication import GroupState, Publication, Publisher
from binwright.scaler.decide.lags import Baseline, work_of
from binwright.scaler.decide.log_ends import LogEnds
from binwright.scaler.decide.policies.policy import Loads, Observation
from binwright.scaler.groups.descriptions import GroupDescription
from binwright.scaler.groups.offsets import CommittedOffsets
from binwright.scaler.groups.planned_assignor import PROTOCOL as EAGER
from binwright.scaler.groups.plans import publish_plan
from binwright.scaler.steering.group_metrics import GroupMetrics

log = structlog.get_logger()

COOPERATIVE = "binwright"
"""The name of the assignor for Java, as in `PlannedAssignor.java`."""
STABLE = "Stable"


class Groups(Protocol):
    """Looks up members, as `kafka.groups.descriptions.ConsumerGroups` does."""

    async def describe(self, group: str) -> GroupDescription:
        """Return the members of a group; raise `BrokerUnavailable`."""


class Offsets(Protocol):
    """Looks up committed offsets, as `kafka.groups.offsets.GroupOffsets` does."""

    async def look_up(self, groups: Collection[str]) -> CommittedOffsets:
        """Return the offsets of groups, or a fault of each."""


class Ends(Protocol):
    """Looks up the ends of logs, as `scaler.ends.TopicEnds` does."""

    async def look_up(self, topics: Collection[str]) -> Mapping[str, LogEnds]:
        """Return the ends of topics, as far as they are known."""


RequestRebalance = Callable[[str, str, str], Awaitable[None]]
"""Has a group rebalance: its name, the name of its assignor, one of its topics."""


@dataclass
class SteeredGroup:
    """Steers one group.

    Attributes:
        name: Of the group.
        policy: Proposes bins.
        publisher: Decides which are published.
        bus: Publishes plans.
        topic: Of plans.
        groups, offsets, ends: Look up members, committed offsets and ends of logs.
        request_rebalance: Makes the group rebalance.
        metrics: What Prometheus sees of the group.
    """

    name: str
    policy: SteeringPolicy
    publisher: Publisher
    bus: ControlTopics
    topic: str
    groups: Groups
    offsets: Offsets
    ends: Ends
    request_rebalance: RequestRebalance
    metrics: GroupMetrics = field(init=False)
    _baseline: Baseline = field(default_factory=Baseline)
    _unsteered: str = ""  # why, as it was logged last

    def __post_init__(self) -> None:
        """Count from the plan that was published last."""
        plan = self.publisher.plan
        self.metrics = GroupMetrics(self.name, generation=plan.generation if plan else None)

    async def run(self, interval_s: float, beat: Callable[[str], None] = lambda _: None) -> None:
        """Look at the group again and again; after a failure the next look goes on."""
        while True:
            beat("steering")
            try:
                await self.run_pass(interval_s)
            except ExternalError as exc:
                self._fail(str(exc))
            await asyncio.sleep(interval_s)

    async def run_pass(self, interval_s: float) -> None:
        """Look at the group once, and publish a plan if one is due.

        Raises:
            BrokerUnavailable: Kafka does not answer, or the group did not rebalance in time.
            RecordTooLarge: The group has too many partitions for one record.
        """
        self.metrics.passes += 1
        found = await self.groups.describe(self.name)
        if not self._is_steerable(found):
            return
        if (loads := await self._loads(found.members, interval_s)) is None:
            return
        self._see(found.members, loads)
        done, after = self._decide(found, loads)
        log.debug("group.seen", group=self.name, members=len(found.members), reason=done.reason)
        if done.plan is None:
            return
        await publish_plan(self.bus, self.topic, done.plan)
        self.publisher = after
        self.metrics.generation = done.plan.generation
        if done.rebalances:
            log.info(
                "plan.published",
                group=self.name,
                generation=done.plan.generation,
                moved=done.moved,
                reason=done.reason,
            )
            self.metrics.rebalances += 1
            self.metrics.moved += done.moved
            await self.request_rebalance(self.name, found.protocol, min(loads).topic)

    def _decide(self, found: GroupDescription, loads: Loads) -> tuple[Publication, Publisher]:
        """Return what to do now, and the publisher after it is done."""
        now_s, order = loop_s(), in_order(found.members)
        slots = {name: Slot(number) for number, name in enumerate(order)}
        observation = Observation(
            time_s=now_s,
            loads=loads,
            replicas=len(order),
            assignment={p: slots[name] for p, name in owners(found.members).items()},
        )
        state = GroupState(
            group=self.name,
            members=found.members,
            loads=loads,
            now_s=now_s,
            now_ms=wall_ms(),
        )
        eager = replace(self.publisher.rebalance, stops_all=found.protocol == EAGER)
        publisher = replace(self.publisher, rebalance=eager)
        return publisher.decide(state, self.policy.propose(observation))

    def _see(self, members: Members, loads: Loads) -> None:
        """Take for the metrics what is known of the group now."""
        rates = {partition: load.rate for partition, load in loads.items()}
        bins = [tuple(member.owned) for member in members.values()]
        self.metrics.see(len(members), imbalance(bins, rates))

    def _fail(self, reason: str) -> None:
        log.warning("steering.failed", group=self.name, reason=reason)
        self.metrics.fail(reason)

    def _is_steerable(self, found: GroupDescription) -> bool:
        """Return whether the group can be looked at now; log once why it is not steered."""
        if found.members and found.state != STABLE:
            return False  # a rebalance is under way
        reason = ""
        if not found.members:
            reason = "it has no members"
        elif found.protocol not in {COOPERATIVE, EAGER}:
            reason = f"its members use the assignor {found.protocol or '(none)'}"
        if reason and reason != self._unsteered:
            log.warning("group.unsteered", group=self.name, reason=reason)
        self._unsteered = reason
        if not found.members:
            self.metrics.see(0, None)  # no fault: a group may be scaled to zero
        elif reason:
            self.metrics.fail(reason)
        return not reason

    async def _loads(self, members: Members, interval_s: float) -> Loads | None:
        """Return the load of each partition; None while some are not known."""
        topics = {topic for member in members.values() for topic in member.topics}
        committed = await self.offsets.look_up([self.name])
        if fault := committed.faults.get(self.name):
            self._fail(fault)
            return None
        ends = await self.ends.look_up(topics)
        # A subscribed topic that does not exist has no load; one that somebody reads does exist.
        read = {partition.topic for member in members.values() for partition in member.owned}
        topics &= ends.keys() | read
        fresh_s = loop_s() - 2 * interval_s
        offsets = committed.offsets.get(self.name, {})
        work, self._baseline = work_of(offsets, topics, ends, self._baseline, fresh_s)
        if work.missing or not work.loads:
            # No log: the first look at a group never knows rates, and what is late logs itself.
            self.metrics.fail(f"the loads of {work.missing} partitions are not known")
            return None
        return work.loads
