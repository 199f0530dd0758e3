"""The policies that are compared, with their settings and those of the group they scale."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from binwright.lab.simulation.policies.rules import CpuRule, LagRule, Linear, Stabilised
from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.lab.simulation.records.group import GroupSettings
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.lags import EndHistory, work_of
from binwright.scaler.decide.least_loaded import least_loaded
from binwright.scaler.decide.paper_algorithms import Algorithm1, Algorithm2
from binwright.scaler.decide.policy import (
    Bin,
    Decision,
    Fixed,
    Observation,
    PartitionLoad,
    Policy,
    ReplicaCapacity,
)
from binwright.scaler.decide.sizing import (
    GroupSnapshot,
    ScalingState,
    WorkloadStatus,
    decide,
    ordered,
)
from binwright.scaler.decide.sla_packing import SlaPacking

UP, DOWN = 0.9, 0.4
"""The paper's f_up and f_down."""
APART_S = 10.0
APART = f", {APART_S:g} s apart"
"""The variant of an algorithm that leaves this time between changes, as its authors' code does, and
has no third branch: a group of the right size keeps its assignment."""
TUNED_UP, TUNED_DOWN = 0.97, 0.90
"""Ours, chosen on seeds from 100 on; the tables use seeds from 0 on."""
CATCH_UP_S = 5.0
"""About what a new replica takes to start: lag that is gone by then needs none."""
WINDOW_S = 5.0
"""Of the scaler's rates: an SLA of half a second asks for looks each second."""
SYNC_PERIOD_S = 15.0
"""The HorizontalPodAutoscaler's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySetup:
    """A policy and a group."""

    name: str
    policy: Policy
    settings: GroupSettings
    is_ours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySetups:
    """Makes the policies for one workload, group and replica."""

    workload: RecordLoad
    settings: GroupSettings
    rate: float = 200.0  # what policies assume of a replica, records/s
    rebalance_s: float = 0.05  # what policies assume of a rebalance

    def algorithm_1(self) -> PolicySetup:
        """Return Algorithm 1 as printed."""
        return self._setup("Algorithm 1", self._algorithm_1)

    def algorithm_1_apart(self) -> PolicySetup:
        """Return Algorithm 1 as a variant: see `APART`."""
        return self._setup(f"Algorithm 1{APART}", _apart(self._algorithm_1))

    def algorithm_2(self) -> PolicySetup:
        """Return Algorithm 2 as printed."""
        return self._setup("Algorithm 2", self._algorithm_2)

    def algorithm_2_apart(self) -> PolicySetup:
        """Return Algorithm 2 as a variant: see `APART`."""
        return self._setup(f"Algorithm 2{APART}", _apart(self._algorithm_2))

    def linear(self) -> PolicySetup:
        """Return Linear as it was run: mu * w * f_up events a replica; Kafka assigns by range."""
        return self._setup("Linear", Linear(rate=self._capacity.bin(UP).lag))

    def overprovision(self) -> PolicySetup:
        """Return as many replicas as Least-Loaded needs at the peak."""
        peak = {
            TopicPartition("events", number): PartitionLoad(self.workload.peak * share)
            for number, share in enumerate(self.workload.shares)
        }
        replicas = len(least_loaded(peak, Bin(self._capacity.bin(UP).lag, 1.0)))
        settings = replace(self.settings, first_replicas=replicas)
        return PolicySetup(name="Overprovision", policy=Fixed(replicas), settings=settings)

    def keda(self) -> PolicySetup:
        """Return KEDA's lag rule at as much lag a replica as fits into the SLA."""
        rule = LagRule(threshold=self._capacity.bin(UP).lag)
        return self._autoscaler("KEDA, lag", rule)

    def lag_rule(self, threshold: float) -> PolicySetup:
        """Return KEDA's lag rule at another threshold, on an ordinary cooperative group."""
        return self._autoscaler(f"KEDA, lag {threshold:g}", LagRule(threshold=threshold))

    def scaled_group(self, share: float) -> PolicySetup:
        """Return what the scaler does with a group that it does not assign.

        Args:
            share: Of the records that are to be in time at any moment.
        """
        settings, partitions = self.settings, len(self.workload.shares)
        config = ScaledGroupSettings(
            group="simulated",
            min_replicas=1,
            max_replicas=partitions,
            records_per_s=self.rate,
            sla_s=settings.sla_s,
            sla_share=share,
            burst_s=settings.burst_s,
            start_s=settings.start_s,
            rebalance_s=self.rebalance_s,
            commit_interval_s=0.0,  # after each batch
            cooldown_up_s=10.0,
            cooldown_down_s=10.0,
        )
        policy = ScaledGroupPolicy(config=config, history=EndHistory(window_s=WINDOW_S))
        name = f"scaled group, {share:.0%}"
        return PolicySetup(name=name, policy=policy, settings=self.settings, is_ours=True)

    def cpu(self) -> PolicySetup:
        """Return the HorizontalPodAutoscaler on CPU, where bursts take `UP` of the SLA."""
        busy = self._bursts.sustained() / self.rate * UP
        return self._autoscaler("HPA, CPU", CpuRule(target=busy))

    def ours(self) -> PolicySetup:
        """Return our policy on the same group as theirs."""
        return self._ours("binwright", self.settings, TUNED_UP, TUNED_DOWN, self.rebalance_s)

    def ours_by_default(self) -> PolicySetup:
        """Return our policy with the headroom it has where nobody tunes it."""
        default = SlaPacking(capacity=self._bursts)
        return self._ours(
            "binwright, default", self.settings, default.up, default.down, self.rebalance_s
        )

    def ours_incremental(self) -> PolicySetup:
        """Return our policy on a group in which only what moves pauses.

        That is about half of the partitions at a change, so the policy reckons with half the time.
        """
        settings = replace(self.settings, protocol="incremental", drains=True)
        return self._ours(
            "binwright, incremental", settings, TUNED_UP, TUNED_DOWN, self.rebalance_s / 2
        )

    def _ours(
        self, name: str, settings: GroupSettings, up: float, down: float, rebalance_s: float
    ) -> PolicySetup:
        policy = SlaPacking(
            capacity=self._bursts,
            up=up,
            down=down,
            catch_up_s=CATCH_UP_S,
            rebalance_s=rebalance_s,
        )
        return PolicySetup(name=name, policy=policy, settings=settings, is_ours=True)

    def _autoscaler(self, name: str, rule: Policy) -> PolicySetup:
        settings = replace(self.settings, interval_s=SYNC_PERIOD_S, overhead_s=0.0, scaling_s=0.0)
        policy = Stabilised(rule=rule, most=len(self.workload.shares))
        return PolicySetup(name=name, policy=policy, settings=settings)

    def _setup(self, name: str, policy: Policy) -> PolicySetup:
        return PolicySetup(name=name, policy=policy, settings=self.settings)

    @property
    def _algorithm_1(self) -> Algorithm1:
        return Algorithm1(capacity=self._capacity, up=UP, down=DOWN, cooldown_s=0.0)

    @property
    def _algorithm_2(self) -> Algorithm2:
        return Algorithm2(
            capacity=self._capacity,
            up=UP,
            down=DOWN,
            cooldown_s=0.0,
            rebalance_s=self.rebalance_s,
        )

    @property
    def _capacity(self) -> ReplicaCapacity:
        return ReplicaCapacity(rate=self.rate, sla_s=self.settings.sla_s)

    @property
    def _bursts(self) -> ReplicaCapacity:
        return replace(self._capacity, burst_s=self.settings.burst_s)


