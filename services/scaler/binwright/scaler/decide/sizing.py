"""Sizes a group: a packing of its partitions by rate and lag, and the reasons in words."""

from dataclasses import dataclass
from math import ceil

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.config import ScaledGroup
from binwright.scaler.decide.lags import Work, to_be_sized
from binwright.scaler.decide.policies.least_loaded import Bins
from binwright.scaler.decide.policies.policy import Observation
from binwright.scaler.decide.schedules import Bounds

SHOWN_HOT = 10
UNMEASURED = "what a replica serves is not known yet: it is measured while the group is behind"


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many replicas a group is to have, and what that rests on."""

    replicas: int
    reasons: tuple[str, ...]  # sentences for people
    packing: Bins = ()  # partitions of each replica, if the load were shared as well as can be
    hot: tuple[TopicPartition, ...] = ()  # faster than a replica: more replicas do not help


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizer:
    """Sizes groups that have replicas or are to have some."""

    config: ScaledGroup
    bounds: Bounds
    now_s: float  # monotonic
    scaled_s: float | None  # when the number last changed

    def size(self, work: Work, current: int, capacity: float | None) -> Sizing:
        """Return what the group needs.

        Args:
            work: What there is to do; at least one partition.
            current: Replicas that it has, > 0.
            capacity: Records/s that a replica serves; None: not known yet.
        """
        if capacity is None:
            return self._bounded(Sizing(current, (UNMEASURED,)), work)
        expected = work.expected(self.config.start_s)
        loads = to_be_sized(expected, self.config.commit_interval_s)
        policy = self.config.policy(capacity, self.bounds, len(loads))
        seen = Observation(time_s=self.now_s, loads=loads, replicas=current, scaled_s=self.scaled_s)
        decision, _ = policy.decide(seen)
        packing = self.config.demand(capacity, len(loads)).bins(loads, self.config.up)
        words = [_load(work, capacity, len(packing)), decision.reason.partition("; faster")[0]]
        if (coming := rounded(sum(one.rate for one in expected.values()))) != rounded(work.rate):
            words.append(f"sized for {coming} records/s, as the rate is changing")
        if decision.hot:
            words.append(_hot(decision.hot))
        found = Sizing(decision.replicas, tuple(words), packing, decision.hot)
        return self._bounded(found, work)

    def _bounded(self, found: Sizing, work: Work) -> Sizing:
        """Return the sizing within the bounds, and at most one replica for each partition."""
        reasons, replicas = list(found.reasons), found.replicas
        most = min(self.bounds.most, len(work.loads))
        needed = len(found.packing)
        if needed > most:
            reasons.append(f"{needed} are needed, and {most} are allowed")
        bounded = max(min(replicas, most), min(max(1, self.bounds.least), len(work.loads)))
        if bounded != replicas:
            reasons.append(f"the bounds are {self.bounds.least} to {self.bounds.most}")
        return Sizing(bounded, tuple(reasons), found.packing, found.hot)


def _load(work: Work, capacity: float, needed: int) -> str:
    replicas = "replica" if needed == 1 else "replicas"
    return (
        f"{rounded(work.rate)} records/s and a lag of {rounded(work.lag)} need {needed} "
        f"{replicas} of {rounded(capacity)}/s"
    )


def _hot(partitions: tuple[TopicPartition, ...]) -> str:
    names = ", ".join(map(str, partitions[:SHOWN_HOT]))
    more = f" and {len(partitions) - SHOWN_HOT} more" if len(partitions) > SHOWN_HOT else ""
    return f"faster than a replica, so that more replicas do not help: {names}{more}"


def rounded(amount: float) -> int:
    """Return an amount rounded up to two significant digits: fewer changes of a status."""
    if amount <= 0:
        return 0
    step: int = 10 ** max(0, len(str(int(amount))) - 2)
    return ceil(amount / step) * step
