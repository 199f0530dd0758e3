"""A consumer of the little world."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from binwright.core import handover
from binwright.core.handover import (
    Ahead,
    Closing,
    Consumer,
    Deed,
    Exit,
    Fetch,
    Land,
    Open,
    Opening,
    Quit,
    Reply,
)
from binwright.core.messages import Command, Fence, Hello, Report
from binwright.core.model import Slot, TopicPartition
from binwright.core.ports import Hint
from binwright.core.stamp import (
    Stamp,
    app_id,
    fence_version,
    landed_already,
    resolve,
    write_version,
)

from .delta import Rows, Write

if TYPE_CHECKING:
    from .world import World

GROUP = "g"
RELIEF_TICKS = 3
Kind = Literal["claim", "fence", "write"]
Step = Callable[[], None]


@dataclass(frozen=True)
class Call:
    """What the one Spark session is busy with."""

    kind: Kind
    write: Write
    tries: int = 1
    lost: bool = False  # the client gave up waiting


class Process:
    """A consumer: the hand-over, its place in its commands, and a very small Spark client."""

    def __init__(self, world: "World", slot: Slot) -> None:
        self.world, self.slot = world, slot
        self.owned, self.paused = True, False  # not owned: the fleet has lost sight of it
        self.position = len(world.orders[slot])
        self.consumer: Consumer | None = None  # before its Hello
        self.deeds: deque[Deed] = deque()
        self.opens: deque[Open] = deque()
        self.raised: list[tuple[str, Fence]] = []  # of the first of `opens`
        self.fetching: dict[TopicPartition, int] = {}
        self.unclaimed = sorted(world.tables)
        self.versions: dict[str, int] = {}
        self.sequence = 0
        self.call: Call | None = None
        self.turn = 0
        self.waited = 0  # to be relieved

    @property
    def me(self) -> Consumer:
        assert self.consumer is not None
        return self.consumer

    def end(self) -> None:
        if self in self.world.processes:
            self.world.processes.remove(self)

    def leave(self) -> None:
        if self.consumer is None:
            self.end()
        else:
            self._apply(handover.leave(self.me))

    def drain(self) -> None:
        if self.consumer is None:
            self.end()
        else:
            self._apply(handover.drain(self.me))

    def report(self) -> None:
        if self.consumer and self.me.leaving and not self.paused:
            self.waited += 1
            if self.waited > RELIEF_TICKS:
                self.drain()
        if self.consumer and not self.paused and handover.ReportNow() not in self.deeds:
            self.deeds.append(handover.ReportNow())

    def steps(self) -> list[Step]:
        if self.consumer is None:
            return [self.hello]
        steps: list[Step] = [self.do] if self.deeds else []
        if self.ordered():
            steps.append(self.obey)
        if self.call and (self.call.lost or self.call.write.verdict != ""):
            steps.append(self.take_verdict)
        elif not self.call and (self.unclaimed or self.opens or self._rows()):
            steps.append(self.work)
        return steps

    def hello(self) -> None:
        epoch = self.world.publish(Hello(slot=self.slot, process="p", version="v"))
        self.consumer = Consumer(self.slot, epoch)

    def ordered(self) -> bool:
        """Whether a command waits to be obeyed."""
        return self.position < len(self.world.orders[self.slot])

    def obey(self) -> None:
        self._apply(handover.obey(self.me, self._next_order(), 0))

    def _next_order(self) -> Command:
        self.position += 1
        return self.world.orders[self.slot][self.position - 1]

    def _apply(self, done: handover.Done) -> None:
        self.consumer, deeds = done
        for deed in deeds:
            if isinstance(deed, Quit):
                self.fetching.pop(deed.partition, None)
            elif not isinstance(deed, Land):  # rows are made of offsets here: nothing to carry
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
                self.world.publish(message)
            case Fetch(partition=partition, offset=offset):
                if partition in self.me.reading():
                    self.fetching[partition] = offset
            case Open():
                self.opens.append(deed)
            case Exit():
                self.end()
            case _ if any(isinstance(waiting, Reply) for waiting in self.deeds):
                self.deeds.append(deed)  # no report overtakes an answer (†)
            case _:
                self.world.publish(self._state())

    def _state(self) -> Report:
        return Report(
            slot=self.slot,
            epoch=self.me.epoch,
            term=self.me.term,
            ready=self.me.ready,
            held=self.me.landed(),
            opening=self.me.among(Opening),
            ahead=self.me.among(Ahead),
            closing=self.me.among(Closing),
            leaving=self.me.leaving,
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

    def _call(self, kind: Kind, topic: str, slot: Slot, number: int) -> None:
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
                    self._call("fence", topic, fence.slot, fence_version(fence.number))
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
        self.sequence += 1
        topic = next(iter(rows)).topic
        ends = {p: end for p, (_, end) in rows.items()}
        landed = self._stamped(topic) | ends
        self.consumer = handover.handed(self.me, ends)
        stamp = Stamp(
            group=GROUP,
            slot=self.slot,
            epoch=self.me.epoch,
            sequence=self.sequence,
            landed=landed,
        ).encode()
        number = write_version(self.me.epoch, self.sequence)
        write = Write(topic, app_id(GROUP, self.slot), number, 0, rows, stamp)
        self.call = Call("write", self._submit(write))

    def _stamped(self, topic: str) -> dict[TopicPartition, int]:
        """Return what of a table a stamp names, beside the rows of its write."""
        return {p: landed for p, landed in self.me.landed().items() if p.topic == topic}

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
