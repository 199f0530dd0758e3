"""Controller drivers in mode `approve`, and what their actions hold."""

from dataclasses import replace
from typing import TypeVar

from tests.controller.decide.driver import CONFIG, A, B, ControllerDriver, P, Q, assigned, published

from binwright.controller.decide.events import Action, Reconcile
from binwright.group.config import Mode
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Accepted, Inbound
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import Approved

R = TopicPartition("orders", 2)
C = Slot(2)
RATES = {P: 90.0, Q: 80.0}
BOTH_AT_A = {P: A, Q: A}
APART = {P: A, Q: B}
APPROVE = CONFIG.with_settings(mode="approve")
M = TypeVar("M", bound=Inbound)


def in_mode(driver: ControllerDriver, mode: Mode) -> ControllerDriver:
    config = CONFIG.with_settings(mode=mode)
    driver.state = replace(driver.state, group=replace(driver.group, config=config))
    return driver


def with_approved_plan(
    targets: dict[TopicPartition, Slot], rates: dict[TopicPartition, float]
) -> ControllerDriver:
    """Return a leader whose approved plan is `targets`, and is carried out."""
    driver = in_mode(assigned(rates, targets), "approve")
    driver.read(Accepted(term=driver.group.term or 0, plan=0, targets=targets))
    return driver


def propose(driver: ControllerDriver, target: dict[TopicPartition, Slot]) -> int:
    """Propose a plan and read it back; return its number."""
    (proposed,) = published(driver.pack(target))
    driver.read(proposed)
    return driver.offset


def overloaded() -> tuple[ControllerDriver, int]:
    """Return a leader with an overloaded consumer, and the number of the plan that resolves it."""
    driver = with_approved_plan(BOTH_AT_A, RATES)
    return driver, propose(driver, APART)


def approve(driver: ControllerDriver, number: int) -> list[Action]:
    logged = driver.read(Approved(plan=number, by="a person"))
    return logged + driver.tick()


def published_of(actions: list[Action], kind: type[M]) -> list[M]:
    return [m for m in published(actions) if isinstance(m, kind)]


def logged(actions: list[Action], event: str) -> list[dict[str, object]]:
    return [dict(a.facts) for a in actions if isinstance(a, Log) and a.event == event]


def reconciled(actions: list[Action]) -> list[set[Slot]]:
    return [set(a.slots) for a in actions if isinstance(a, Reconcile)]
