"""A whole group in miniature: the pure core on logs that are lists and tables that keep Delta's rules.

Every actor offers the steps it may take next; whoever drives the world chooses. A table refuses at
once, with an `AssertionError`, to land a row twice or to skip one.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from binwright.core import handover, machine
from binwright.core.events import (
    Action,
    Broadcast,
    Destroy,
    Event,
    Heard,
    Measured,
    Pack,
    Packed,
    Publish,
    Reconcile,
    Say,
    StepDown,
    Tell,
    Tick,
)
from binwright.core.group import Held, Rules
from binwright.core.handover import Closing, Consumer, Deed, Exit, Fetch, Open, Opening, Quit, Reply
from binwright.core.messages import Command, Hello, Inbound, Measurement, PartitionRate, Report
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.ports import Commit, Hint
from binwright.core.stamp import Stamp, app_id, landed_already, resolve, write_version

GROUP = "g"
RULES = Rules(
    limit=BytesPerSecond(15),
    capacity=BytesPerSecond(15),
    look_again_s=5,
    plan_timeout_s=12,
    repeat_s=3,
)

Step = Callable[[], None]
Rows = Mapping[TopicPartition, tuple[int, int]]  # -> first offset, end


@dataclass(eq=False)
class Write:
    """A transaction on its way; it ends whether or not its client still waits."""

    topic: str
    app: str
    number: int
    seen: int  # the app id's number when it began
    rows: Rows
    stamp: str | None
    stuck: bool = False  # on a slow server: it ends much later
    verdict: Literal["", "conflict"] | int | None = ""  # or the version it made, None: skipped


@dataclass
class Table:
    """What Delta knows of one topic."""

    commits: list[Commit] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    landed: dict[TopicPartition, int] = field(default_factory=dict)

    def end(self, write: Write) -> None:
        """Commit, or fail since somebody else wrote under this app id meanwhile."""
        if self.numbers.get(write.app, -1) != write.seen:
            write.verdict = "conflict"
            return
        for partition, (first, end) in write.rows.items():
            landed = self.landed.get(partition, 0)
            assert first >= landed, f"{partition}: {first}..{end} lands twice (is at {landed})"
            assert first <= landed, f"{partition}: {landed}..{first} is skipped"
            self.landed[partition] = end
        self.numbers[write.app], write.verdict = write.number, len(self.commits)
        self.commits.append(Commit(len(self.commits), write.stamp))


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
        self.hidden: set[TopicPartition] = set()  # from the monitor
        self.desired: frozenset[Slot] = frozenset()
        self.processes: list[Process] = []
        self.rulers: list[Ruler] = []
        self.doubts: list[object] = []

    def tell(self, slot: Slot, command: Command) -> None:
        self.orders.setdefault(slot, []).append(command)

    def reconcile(self, slots: frozenset[Slot]) -> None:
        self.desired = slots
        for slot in slots:
            self.orders.setdefault(slot, [])
        for process in self.processes:
            if process.owned and process.slot not in slots:
                process.drain()

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
        steps = list(self.fill())
        steps += [
            lambda write=write: self.finish(write)  # type: ignore[misc]
            for write in self.writes
            if not write.stuck
        ]
        for actor in (*self.rulers, *self.processes):
            if not actor.paused:
                steps += actor.steps()
        return steps

    def measure(self) -> None:
        for topic in self.tables:
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
                if p.topic == topic and p not in self.hidden
            )
            for ruler in self.rulers:
                measurement = Measurement(topic=topic, at_ms=0, partitions=rates)
                ruler.feed(Measured(self.now, measurement))

    def tick(self, seconds: float) -> None:
        """Let time go on: clocks tick, reports fall due, the monitor speaks."""
        self.now += seconds
        self.measure()
        for ruler in self.rulers:
            if not ruler.paused:
                ruler.feed(Tick(self.now))
        for process in self.processes:
            process.report()

    def landed(self) -> bool:
        return all(self.tables[p.topic].landed.get(p, 0) == end for p, end in self.produced.items())

    def settled(self) -> bool:
        """Whether one controller reigns, and knows a living owner of every partition."""
        if len(self.rulers) != 1 or not isinstance(self.rulers[0].state, machine.Sentinel):
            return False
        places = self.rulers[0].state.group.places
        return places.keys() == self.produced.keys() and all(
            isinstance(place.at, Held) for place in places.values()
        )


class Ruler:
    """A controller: the machine, its place in partition 0, the words it has still to say."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.paused, self.position = world, False, 0
        self.words: deque[Action] = deque()
        self.state, words = machine.begin(RULES, name, world.now)
        self.words.extend(words)

    def feed(self, event: Event) -> None:
        self.state, actions = machine.transition(self.state, event)
        self.words.extend(actions)

    def steps(self) -> list[Step]:
        steps: list[Step] = [self.read] if self.position < len(self.world.inbox) else []
        return [*steps, self.speak] if self.words else steps

    def read(self) -> None:
        offset, self.position = self.position, self.position + 1
        self.feed(Heard(self.world.now, offset, self.world.inbox[offset]))

    def speak(self) -> None:
        self._say(self.words.popleft())

    def stutter(self) -> None:
        """Say a word whose confirmation is lost: it will be said again."""
        if self.words and isinstance(self.words[0], Publish | Tell | Broadcast):
            self._say(self.words[0])

    def _say(self, word: Action) -> None:
        world = self.world
        match word:
            case Publish(message=message):
                world.inbox.append(message)
            case Tell(slot=slot, message=command):
                world.tell(slot, command)
            case Broadcast(message=command):
                for slot in sorted(world.orders):
                    world.tell(slot, command)
            case Pack(rates=rates, current=current):
                target = {p: world.wish.get(p, current.get(p, Slot(0))) for p in rates}
                self.feed(Packed(world.now, target))
            case Reconcile(slots=slots):
                world.reconcile(slots)
            case Destroy(slot=slot):
                for process in [p for p in world.processes if p.owned and p.slot == slot]:
                    process.end()
            case StepDown():
                world.rulers.remove(self)
            case Say(event="assignment.doubted", facts=facts):
                world.doubts.append(facts["reason"])
            case Say():
                pass


