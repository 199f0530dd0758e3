"""Steers one ordinary consumer group: looks it up, publishes plans, and has it rebalance."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace

from binwright.protocol.errors import ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import Slot
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.logs import log
from binwright.runtime.metrics import Sample
from binwright.scaler import metrics
from binwright.scaler.assigning import PLAN_PUBLISHED
from binwright.scaler.decide.lags import Baseline, to_be_sized, work_of
from binwright.scaler.decide.members import (
    COOPERATIVE,
    EAGER,
    STABLE,
    GroupDescription,
    Members,
    in_order,
    owners,
)
from binwright.scaler.decide.policy import Loads, Observation
from binwright.scaler.decide.publication import GroupState, PlanPublication, PlanPublisher
from binwright.scaler.decide.steering_policies import SteeringPolicy, imbalance
from binwright.scaler.plans_topic import publish_plan
from binwright.scaler.ports import EndLookup, GroupLookup

GROUP_SEEN = LogEvent.debug(
    "group.seen", "An ordinary group was looked at; the reason says what was decided."
)
STEERING_FAILED = LogEvent.warning(
    "steering.failed", "A look at an ordinary group, or its rebalance, failed; it is tried again."
)
GROUP_UNSTEERED = LogEvent.warning(
    "group.unsteered",
    "An ordinary group cannot be steered: it has no members, or they use another assignor.",
)

RequestRebalance = Callable[[str, str, str], Awaitable[None]]
"""Has a group rebalance: its name, the name of its assignor, one of its topics."""


@dataclass
class GroupMetrics:
    """The numbers of one group, since this process leads.

    Attributes:
        group: Its name.
        passes: How often it was looked at.
        fault: Why the group cannot be steered now; empty if it can, or has no members.
        members: Of the group, at the last look; None: not known now.
        imbalance: Its largest load over the mean at that time; None: not known now.
        generation: Of the plan that was published last; None: there is none.
        rebalances: That were asked for.
        moved: Partitions that got another reader by them.
    """

    group: str
    passes: int = 0
    fault: str = ""
    members: int | None = None
    imbalance: float | None = None
    generation: int | None = None
    rebalances: int = 0
    moved: int = 0

    def see(self, members: int, imbalance: float | None) -> None:
        """Take what a look at the group has shown."""
        self.fault, self.members, self.imbalance = "", members, imbalance

    def fail(self, reason: str) -> None:
        """Take that the group cannot be steered now: what was seen of it is out of date."""
        self.fault, self.members, self.imbalance = reason, None, None

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of the group."""
        numbers = {
            metrics.STEERED_GROUP_PASSES_TOTAL: self.passes,
            metrics.STEERED_GROUP_FAULT: bool(self.fault),
            metrics.STEERED_GROUP_MEMBERS: self.members,
            metrics.STEERED_GROUP_IMBALANCE: self.imbalance,
            metrics.STEERED_GROUP_PLAN_GENERATION: self.generation,
            metrics.STEERED_GROUP_REBALANCES_TOTAL: self.rebalances,
            metrics.STEERED_GROUP_MOVED_PARTITIONS_TOTAL: self.moved,
        }
        for metric, value in numbers.items():
            if value is not None:
                yield Sample(metric, value, {"group": self.group})


