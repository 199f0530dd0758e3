"""A group as a value: metadata partition 0, commands to slots, controllers, consumers, a fleet.

Staging takes no time and offsets do not matter, because no row depends on the hand-over.
"""

from dataclasses import dataclass, replace

from tests.builders import configured, measurement

from binwright.consumer.decide import machine as consumers
from binwright.consumer.decide.machine import Exit, Fetch, Reply, ReportNow, StopWriter
from binwright.controller.decide import machine
from binwright.controller.decide.apply import apply_record
from binwright.controller.decide.events import (
    Action,
    Broadcast,
    Destroy,
    Event,
    Publish,
    Send,
    StepDown,
)
from binwright.controller.decide.states import Sentinel, State
from binwright.group.fold import Measured, RecordRead
from binwright.group.group import Group
from binwright.group.plans import Pack
from binwright.protocol.commands import Command
from binwright.protocol.metadata import Claim, Hello, Inbound, Planned, Report, TableReport
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot

TOPIC = "t"
CONFIG = configured(120, 100)
LONG_AGO = -1_000.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The size of the world, and the number and kinds of its faults."""

    partitions: int = 1
    slots: int = 2
    moves: int = 1  # that no trigger requires
    faults: int = 1
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ConsumerProcess:
    """A process of a slot."""

    slot: Slot
    consumer: consumers.Consumer | None = None  # None: before its Hello
    commands: tuple[Command, ...] = ()  # unread
    in_fleet: bool = True  # the fleet manages it
    paused: bool = False
    last_report: Report | None = None


@dataclass(frozen=True, slots=True)
class ControllerProcess:
    """A process that is the leader, or assumes that it is."""

    name: str
    state: State
    unread: tuple[tuple[int, Inbound], ...] = ()  # of metadata partition 0
    paused: bool = False
    fresh: bool = True  # its claim is not published yet


@dataclass(frozen=True, slots=True)
class World:
    """The state of all processes and logs; a reader's position is the list of unread records."""

    bounds: Bounds
    history: Group  # metadata partition 0, applied from its beginning
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
    """Return the monitor's measurement, which never changes."""
    rates = (PartitionRate(p, BytesPerSecond(1), 30, 1, 0, 1) for p in range(bounds.partitions))
    return measurement(TOPIC, rates)


# --- logs ----------------------------------------------------------------------------------------


def publish(world: World, message: Inbound) -> World:
    """Append to partition 0."""
    if isinstance(message, Planned):
        return world  # no process acts on it
    offset = world.length
    found = []
    for controller in world.controllers:
        mine = isinstance(message, Claim) and message.controller == controller.name
        # All records before its claim are applied at once.
        reader = _caught_up(world, controller) if mine and controller.fresh else controller
        found.append(replace(reader, unread=(*reader.unread, (offset, message))))
    history, _ = apply_record(world.history, RecordRead(0.0, offset, message))
    return replace(world, history=history, length=offset + 1, controllers=tuple(found))


def _caught_up(world: World, controller: ControllerProcess) -> ControllerProcess:
    group = replace(controller.state.group, members=world.history.members)
    state = replace(controller.state, group=group)
    return replace(controller, state=state, unread=(), fresh=False)


def send_command(world: World, slot: Slot, command: Command) -> World:
    """Append to a slot's own partition."""
    found = tuple(
        replace(c, commands=(*c.commands, command)) if c.slot == slot else c
        for c in world.consumers
    )
    return replace(world, consumers=found)


# --- controllers ---------------------------------------------------------------------------------


def claim(world: World) -> World:
    """Start another controller."""
    name = f"c{world.began}"
    state, actions = machine.begin(CONFIG, name, 0.0)
    world = replace(
        world,
        began=world.began + 1,
        controllers=(*world.controllers, ControllerProcess(name, state)),
    )
    world = feed(world, name, Measured(0.0, measured(world.bounds)))
    return carry_out(world, name, actions)


def feed(world: World, name: str, event: Event) -> World:
    """Feed a controller an event, and carry out its actions."""
    index = next(i for i, c in enumerate(world.controllers) if c.name == name)
    controller = world.controllers[index]
    state, actions = machine.transition(controller.state, event)
    world = world.controller(index, replace(controller, state=state))
    return carry_out(world, name, actions)


def carry_out(world: World, name: str, actions: tuple[Action, ...]) -> World:
    """Carry out a controller's actions; the explorer packs, the fleet runs every slot."""
    for action in actions:
        match action:
            case Publish(message=message):
                world = publish(world, message)
            case Send(slot=slot, message=command):
                world = send_command(world, slot, command)
            case Broadcast(message=command):
                for slot in world.slots:
                    world = send_command(world, slot, command)
            case Destroy(slot=slot):
                gone = tuple(c for c in world.consumers if not (c.in_fleet and c.slot == slot))
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
    """Let a controller read the next record of partition 0."""
    controller = world.controllers[index]
    (offset, message), *rest = controller.unread
    world = world.controller(index, replace(controller, unread=tuple(rest)))
    return feed(world, controller.name, RecordRead(0.0, offset, message))


# --- consumers -----------------------------------------------------------------------------------


def hello(world: World, index: int) -> World:
    """Let a process send its Hello; it is ready at once."""
    process = world.consumers[index]
    consumer = consumers.Consumer(process.slot, epoch=world.length)
    world = publish(world, Hello(slot=process.slot, process="p", version="1"))
    consumer, _ = consumers.staging_ready(consumer)
    return report(world.consumer(index, replace(process, consumer=consumer)), index)


def state(process: ConsumerProcess) -> Report:
    """Return the report that a consumer would send."""
    one = process.consumer
    assert one is not None
    return Report(
        slot=one.slot,
        epoch=one.epoch,
        term=one.term,
        ready=one.ready,
        reading={p: part.next for p, part in one.partitions.items()},
        writing={t: TableReport(state="landing", committed={}) for t in one.tables},
        leaving=one.leaving,
    )


def report(world: World, index: int) -> World:
    """Let a consumer send a report."""
    last_report = state(world.consumers[index])
    world = world.consumer(index, replace(world.consumers[index], last_report=last_report))
    return publish(world, last_report)


def handle_command(world: World, index: int) -> World:
    """Let a consumer handle its next command."""
    process = world.consumers[index]
    assert process.consumer is not None
    command, *rest = process.commands
    step = consumers.handle_command(process.consumer, command, 0)
    return apply(world, index, replace(process, commands=tuple(rest)), step)


def apply(world: World, index: int, process: ConsumerProcess, step: consumers.Step) -> World:
    """Carry out the hand-over's actions: reading begins and writing ends at once."""
    consumer, actions = step
    world = world.consumer(index, replace(process, consumer=consumer))
    for action in actions:
        process = world.consumers[index]
        consumer = process.consumer or consumer
        match action:
            case Reply(message=message):
                world = publish(world, message)
            case ReportNow():
                world = report(world, index)
            case Fetch(partition=partition, offset=None):
                world = apply(world, index, process, consumers.located(consumer, partition, 0))
            case StopWriter(topics=topics):
                world = apply(world, index, process, consumers.writing_stopped(consumer, topics))
            case Exit():
                return world.consumer(index, None)
            case _:
                pass
        if index >= len(world.consumers) or world.consumers[index].slot != process.slot:
            return world
    return world