@dataclass(frozen=True)
class Call:
    """What the one Spark session is busy with."""

    kind: Literal["claim", "fence", "write"]
    write: Write
    tries: int = 1
    lost: bool = False  # the client gave up waiting


class Process:
    """A consumer: the hand-over, its place in its commands, and a very small Spark client."""

    def __init__(self, world: World, slot: Slot) -> None:
        self.world, self.slot = world, slot
        self.owned, self.paused = True, False  # not owned: the fleet has lost sight of it
        self.position = len(world.orders[slot])
        self.consumer: Consumer | None = None  # before its Hello
        self.deeds: deque[Deed] = deque()
        self.opens: deque[Open] = deque()
        self.raised: list[tuple[str, object]] = []  # of the first of `opens`
        self.fetching: dict[TopicPartition, int] = {}
        self.unclaimed = sorted(world.tables)
        self.versions: dict[str, int] = {}
        self.sequence = 0
        self.call: Call | None = None
        self.turn = 0

    @property
    def me(self) -> Consumer:
        assert self.consumer is not None
        return self.consumer

    def end(self) -> None:
        if self in self.world.processes:
            self.world.processes.remove(self)

    def drain(self) -> None:
        if self.consumer is None:
            self.end()
        else:
            self._apply(handover.drain(self.me))

    def report(self) -> None:
        if self.consumer and not self.paused and handover.ReportNow() not in self.deeds:
            self.deeds.append(handover.ReportNow())

    def steps(self) -> list[Step]:
        if self.consumer is None:
            return [self.hello]
        steps: list[Step] = [self.do] if self.deeds else []
        if self.position < len(self.world.orders[self.slot]):
            steps.append(self.obey)
        if self.call and (self.call.lost or self.call.write.verdict != ""):  # noqa: PLC1901 - not None
            steps.append(self.take_verdict)
        elif not self.call and (self.unclaimed or self.opens or self._rows()):
            steps.append(self.work)
        return steps

    def hello(self) -> None:
        self.consumer = Consumer(self.slot, len(self.world.inbox))
        self.world.inbox.append(Hello(slot=self.slot, process="p", version="v"))

    def obey(self) -> None:
        command = self.world.orders[self.slot][self.position]
        self.position += 1
        self._apply(handover.obey(self.me, command, 0))

    def _apply(self, done: handover.Done) -> None:
        self.consumer, deeds = done
        for deed in deeds:
            if isinstance(deed, Quit):
                self.fetching.pop(deed.partition, None)
            else:
                self.deeds.append(deed)

    def do(self) -> None:
        self._do(self.deeds.popleft())

    def stutter(self) -> None:
        """Say an answer whose confirmation is lost: it will be said again."""
        if self.deeds and isinstance(self.deeds[0], Reply):
            self._do(self.deeds[0])

    def _do(self, deed: Deed) -> None:
        match deed:
            case Reply(message=message):
                self.world.inbox.append(message)
            case Fetch(partition=partition, offset=offset):
                if partition in self.me.landed():
                    self.fetching[partition] = offset
            case Open():
                self.opens.append(deed)
            case Exit():
                self.end()
            case _:
                self.world.inbox.append(self._state())

    def _state(self) -> Report:
        return Report(
            slot=self.slot,
            epoch=self.me.epoch,
            term=self.me.term,
            ready=self.me.ready,
            held=self.me.landed(),
            opening=self.me.among(Opening),
            closing=self.me.among(Closing),
        )

    # --- the session -----------------------------------------------------------------------------

    def work(self) -> None:
        """Use the session: claims first, then openings, then batches."""
        if self.unclaimed:
            self._call("claim", self.unclaimed[0], self.slot, write_version(self.me.epoch))
        elif self.opens:
            self._open(self.opens[0])
        else:
            self._write(self._rows())

    def _call(
        self, kind: Literal["claim", "fence", "write"], topic: str, slot: Slot, number: int
    ) -> None:
        write = Write(topic, app_id(GROUP, slot), number, 0, {}, None)
        self.call = Call(kind, self._submit(write))

    def _submit(self, write: Write) -> Write:
        write.seen = self.world.tables[write.topic].numbers.get(write.app, -1)
        if write.seen >= write.number:
            write.verdict = None
        else:
            self.world.writes.append(write)
        return write

    def _open(self, opening: Open) -> None:
        for topic in sorted({p.topic for p in opening.partitions}):
            for fence in opening.fences:
                if (topic, fence) not in self.raised:
                    self.raised.append((topic, fence))
                    self._call("fence", topic, fence.slot, write_version(fence.number))
                    return
        self.raised.clear()
        self.opens.popleft()
        found = {p: self._resolve(p) for p in opening.partitions}
        self._apply(handover.opened(self.me, opening, found))

    def _resolve(self, partition: TopicPartition) -> int:
        commits = self.world.tables[partition.topic].commits
        return resolve(partition, self.world.hints.get(partition), commits, GROUP) or 0

    def _rows(self) -> Rows:
        """Return what a batch would take; each writes what another part of the partitions have."""
        landed = self.me.landed()
        found = {
            p: (max(first, landed[p]), min(landed[p] + 1 + (self.turn + i) % 3, end))
            for i, (p, first) in enumerate(sorted(self.fetching.items()))
            if p in landed and landed[p] < (end := self.world.produced[p])
        }
        topics = sorted({p.topic for p in found})
        chosen = topics[self.turn % len(topics)] if topics else ""
        return {p: rows for p, rows in found.items() if p.topic == chosen}

    def _write(self, rows: Rows) -> None:
        self.turn += 1
        if self.me.leaving:
            return
        self.sequence += 1
        topic = next(iter(rows)).topic
        ends = {p: end for p, (_, end) in rows.items()}
        held = {p: landed for p, landed in self.me.landed().items() if p.topic == topic}
        self.consumer = handover.handed(self.me, ends)
        stamp = Stamp(
            group=GROUP,
            slot=self.slot,
            epoch=self.me.epoch,
            sequence=self.sequence,
            landed={**held, **ends},
        ).encode()
        number = write_version(self.me.epoch, self.sequence)
        write = Write(topic, app_id(GROUP, self.slot), number, 0, rows, stamp)
        self.call = Call("write", self._submit(write))

    def give_up(self) -> None:
        """The word about the call is lost; what the server does with it stays open."""
        if self.call:
            self.call = Call(self.call.kind, self.call.write, self.call.tries, lost=True)

    def take_verdict(self) -> None:
        assert self.call is not None
        call, write = self.call, self.call.write
        if call.lost or write.verdict == "conflict":  # proves nothing: send it again
            again = Write(write.topic, write.app, write.number, 0, write.rows, write.stamp)
            self.call = Call(call.kind, self._submit(again), call.tries + 1)
            return
        self.call = None
        version = write.verdict if isinstance(write.verdict, int) else None
        if call.kind == "fence":
            return
        if version is None and call.kind == "write" and call.tries > 1:
            commits = self.world.tables[write.topic].commits
            version = landed_already(commits, GROUP, self.slot, self.me.epoch, self.sequence)
        if version is None:
            self.end()  # fenced
            return
        self.versions[write.topic] = version
        if call.kind == "write":
            self._apply(handover.settled(self.me))
            return
        self.unclaimed.remove(write.topic)
        if not self.unclaimed:
            self._apply(handover.claimed(self.me))

    def hint(self) -> None:
        """Commit offsets: held and landing now, with the own last commit's version."""
        if self.consumer and not self.unclaimed:
            for p, offset in self.me.landed().items():
                self.world.hints[p] = Hint(offset, self.versions[p.topic], p.topic)
