"""Short words for reigns whose plans wait for a person."""

from dataclasses import replace
from typing import TypeVar

from binwright.core.events import Action, Reconcile, Say
from binwright.core.messages import (
    Accepted,
    Approved,
    Inbound,
)
from binwright.core.model import Slot, TopicPartition
from binwright.core.rules import Mode

from .reign import RULES, A, B, P, Q, Reign, holding, published

R = TopicPartition("orders", 2)
C = Slot(2)
RATES = {P: 90.0, Q: 80.0}
BOTH_AT_A = {P: A, Q: A}
APART = {P: A, Q: B}
APPROVE = replace(RULES, mode="approve")
M = TypeVar("M", bound=Inbound)


def switched(reign: Reign, mode: Mode) -> Reign:
    rules = replace(RULES, mode=mode)
    reign.state = replace(reign.state, group=replace(reign.group, rules=rules))
    return reign


def beginning(targets: dict[TopicPartition, Slot], rates: dict[TopicPartition, float]) -> Reign:
    """Return a reign in which this was approved, and is so."""
    reign = switched(holding(rates, targets), "approve")
    reign.hear(Accepted(term=reign.group.term or 0, plan=0, targets=targets))
    return reign


def offered(reign: Reign, target: dict[TopicPartition, Slot]) -> int:
    """Let a plan be proposed, and read back; return its number."""
    (shown,) = published(reign.pack(target))
    reign.hear(shown)
    return reign.offset


def overloaded() -> tuple[Reign, int]:
    """Return a reign with an overloaded consumer, and the plan that would help it."""
    reign = beginning(BOTH_AT_A, RATES)
    return reign, offered(reign, APART)


def approve(reign: Reign, number: int) -> list[Action]:
    said = reign.hear(Approved(plan=number, by="a person"))
    return said + reign.tick()


def of(actions: list[Action], kind: type[M]) -> list[M]:
    return [m for m in published(actions) if isinstance(m, kind)]


def said(actions: list[Action], event: str) -> list[dict[str, object]]:
    return [dict(a.facts) for a in actions if isinstance(a, Say) and a.event == event]


def fleet(actions: list[Action]) -> list[set[Slot]]:
    return [set(a.slots) for a in actions if isinstance(a, Reconcile)]
