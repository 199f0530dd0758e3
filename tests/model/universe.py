"""The little world as a value: it can be copied, and offers every step that may come next."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tests.core.builders import measurement
from tests.core.delta import Table, Write
from tests.core.ruler import RULES
from tests.core.world import World

from binwright.core import hearing, wire
from binwright.core.events import Heard, Measured
from binwright.core.group import Group
from binwright.core.messages import Claim, Command, Inbound, PartitionRate, Report
from binwright.core.model import BytesPerSecond, Slot, TopicPartition

from .bounds import Bounds
from .process import Consumer
from .ruler import Controller

Told = tuple[object, ...]


class Step(NamedTuple):
    """What may come next, in words that are put together when somebody wants to read them."""

    told: Told
    kind: str  # of fault; "" if it is none
    take: Callable[["Universe"], object]


def words(step: Step) -> str:
    """Return a step in words."""
    return " ".join(map(str, step.told))


def blank() -> Group:
    return Group(rules=RULES, controller="")


class Universe(World):
    """Logs are what each reader has not read yet; offsets only name Hellos, Claims and deaths."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds.topics)
        self.bounds = bounds
        self.produced = dict.fromkeys(self.produced, bounds.rows)
        self.consumers: list[Consumer] = []
        self.controllers: list[Controller] = []
        self.processes = self.consumers  # type: ignore[assignment]
        self.rulers = self.controllers  # type: ignore[assignment]
        self.slots = tuple(Slot(s) for s in range(bounds.slots))
        self.orders = {slot: [] for slot in self.slots}
        self.length = 1  # of partition 0
        self.chronicle = blank()  # all of it, folded
        self.last: dict[bytes, tuple[int, Inbound]] = {}  # what compaction would leave of it
        self.faults, self.moves = bounds.faults, bounds.moves

    def copy(self) -> "Universe":
        twin = object.__new__(Universe)
        twin.__dict__.update(self.__dict__)
        writes = {id(w): _copied(w) for w in self.writes}
        twin.writes = [writes[id(w)] for w in self.writes]
        for consumer in self.consumers:
            if consumer.call and id(consumer.call.write) not in writes:
                writes[id(consumer.call.write)] = _copied(consumer.call.write)
        twin.consumers = [c.copy(twin, writes) for c in self.consumers]
        twin.controllers = [c.copy(twin) for c in self.controllers]
        twin.processes, twin.rulers = twin.consumers, twin.controllers  # type: ignore[assignment]
        twin.tables = {
            name: Table(t.commits.copy(), t.numbers.copy(), t.landed.copy())
            for name, t in self.tables.items()
        }
        twin.hints, twin.said, twin.last = self.hints.copy(), self.said.copy(), self.last.copy()
        return twin

    # --- logs ------------------------------------------------------------------------------------

    def publish(self, message: Inbound) -> int:
        offset, self.length = self.length, self.length + 1
        for controller in self.controllers:
            if isinstance(message, Claim) and message.controller == controller.name:
                if not controller.reigns:
                    controller.known = self.history(compacted=controller.compacted)
                    controller.unread.clear()
            elif controller.ends() or (
                isinstance(message, Report) and _told_already(controller, message)
            ):
                continue
            controller.unread.append((offset, message))
        self.chronicle, _ = hearing.hear(self.chronicle, Heard(0.0, offset, message))
        if self.bounds.compacted:
            self.last[wire.key(message)] = (offset, message)
        return offset

    def history(self, *, compacted: bool) -> Group:
        """Return what partition 0 tells who reads it from its beginning."""
        if not compacted:
            return self.chronicle
        known = blank()
        for offset, message in sorted(self.last.values(), key=lambda kept: kept[0]):
            known, _ = hearing.hear(known, Heard(0.0, offset, message))
        return known

    def tell(self, slot: Slot, command: Command) -> None:
        for consumer in self.consumers:
            if consumer.slot == slot and not consumer.ends():
                consumer.orders.append(command)

    def crown(self, *, compacted: bool = False) -> None:
        self.crowned += 1
        name = f"controller {self.crowned}"
        self.controllers.append(Controller(self, name, compacted=compacted))

    def start(self, slot: Slot) -> None:
        self.consumers.append(Consumer(self, slot))

    def measure_for(self, controller: Controller) -> None:
        for topic in self.tables:
            rates = tuple(
                PartitionRate(p.partition, BytesPerSecond(1), 30, end, 0, 1)
                for p, end in sorted(self.produced.items())
                if p.topic == topic
            )
            controller.feed(Measured(0.0, measurement(topic, rates)))

    # --- what follows at once ----------------------------------------------------------------

    def rest(self) -> None:
        """Let everybody read and say what there is, who neither sleeps nor lags."""
        while any([self._rest_consumers(), self._rest_controllers()]):
            pass
        self._forget_doomed()

    def _rest_consumers(self) -> bool:
        found = False
        for consumer in self.consumers.copy():
            while consumer.deeds and not consumer.paused and not self.bounds.lazy:
                consumer.do()
                found = True
                if consumer not in self.consumers:
                    break
        return found

    def _rest_controllers(self) -> bool:
        found = False
        for controller in self.controllers.copy():
            while not controller.paused and controller in self.controllers:
                if controller.words and not self.bounds.lazy:
                    controller.speak()
                elif controller.unread and not controller.lags:
                    controller.read()
                else:
                    break
                found = True
        return found

    def _forget_doomed(self) -> None:
        """Drop writes that will fail and that nobody waits for."""
        awaited = {id(c.call.write) for c in self.consumers if c.call and not c.call.lost}
        self.writes = [
            w
            for w in self.writes
            if id(w) in awaited or self.tables[w.topic].numbers.get(w.app, -1) == w.seen
        ]

    def lands(self, write: Write) -> bool:
        """Whether this write would commit if it ended now."""
        return self.tables[write.topic].numbers.get(write.app, -1) == write.seen

    def settled(self) -> bool:
        """Whether all has landed, every slot can be used, and one controller knows it."""
        if self.writes or not super().settled():
            return False
        known = self.controllers[0].state.group
        return all(known.member(slot).usable for slot in self.slots)

    def begin(self, owners: dict[TopicPartition, Slot]) -> None:
        """Start everybody, and give the partitions to these."""
        self.crown()
        self.calm()
        lead = self.controllers[0]
        for slot in self.slots:
            self.start(slot)
            self.consumers[-1].hello()
        self.calm()
        lead.plan(owners)
        self.calm()

    def calm(self) -> None:
        """Take what may come next without choices, faults and plans."""
        self.rest()
        while (step := self._forced()) is not None:
            step()
            self.rest()

    def _forced(self) -> Callable[[], None] | None:
        if self.writes:
            return partial(self.finish, self.writes[0])
        for controller in self.controllers:
            if controller.words:
                return controller.speak
            if controller.unread:
                return controller.read
        return next(filter(None, (consumer.duty() for consumer in self.consumers)), None)


def _copied(write: Write) -> Write:
    return replace(write)


def _told_already(controller: Controller, report: Report) -> bool:
    """Whether the last thing it has still to read of this process says the same."""
    for _, message in reversed(controller.unread):
        if getattr(message, "slot", None) == report.slot and not isinstance(message, Claim):
            return message == report
    return False
