"""A group as a value: partition 0, the slots' own partitions, controllers, consumers, a fleet.

Staging takes no time here and offsets do not matter: no row depends on any of this.
"""

from dataclasses import dataclass, replace

from tests.core.builders import measurement

from binwright.core import hearing, machine
from binwright.core.consumer import handover
from binwright.core.events import (
    Action,
    Broadcast,
    Destroy,
    Event,
    Heard,
    Measured,
    Pack,
    Publish,
    StepDown,
    Tell,
)
from binwright.core.group import Group
from binwright.core.messages import (
    Claim,
    Command,
    Hello,
    Inbound,
    Measurement,
    PartitionRate,
    Planned,
    Report,
    TableReport,
)
from binwright.core.model import BytesPerSecond, Slot
from binwright.core.rules import Rules
from binwright.core.states import Sentinel, State

TOPIC = "t"
RULES = Rules(limit=BytesPerSecond(120), capacity=BytesPerSecond(100))
LONG_AGO = -1_000.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large the world is, and how much goes wrong in it."""

    partitions: int = 1
    slots: int = 2
    moves: int = 1  # that nothing forces
    faults: int = 1
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ConsumerProcess:
    """A process of a slot."""

    slot: Slot
    consumer: handover.Consumer | None = None  # before its Hello
    orders: tuple[Command, ...] = ()  # not read yet
    owned: bool = True  # the fleet knows of it
    paused: bool = False
    said: Report | None = None  # its last report


@dataclass(frozen=True, slots=True)
class ControllerProcess:
    """A process that leads, or takes itself for the leader."""

    name: str
    state: State
    unread: tuple[tuple[int, Inbound], ...] = ()  # of partition 0
    paused: bool = False
    fresh: bool = True  # its claim is not written yet


@dataclass(frozen=True, slots=True)
class World:
    """Everything; a reader's place in a log is what it has not read yet."""

    bounds: Bounds
    history: Group  # partition 0, folded from its beginning
    length: int = 1  # of partition 0
    consumers: tuple[ConsumerProcess, ...] = ()
    controllers: tuple[ControllerProcess, ...] = ()
    faults: int = 0
    moves: int = 0
    began: int = 0  # controllers so far

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(Slot(n) for n in range(self.bounds.slots))

    def consumer(self, index: int, process: ConsumerProcess | None) -> "World":
        kept = () if process is None else (process,)
        found = (*self.consumers[:index], *kept, *self.consumers[index + 1 :])
        return replace(self, consumers=found)

    def controller(self, index: int, process: ControllerProcess | None) -> "World":
        kept = () if process is None else (process,)
        found = (*self.controllers[:index], *kept, *self.controllers[index + 1 :])
        return replace(self, controllers=found)


def measured(bounds: Bounds) -> Measurement:
    """Return what the monitor says, always."""
    rates = (PartitionRate(p, BytesPerSecond(1), 30, 1, 0, 1) for p in range(bounds.partitions))
    return measurement(TOPIC, rates)


# --- logs ----------------------------------------------------------------------------------------


def publish(world: World, message: Inbound) -> World:
    """Append to partition 0."""
    if isinstance(message, Planned):
        return world  # nobody obeys it
    offset = world.length
    found = []
    for controller in world.controllers:
        mine = isinstance(message, Claim) and message.controller == controller.name
        # All before its claim is history, folded already.
        reader = _caught_up(world, controller) if mine and controller.fresh else controller
        found.append(replace(reader, unread=(*reader.unread, (offset, message))))
    history, _ = hearing.hear(world.history, Heard(0.0, offset, message))
    return replace(world, history=history, length=offset + 1, controllers=tuple(found))


def _caught_up(world: World, controller: ControllerProcess) -> ControllerProcess:
    group = replace(controller.state.group, members=world.history.members)
    state = replace(controller.state, group=group)
    return replace(controller, state=state, unread=(), fresh=False)


def tell(world: World, slot: Slot, command: Command) -> World:
    """Append to a slot's own partition."""
    found = tuple(
        replace(c, orders=(*c.orders, command)) if c.slot == slot else c for c in world.consumers
    )
    return replace(world, consumers=found)


# --- controllers ---------------------------------------------------------------------------------


