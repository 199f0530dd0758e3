"""Which bins a group of a given size should have: what a plan may change it to."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from binwright.scaler.decide.assignor.even import even_out, imbalance
from binwright.scaler.decide.policies.bin_pack import Action, Algorithm1
from binwright.scaler.decide.policies.capacity import Bin
from binwright.scaler.decide.policies.least_loaded import Bins, least_loaded
from binwright.scaler.decide.policies.policy import Observation, total


class Proposal(NamedTuple):
    """Other bins, and why."""

    bins: Bins  # one for each member; some may be empty
    reason: str  # for people


class SteeringPolicy(Protocol):
    """Proposes bins; the same observations give the same ones."""

    def propose(self, observation: Observation) -> Proposal | None:
        """Return bins for `observation.replicas` members, whose slots follow the group's order.

        None: those that they have do.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyEven:
    """Keeps partitions where they are, and moves few of them where loads differ."""

    tolerance: float = 0.1  # by which share of the mean the largest load may exceed it

    def propose(self, observation: Observation) -> Proposal | None:
        """See `SteeringPolicy`: bins are evened out by few moves."""
        rates = {p: load.rate for p, load in observation.loads.items()}
        members = observation.replicas
        bins = even_out(rates, observation.assignment, members, self.tolerance)
        if {p: slot for slot, inside in enumerate(bins) for p in inside} == {
            p: slot for p, slot in observation.assignment.items() if p in rates
        }:
            return None
        return Proposal(bins, f"the largest load becomes {imbalance(bins, rates):.2f} of the mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastLoaded:
    """Least-Loaded with an SLA: Algorithm 1 or 2, for a group whose size others decide."""

    algorithm: Algorithm1

    def propose(self, observation: Observation) -> Proposal | None:
        """See `SteeringPolicy`: another packing where a member has more than it serves in time.

        Where the algorithm asks for more replicas than there are, the packing is as even as it can
        be: whoever scales the group decides on more.
        """
        action, bins = self.algorithm.needed(observation)
        bins = self.algorithm.sized(action, bins, observation.loads)
        if action in {Action.KEEP, Action.DOWN}:
            return None
        reason = action.value
        if len(bins) > observation.replicas:
            reason = f"{reason}: {len(bins)}, and there are {observation.replicas}"
            every = total(observation.loads.values())
            whole = Bin(max(every.rate, 1.0), max(every.lag, 1.0))
            bins = least_loaded(observation.loads, whole, observation.replicas)
        return Proposal(bins + ((),) * (observation.replicas - len(bins)), reason)