@dataclass
class SteeredGroup:
    """Steers one group.

    Attributes:
        name: Of the group.
        policy: Proposes bins.
        publisher: Decides which are published.
        bus: Publishes plans.
        topic: Of plans.
        groups, ends: Look up members, committed offsets and ends of logs.
        request_rebalance: Makes the group rebalance.
        commit_interval_s: Of the group: records younger than this are not lag.
        metrics: What Prometheus sees of the group.
    """

    name: str
    policy: SteeringPolicy
    publisher: PlanPublisher
    bus: ControlTopics
    topic: str
    groups: GroupLookup
    ends: EndLookup
    request_rebalance: RequestRebalance
    commit_interval_s: float = 0.0
    metrics: GroupMetrics = field(init=False)
    _baseline: Baseline = field(default_factory=Baseline)
    _unsteered: str = ""  # why, as it was logged last

    def __post_init__(self) -> None:
        """Count from the plan that was published last."""
        plan = self.publisher.plan
        self.metrics = GroupMetrics(self.name, generation=plan.generation if plan else None)

    async def run(self, interval_s: float, beat: Callable[[], None] = lambda: None) -> None:
        """Look at the group again and again; after a failure the next look goes on."""
        while True:
            try:
                await self.run_pass(interval_s)
            except ExternalError as exc:
                self._fail(str(exc))
            beat()
            await asyncio.sleep(interval_s)

    async def run_pass(self, interval_s: float) -> None:
        """Look at the group once, and publish a plan if one is due.

        Raises:
            BrokerUnavailable: Kafka does not answer, or the group did not rebalance in time.
            RecordTooLarge: The group has too many partitions for one record.
        """
        self.metrics.passes += 1
        group = await self.groups.describe(self.name)
        if not self._is_steerable(group):
            return
        if (loads := await self._loads(group.members, interval_s)) is None:
            return
        rates = {partition: load.rate for partition, load in loads.items()}
        bins = [tuple(member.owned) for member in group.members.values()]
        self.metrics.see(len(bins), imbalance(bins, rates))
        done, after = self._decide(group, loads)
        log(GROUP_SEEN, group=self.name, members=len(group.members), reason=done.reason)
        if done.plan is None:
            return
        await publish_plan(self.bus, self.topic, done.plan)
        self.publisher = after
        self.metrics.generation = done.plan.generation
        if done.rebalances:
            log(
                PLAN_PUBLISHED,
                group=self.name,
                generation=done.plan.generation,
                moved=done.moved,
                reason=done.reason,
            )
            self.metrics.rebalances += 1
            self.metrics.moved += done.moved
            await self.request_rebalance(self.name, group.protocol, min(loads).topic)

    def _decide(
        self, group: GroupDescription, loads: Loads
    ) -> tuple[PlanPublication, PlanPublisher]:
        """Return what to do now, and the publisher after it is done."""
        now_s, order = loop_s(), in_order(group.members)
        slots = {name: Slot(number) for number, name in enumerate(order)}
        observation = Observation(
            time_s=now_s,
            loads=loads,
            replicas=len(order),
            assignment={p: slots[name] for p, name in owners(group.members).items()},
        )
        state = GroupState(
            group=self.name,
            members=group.members,
            loads=loads,
            now_s=now_s,
            now_ms=wall_ms(),
        )
        eager = replace(self.publisher.rebalance, stops_all=group.protocol == EAGER)
        publisher = replace(self.publisher, rebalance=eager)
        return publisher.decide(state, self.policy.propose(observation))

    def _fail(self, reason: str) -> None:
        log(STEERING_FAILED, group=self.name, reason=reason)
        self.metrics.fail(reason)

    def _is_steerable(self, group: GroupDescription) -> bool:
        """Return whether the group can be looked at now; log once why it is not steered."""
        if group.members and group.state != STABLE:
            return False  # a rebalance is under way
        reason = ""
        if not group.members:
            reason = "it has no members"
        elif group.protocol not in {COOPERATIVE, EAGER}:
            reason = f"its members use the assignor {group.protocol or '(none)'}"
        if reason and reason != self._unsteered:
            log(GROUP_UNSTEERED, group=self.name, reason=reason)
        self._unsteered = reason
        if not group.members:
            self.metrics.see(0, None)  # no fault: a group may be scaled to zero
        elif reason:
            self.metrics.fail(reason)
        return not reason

    async def _loads(self, members: Members, interval_s: float) -> Loads | None:
        """Return the load of each partition; None while some are not known."""
        topics = {topic for member in members.values() for topic in member.topics}
        committed = await self.groups.committed([self.name])
        if fault := committed.faults.get(self.name):
            self._fail(fault)
            return None
        ends = await self.ends.look_up(topics)
        # A subscribed topic that does not exist has no load; one that somebody reads does exist.
        read = {partition.topic for member in members.values() for partition in member.owned}
        topics &= {topic for topic, logs in ends.items() if not logs.refused} | read
        fresh_s = loop_s() - 2 * interval_s
        offsets = committed.offsets.get(self.name, {})
        work, self._baseline = work_of(offsets, topics, ends, self._baseline, fresh_s)
        if work.missing or not work.loads:
            # No log: the first look at a group never knows rates, and what is late logs itself.
            self.metrics.fail(f"the loads of {work.missing} partitions are not known")
            return None
        return to_be_sized(work.loads, self.commit_interval_s)