def _apart(algorithm: Algorithm1) -> Algorithm1:
    return replace(algorithm, cooldown_s=APART_S, reassigns=False)


def settings_for(
    rebalance_s: float,
    *,
    heartbeat_s: float = 3.0,
    service_s: float = 0.005,
    burst_s: float = 1.0,
) -> GroupSettings:
    """Return the settings of a group with this rebalance time.

    Of the usual 50 ms, 30 synchronise.
    """
    default = GroupSettings(heartbeat_s=heartbeat_s, service_s=service_s, burst_s=burst_s)
    # Long rebalances were made by a callback that sleeps, on top of what one takes anyway.
    is_long = rebalance_s > default.callback_s + default.sync_s
    return replace(default, callback_s=rebalance_s) if is_long else default


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledGroupPolicy:
    """Scales a simulated group of one topic as the scaler scales a real one.

    What it sees are the ends of the logs and the committed offsets, from which it takes its rates;
    orders are carried out at once.
    """

    config: ScaledGroupSettings
    state: ScalingState = field(default_factory=ScalingState)
    history: EndHistory = field(default_factory=EndHistory)  # has the window of rates
    ends: Mapping[TopicPartition, float] = field(default_factory=dict)
    looked_s: float = 0.0

    def decide(self, observation: Observation) -> "tuple[Decision, ScaledGroupPolicy]":
        """Return the decision; there is no assignment, as Kafka's own assignor assigns."""
        now_s, loads = observation.time_s, observation.loads
        passed_s = now_s - self.looked_s
        ends = {p: self.ends.get(p, 0.0) + load.rate * passed_s for p, load in loads.items()}
        history = self.history.with_ends(now_s, {p.partition: int(end) for p, end in ends.items()})
        topic = next(iter(loads)).topic
        # Logs begin where the simulation does, at 0, and what lags there is from before.
        committed = {p: int(ends[p]) - round(load.lag) for p, load in loads.items()}
        starts = {p.partition: min(0, at) for p, at in committed.items()}
        work, baseline = work_of(
            committed,
            [topic],
            {topic: replace(history.latest(len(loads)), starts=starts)},
            self.state.baseline,
            now_s,
        )
        seen = GroupSnapshot(
            work=work,
            workload=WorkloadStatus(replicas=observation.replicas, ready=observation.replicas),
            now_s=now_s,
            wall_s=0.0,
        )
        state, verdict = decide(self.config, replace(self.state, baseline=baseline), seen)
        replicas = observation.replicas
        if verdict.order is not None:
            replicas = verdict.order
            state = ordered(state, replicas, now_s)
        after = replace(self, state=state, history=history, ends=ends, looked_s=now_s)
        return Decision(replicas, "; ".join(verdict.reasons)), after
