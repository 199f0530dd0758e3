"""How often a broker is asked to assign a KIP-848 group anew, by what came of it.

The broker goes by bytes/s and knows what it knows: what is uneven by records/s may be even for it,
and without rates it counts partitions. Asked again, it would find the same.
"""

from dataclasses import dataclass
from typing import Self

from binwright.scaler.decide.members import Members, Owners, owners
from binwright.scaler.decide.plan_publication import COOLDOWN_S

LONGEST_S = 1800.0
"""Pause between requests, to which it doubles with each that moved nothing."""
MOVED_NOTHING = "the broker found nothing to move: does it know the rates?"


@dataclass(frozen=True, slots=True)
class BrokerRequest:
    """The last request for an assignment."""

    owners: Owners  # partition -> the member that read it before
    pause_s: float = COOLDOWN_S  # until the next one, if this one moves nothing
    repeats: bool = False  # the one before it had moved nothing
    refused: str = ""  # why it could not be made; empty: it was

    def moved_nothing(self, members: Members) -> bool:
        """Return whether the members of a group that is stable read what they read before it."""
        return owners(members) == self.owners

    def cooldown_s(self, members: Members) -> float:
        """Return the time from this request to the next, at least."""
        return self.pause_s if self.moved_nothing(members) else COOLDOWN_S

    def fault(self, members: Members) -> str:
        """Return why a load stays uneven for which it was made; empty: it may be under way."""
        if not self.moved_nothing(members):
            return ""
        return self.refused or (MOVED_NOTHING if self.repeats else "")

    def again(self, members: Members) -> Self:
        """Return the next request."""
        if self.refused or not self.moved_nothing(members):
            return type(self)(owners(members))
        return type(self)(self.owners, min(LONGEST_S, 2 * self.pause_s), repeats=True)
