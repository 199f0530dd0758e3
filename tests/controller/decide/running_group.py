"""A leader of a group that runs: what people order, what is reported, and what is acknowledged."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from tests.builders import reconfigured
from tests.controller.decide.driver import CONFIG, ControllerDriver, assigned, published, sent

from binwright.controller.decide.events import Action, Packed
from binwright.group.plans import Pack
from binwright.protocol.commands import StartReading, StopReading
from binwright.protocol.metadata import Planned
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import CordonOrder, FreezeOrder, PinOrder
from binwright.protocol.ports.fleet import Disruption

Kind = Literal["node", "roll", "evicted"]
CORDONED = "node worker-3 is cordoned"
ROLL = "its template changes from image a:1 to a:2"
LONG_S = 1000.0


def disruptions(kind: Kind, *slots: Slot) -> dict[Slot, Disruption]:
    return {slot: Disruption(kind, ROLL if kind == "roll" else CORDONED) for slot in slots}


P = [TopicPartition("orders", n) for n in range(4)]
A, B, C, D = map(Slot, range(4))
FREEZE = FreezeOrder(frozen=True, by="alice", reason="release")


def drain(slot: Slot, state: Any = "drained") -> CordonOrder:
    return CordonOrder(slot=slot, state=state, by="bob")


def pin(partition: TopicPartition, slot: Slot) -> PinOrder:
    return PinOrder(topic=partition.topic, partition=partition.partition, slot=slot, by="alice")


def at(*slots: int) -> dict[TopicPartition, Slot]:
    return {p: Slot(slot) for p, slot in zip(P, slots, strict=False)}


PATIENT = replace(CONFIG.with_settings(consumer_timeout_s=1e6), stale_s=1e6)
"""Consumers need not report, nor monitors measure."""


def running(
    target: dict[TopicPartition, Slot], rate: float = 40.0, **config: Any
) -> ControllerDriver:
    """Return a leader of a group that is as in `target`; then its configuration changes."""
    driver = assigned(dict.fromkeys(target, rate), target)
    group = replace(driver.group, config=reconfigured(PATIENT, **config))
    driver.state = replace(driver.state, group=group)
    return driver


def ready(driver: ControllerDriver, *slots: Slot) -> list[Action]:
    actions = []
    for slot in slots:
        driver.hello(slot)
        actions += driver.report(slot)
    return actions


def carry_out(driver: ControllerDriver, actions: Iterable[Action]) -> None:
    """Acknowledge every command about partitions, and those that follow, until none is sent."""
    waiting = sent(actions)
    while waiting:
        slot, command = waiting.pop(0)
        if isinstance(command, StopReading):
            waiting += sent(driver.stopped(command, slot))
        elif isinstance(command, StartReading):
            waiting += sent(driver.started(command, slot))


def packed(driver: ControllerDriver, target: dict[TopicPartition, Slot]) -> list[Action]:
    """Let a packing be requested at the next tick, and return its result for what it asks."""
    actions = driver.tick()
    (request,) = (a for a in actions if isinstance(a, Pack))
    assert request.load.rates.keys() <= target.keys()
    return driver.feed(Packed(driver.now, {p: target[p] for p in request.load.rates}))


def plans(actions: Iterable[Action]) -> list[Planned]:
    return [m for m in published(actions) if isinstance(m, Planned)]
