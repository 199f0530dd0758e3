"""A consumer whose log is what it has not read yet, and whose batches the explorer chooses."""

from collections import deque
from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

from tests.core.delta import Rows
from tests.core.process import Call, Process

from binwright.core.handover import Reply
from binwright.core.messages import Command, Inbound, Report, StateQuery
from binwright.core.model import Slot, TopicPartition
from binwright.core.ports import Hint

if TYPE_CHECKING:
    from tests.core.delta import Write

    from .universe import Universe


class Consumer(Process):
    """It does what it has to do at once, unless the world is lazy."""

    world: "Universe"

    def __init__(self, world: "Universe", slot: Slot) -> None:
        super().__init__(world, slot)
        self.orders = deque[Command]()
        self.early: dict[TopicPartition, int] = {}  # read too early, where a rule is left out
        self.said: Inbound | None = None  # its last answer, which may stand there twice

    def copy(self, world: "Universe", writes: dict[int, "Write"]) -> "Consumer":
        twin = object.__new__(Consumer)
        twin.__dict__.update(self.__dict__)
        twin.world = world
        twin.orders, twin.deeds = self.orders.copy(), self.deeds.copy()
        twin.opens, twin.raised = self.opens.copy(), self.raised.copy()
        twin.fetching, twin.versions = self.fetching.copy(), self.versions.copy()
        twin.unclaimed = self.unclaimed.copy()
        if self.call:
            write = self.call.write
            write = writes.get(id(write), write)
            twin.call = Call(self.call.kind, write, self.call.tries, self.call.lost)
        return twin

    @property
    def epoch(self) -> int:
        return self.consumer.epoch if self.consumer else -1

    def ends(self) -> bool:
        """Whether it will read that it is superseded: nothing after that matters."""
        term = self.consumer.term if self.consumer else 0
        for order in self.orders:
            term = max(term, order.term)
            later = not isinstance(order, StateQuery) and order.epoch > self.epoch > 0
            if later and order.term >= term:
                return True
        return False

    def ordered(self) -> bool:
        return bool(self.orders)

    def _next_order(self) -> Command:
        return self.orders.popleft()

    def do(self) -> None:
        deed = self.deeds[0]
        super().do()
        if isinstance(deed, Reply) and "doubled" in self.world.bounds.kinds:
            self.said = deed.message

    def state(self) -> Report:
        return self._state()

    def speak_up(self) -> None:
        """Report, as it does every second."""
        self.world.publish(self._state())

    def duty(self) -> Callable[[], None] | None:
        """Return what it would do next if nothing were to choose."""
        if self.deeds:
            return self.do
        if self.orders:
            return self.obey
        if self.call is not None:
            return self.take_verdict
        return self.work if self.unclaimed or self.opens else None

    def choices(self) -> list[Rows]:
        """Return what the next batch may be."""
        landed, produced = self.me.landed(), self.world.produced
        found = {
            p: (max(first, landed[p]), produced[p])
            for p, first in sorted(self.fetching.items())
            if p in landed and landed[p] < produced[p]
        }
        batches: list[Rows] = []
        for topic in sorted({p.topic for p in found}):
            there = {p: rows for p, rows in found.items() if p.topic == topic}
            batches.append(there)
            if self.world.bounds.sizes:
                some = [c for n in range(1, len(there)) for c in combinations(sorted(there), n)]
                batches += [{p: there[p] for p in chosen} for chosen in some]
                short = {p: (first, first + 1) for p, (first, _) in there.items()}
                batches += [short] if short != there else []
        return batches

    def write(self, rows: Rows) -> None:
        self._write(rows)

    def hints(self) -> dict[TopicPartition, Hint]:
        return {
            p: Hint(offset, self.versions[p.topic], p.topic)
            for p, offset in self.me.landed().items()
            if p.topic in self.versions
        }

    def hint(self) -> None:
        self.world.hints.update(self.hints())

    def double(self) -> None:
        """Its last answer stands there twice."""
        if self.said is not None:
            self.world.publish(self.said)
            self.said = None