def claim(world: World) -> World:
    """Let another controller begin."""
    name = f"c{world.began}"
    state, actions = machine.begin(RULES, name, 0.0)
    world = replace(
        world,
        began=world.began + 1,
        controllers=(*world.controllers, ControllerProcess(name, state)),
    )
    world = feed(world, name, Measured(0.0, measured(world.bounds)))
    return carry_out(world, name, actions)


def feed(world: World, name: str, event: Event) -> World:
    """Let a controller meet an event, and do what it asks for."""
    index = next(i for i, c in enumerate(world.controllers) if c.name == name)
    controller = world.controllers[index]
    state, actions = machine.transition(controller.state, event)
    world = world.controller(index, replace(controller, state=state))
    return carry_out(world, name, actions)


def carry_out(world: World, name: str, actions: tuple[Action, ...]) -> World:
    """Do what a controller asks for; packing is the explorer's, the fleet keeps every slot."""
    for action in actions:
        match action:
            case Publish(message=message):
                world = publish(world, message)
            case Tell(slot=slot, message=command):
                world = tell(world, slot, command)
            case Broadcast(message=command):
                for slot in world.slots:
                    world = tell(world, slot, command)
            case Destroy(slot=slot):
                gone = tuple(c for c in world.consumers if not (c.owned and c.slot == slot))
                world = replace(world, consumers=gone)
            case StepDown():
                left = tuple(c for c in world.controllers if c.name != name)
                world = replace(world, controllers=left)
            case Pack():
                world = _back_to_sentinel(world, name)
            case _:
                pass
    return world


def _back_to_sentinel(world: World, name: str) -> World:
    index = next(i for i, c in enumerate(world.controllers) if c.name == name)
    controller = world.controllers[index]
    state = Sentinel(controller.state.group, 0.0)
    return world.controller(index, replace(controller, state=state))


def read(world: World, index: int) -> World:
    """Let a controller take the next record of partition 0."""
    controller = world.controllers[index]
    (offset, message), *rest = controller.unread
    world = world.controller(index, replace(controller, unread=tuple(rest)))
    return feed(world, controller.name, Heard(0.0, offset, message))


# --- consumers -----------------------------------------------------------------------------------


def hello(world: World, index: int) -> World:
    """Let a process say Hello; its staging place can be written at once."""
    process = world.consumers[index]
    consumer = handover.Consumer(process.slot, epoch=world.length)
    world = publish(world, Hello(slot=process.slot, process="p", version="1"))
    consumer, _ = handover.prepared(consumer)
    return report(world.consumer(index, replace(process, consumer=consumer)), index)


def state(process: ConsumerProcess) -> Report:
    """Return what it would report."""
    one = process.consumer
    assert one is not None
    return Report(
        slot=one.slot,
        epoch=one.epoch,
        term=one.term,
        ready=one.ready,
        reading={p: part.next for p, part in one.parts.items()},
        writing={t: TableReport(state="landing", committed={}) for t in one.tables},
        leaving=one.leaving,
    )


def report(world: World, index: int) -> World:
    """Let a consumer report."""
    said = state(world.consumers[index])
    world = world.consumer(index, replace(world.consumers[index], said=said))
    return publish(world, said)


def obey(world: World, index: int) -> World:
    """Let a consumer take its next command."""
    process = world.consumers[index]
    assert process.consumer is not None
    command, *rest = process.orders
    step = handover.obey(process.consumer, command, 0)
    return apply(world, index, replace(process, orders=tuple(rest)), step)


def apply(world: World, index: int, process: ConsumerProcess, step: handover.Step) -> World:
    """Do what the hand-over asks for: reading begins and writing ends at once."""
    consumer, actions = step
    world = world.consumer(index, replace(process, consumer=consumer))
    for action in actions:
        process = world.consumers[index]
        consumer = process.consumer or consumer
        match action:
            case handover.Reply(message=message):
                world = publish(world, message)
            case handover.ReportNow():
                world = report(world, index)
            case handover.Fetch(offset=None):
                world = apply(world, index, process, handover.located(consumer, action, 0))
            case handover.StopWrite(topics=topics):
                world = apply(world, index, process, handover.written(consumer, topics))
            case handover.Exit():
                return world.consumer(index, None)
            case _:
                pass
        if index >= len(world.consumers) or world.consumers[index].slot != process.slot:
            return world
    return world
