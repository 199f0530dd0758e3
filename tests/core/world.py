"""A whole group in miniature: the pure core on logs that are lists.

Every actor offers the steps it may take next; whoever drives the world chooses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from binwright.core.events import Measured, Tick
from binwright.core.group import Held
from binwright.core.machine import Sentinel
from binwright.core.messages import Command, Inbound, PartitionRate
from binwright.core.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition
from binwright.core.ports import Hint

from .builders import measurement
from .delta import Table, Write
from .process import Process
from .ruler import Ruler

Step = Callable[[], None]


class World:
    """Logs, tables, a fleet, and everybody who acts on them."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.now = 0.0
        self.inbox: list[Inbound] = []
        self.orders: dict[Slot, list[Command]] = {}
        self.produced = {
            TopicPartition(t, i): 1 for t, count in topics.items() for i in range(count)
        }
        self.tables = {topic: Table() for topic in topics}
        self.hints: dict[TopicPartition, Hint] = {}
        self.writes: list[Write] = []
        self.wish: dict[TopicPartition, Slot] = {}  # what the packing answers
        self.hidden: set[TopicPartition] = set()  # from the monitor, and all after it
        self.room = True  # for more processes
        self.desired: frozenset[Slot] = frozenset()
        self.processes: list[Process] = []
        self.rulers: list[Ruler] = []
        self.crowned = 0
        self.said: list[tuple[str, object]] = []

    def crown(self) -> None:
        """Let one more controller claim."""
        self.crowned += 1
        self.rulers.append(Ruler(self, f"ruler-{self.crowned}"))

    def publish(self, message: Inbound) -> int:
        """Append to partition 0; return the offset."""
        self.inbox.append(message)
        return len(self.inbox) - 1

    def tell(self, slot: Slot, command: Command) -> None:
        self.orders.setdefault(slot, []).append(command)

    def tell_all(self, command: Command) -> None:
        for slot in sorted(self.orders):
            self.tell(slot, command)

    def packing(self, rates: Rates, current: Assignment) -> dict[TopicPartition, Slot]:
        return {p: self.wish.get(p, current.get(p, Slot(0))) for p in rates}

    def destroy(self, slot: Slot) -> None:
        for process in [p for p in self.processes if p.owned and p.slot == slot]:
            process.end()

    def reconcile(self, slots: frozenset[Slot]) -> None:
        self.desired = slots
        for slot in slots:
            self.orders.setdefault(slot, [])
        for process in self.processes:
            if process.owned and process.slot not in slots:
                process.leave()

    def fill(self) -> Iterator[Step]:
        """Start what is desired and does not run."""
        there = {process.slot for process in self.processes if process.owned}
        for slot in sorted(self.desired - there):
            yield lambda slot=slot: self.processes.append(Process(self, slot))  # type: ignore[misc]

    def finish(self, write: Write) -> None:
        self.writes.remove(write)
        self.tables[write.topic].end(write)

    def steps(self) -> list[Step]:
        """Return everything that can happen next without a fault, in a fixed order."""
        steps = list(self.fill()) if self.room else []
        steps += [
            lambda write=write: self.finish(write)  # type: ignore[misc]
            for write in self.writes
            if not write.stuck
        ]
        for actor in self.actors():
            if not actor.paused:
                steps += actor.steps()
        return steps

    def actors(self) -> Sequence[Ruler | Process]:
        return [*self.rulers, *self.processes]

    def measure(self) -> None:
        for topic in self.tables:
            hidden = (p.partition for p in self.hidden if p.topic == topic)
            count = min(hidden, default=len(self.produced))
            rates = tuple(
                PartitionRate(
                    partition=p.partition,
                    rate=BytesPerSecond(10),
                    window_s=30,
                    end=end,
                    start=0,
                    bytes_per_record=1,
                )
                for p, end in sorted(self.produced.items())
                if p.topic == topic and p.partition < count
            )
            for ruler in self.rulers:
                ruler.feed(Measured(self.now, measurement(topic, rates)))

    def tick(self, seconds: float) -> None:
        """Let time go on: clocks tick, reports fall due, the monitor speaks."""
        self.now += seconds
        self.measure()
        for ruler in self.rulers:
            if not ruler.paused:
                ruler.feed(Tick(self.now))
        for process in self.processes:
            process.report()

    def run(self, steps: int = 20_000) -> None:
        """Let everybody act in turn until nobody has anything to do."""
        for turn in range(steps):
            if not (found := self.steps()):
                return
            found[turn % len(found)]()
        raise AssertionError("they never come to rest")

    def settle(self, rounds: int = 400) -> None:
        """End every fault; everything must land then, and one controller reign over it all."""
        self.room, self.hidden = True, set()
        for actor in self.actors():
            actor.paused = False
        for write in self.writes:
            write.stuck = False
        for _ in range(rounds):
            if not self.rulers:
                self.crown()
            self.run()
            if self.settled():
                return
            self.tick(1.0)
        raise AssertionError(f"a standstill: {[ruler.state for ruler in self.rulers]}")

    def landed(self) -> bool:
        return all(self.tables[p.topic].landed.get(p, 0) == end for p, end in self.produced.items())

    def settled(self) -> bool:
        """Whether all has landed, and one controller knows a living owner of every partition."""
        if not self.landed() or len(self.rulers) != 1:
            return False
        state = self.rulers[0].state
        places = state.group.places if isinstance(state, Sentinel) else {}
        return places.keys() == self.produced.keys() and all(
            isinstance(place.at, Held) for place in places.values()
        )
