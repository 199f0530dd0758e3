"""Split partitions: the owner hands out parts and announces them, helpers stage theirs.

`decide.split` decides; here is what acts. A partition is handed out in parts only while its owner
is behind. When anything goes wrong, the owner reads on by itself where the last announcement ends.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from binwright.consumer.decide import split as decide
from binwright.consumer.decide.split import Part, Piece, Split
from binwright.consumer.events import Emit, PartAnnounced
from binwright.consumer.read.backlog import Backlog
from binwright.consumer.read.partitions import PARTITION_DELAYED, AssignedPartitions
from binwright.consumer.stage.file_writer import FileWriter, Origin
from binwright.consumer.stage.part_stager import PartStager
from binwright.consumer.stage.range_messages import RangeMessages
from binwright.consumer.stage.stager import announce
from binwright.protocol.errors import BrokerUnavailable, RangeRefused, TopicMissing
from binwright.protocol.landing import OffsetRange, RangeMessage, RangeStaged, Staged, StageRange
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metadata import StagedShare
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.ports.kafka import ControlTopics, DataReader
from binwright.runtime.backoff import until_set
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.run import must_not_end

PARTITION_HANDED_OUT = LogEvent.info(
    "partition.handed_out",
    "The owner of a split partition is behind, and hands out parts from this offset on.",
)
PARTITION_HANDED_BACK = LogEvent.info(
    "partition.handed_back",
    "The owner of a split partition reads on by itself: it has caught up, or a part could not be "
    "staged.",
)

LOOK_S = 1.0  # between two looks at how far the owner is
MOST_OWNERS = 100  # processes and partitions of which a helper knows what it has staged
TICK_S = 0.25  # between two looks at a partition that is handed out


@dataclass(slots=True, eq=False)
class _Lent:
    """A partition while it is handed out."""

    partition: TopicPartition
    topic_id: str | None
    split: Split
    end: int  # of its log, when it was last asked for
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Splits:
    """The split partitions that this consumer owns, and those that it helps to stage.

    Attributes:
        shares: Partition -> its owner, then its helpers, as a controller has it.
    """

    def __init__(
        self,
        *,
        origin: Origin,
        bus: ControlTopics,
        reader: DataReader,
        partitions: AssignedPartitions,
        stager: PartStager,
        helped: Backlog,
        writer: FileWriter,
        next_offset: Callable[[TopicPartition], int | None],
        emit: Emit,
        wall_ms: Callable[[], int],
    ) -> None:
        """Hand out parts, once `share` names some partitions.

        Args:
            origin: This consumer.
            bus: Where announcements go, and what consumers write to each other.
            reader: Knows how far the owner is, and where logs end.
            partitions: Reads partitions while they are not handed out.
            stager: Stages parts here, for this consumer and for others.
            helped: Counts what was staged for others, whether or not they announce it.
            writer: Counts what was announced.
            next_offset: Returns the next offset to stage; None for a partition that is not read.
            emit: Is told what was announced.
            wall_ms: Wall clock.
        """
        self.shares: Mapping[TopicPartition, tuple[Slot, ...]] = {}
        self._origin, self._bus, self._reader = origin, bus, reader
        self._partitions, self._stager, self._writer = partitions, stager, writer
        self._helped = helped
        self._next_offset, self._emit = next_offset, emit
        self._messages = RangeMessages(bus, origin.landing_topic, self._read, wall_ms)
        self._lent: dict[TopicPartition, _Lent] = {}
        self._positions: dict[TopicPartition, int] = {}  # of the owner, at the last look
        self._alone_before: dict[TopicPartition, int] = {}  # the owner reads on by itself up to it
        self._staged: dict[TopicPartition, Counter[Slot]] = {}
        self._hand_outs = 0
        self._served = OrderedDict[tuple[int, TopicPartition], int]()
        """The owner's epoch, partition -> highest number of a range."""
        self._helping = Counter[TopicPartition]()  # ranges that are being staged, or wait
        self._tasks = asyncio.TaskGroup()

    def share(self, shares: Mapping[TopicPartition, tuple[Slot, ...]]) -> None:
        """Split these partitions, and no others."""
        self.shares = shares
        self._staged = {p: staged for p, staged in self._staged.items() if p in shares}
        self._messages.follow({p.topic for p in shares})
        for partition, lent in self._lent.items():
            slots = shares.get(partition, ())
            kept = slots if self._owns(partition) else (self._origin.slot,)
            lent.split = decide.with_slots(lent.split, kept, loop_s())
            lent.changed.set()

    def reclaim(self, partition: TopicPartition) -> None:
        """Hand out a partition no more: it is stopped, or begins elsewhere."""
        lent = self._lent.pop(partition, None)
        if lent is not None and lent.task is not None:
            lent.task.cancel()
        self._alone_before.pop(partition, None)

    def report(self) -> dict[TopicPartition, tuple[StagedShare, ...]]:
        """Return what each consumer has staged of each split partition, as far as it is known."""
        return {
            p: tuple(StagedShare(s, self._staged.get(p, Counter())[s]) for s in slots)
            for p, slots in self.shares.items()
        }

    async def run(self) -> None:
        """Look after split partitions until cancelled."""
        try:
            async with self._tasks:
                self._tasks.create_task(must_not_end(self._messages.run()))
                while True:
                    self._look()
                    await asyncio.sleep(LOOK_S)
        finally:
            await self._stager.close()

    def _owns(self, partition: TopicPartition) -> bool:
        return self.shares.get(partition, ())[:1] == (self._origin.slot,)

    # --- the owner -------------------------------------------------------------------------------

    def _look(self) -> None:
        """Begin to hand out the own partitions that are behind."""
        progress = self._reader.progress().offsets if self.shares else {}
        before, self._positions = self._positions, {}
        for partition, slots in self.shares.items():
            if partition not in progress or not self._owns(partition) or len(slots) == 1:
                continue
            position, end = progress[partition]
            self._positions[partition] = position
            speed = (position - before.get(partition, position)) / LOOK_S
            alone = position <= self._alone_before.get(partition, -1)
            if partition not in before or alone or not decide.is_behind(position, end, speed):
                continue
            if (lent := self._partitions.lend(partition)) is not None:
                begin, topic_id = lent
                self._hand_outs += 1
                numbers = self._hand_outs << 32  # those of an earlier time never come again
                split = Split(slots, begin, begin, speed, numbers)
                self._hand_out(partition, topic_id, split, end)

    def _hand_out(
        self, partition: TopicPartition, topic_id: str | None, split: Split, end: int
    ) -> None:
        log(PARTITION_HANDED_OUT, partition=str(partition), offset=split.next)
        lent = self._lent[partition] = _Lent(partition, topic_id, split, end)
        lent.task = self._tasks.create_task(self._run_lent(lent))

    async def _run_lent(self, lent: _Lent) -> None:
        """Hand out parts and announce pieces, until little is left or something went wrong."""
        partition = lent.partition
        asked_at = loop_s()
        while True:
            lent.changed.clear()
            if loop_s() - asked_at >= TICK_S:
                asked_at = loop_s()
                await self._ask_end(lent)
            lent.split = decide.return_overdue(lent.split, loop_s())
            if partition.topic not in self._partitions.paused_topics:
                lent.split, parts = decide.hand_out(lent.split, lent.end, loop_s())
                for part in parts:
                    self._tasks.create_task(self._give(lent, part))
            await self._announce(lent)
            if self._lent.get(partition) is not lent:
                return  # its topic was recreated
            split = lent.split
            at_begin = self._next_offset(partition) == split.next  # else older rows are on the way
            if at_begin and (split.failed_before is not None or decide.has_ended(split, lent.end)):
                break
            await until_set(lent.changed, TICK_S)
        del self._lent[partition]
        if split.failed_before is not None:
            self._alone_before[partition] = split.failed_before
        log(PARTITION_HANDED_BACK, partition=str(partition), offset=split.next)
        self._partitions.give_back(partition, split.next)

    async def _ask_end(self, lent: _Lent) -> None:
        """Ask for the end of the log; while nobody answers, it is where it was."""
        try:
            bounds = await self._reader.bounds([lent.partition])
        except (BrokerUnavailable, TopicMissing) as exc:
            log(PARTITION_DELAYED, partitions=[str(lent.partition)], reason=str(exc))
        else:
            _, lent.end = bounds.get(lent.partition, (0, lent.end))

    async def _give(self, lent: _Lent, part: Part) -> None:
        """Have a part staged: here, if it is this consumer's own."""
        if part.slot != self._origin.slot:
            request = StageRange(
                helper=part.slot,
                slot=self._origin.slot,
                epoch=self._origin.epoch,
                number=part.number,
                partition=lent.partition,
                topic_id=lent.topic_id,
                range=part.range,
            )
            await self._messages.send(request)
            return

        async def staged(piece: OffsetRange, rows: int, files: tuple[Staged, ...]) -> None:
            self._take(lent, part.number, Piece(part.slot, piece, rows, files, loop_s()))

        await self._stager.stage(lent.partition, lent.topic_id, part.range, staged)

    def _take(self, lent: _Lent, number: int, piece: Piece) -> None:
        lent.split = decide.take_piece(lent.split, number, piece)
        lent.changed.set()

    async def _announce(self, lent: _Lent) -> None:
        """Announce the pieces that join on, once what was staged before them is announced (†)."""
        partition = lent.partition
        while (piece := decide.next_piece(lent.split)) is not None:
            if self._next_offset(partition) != piece.range.first:
                return
            if not await self._partitions.check_topic(partition.topic, lent.topic_id):
                return  # it was recreated (†)
            for staged in piece.files:
                await self._publish(staged, piece.at)
            lent.split = decide.announced(lent.split, piece)
            self._staged.setdefault(partition, Counter())[piece.slot] += piece.rows
            self._emit(PartAnnounced(partition, piece.range))

    async def _publish(self, staged: Staged, since: float) -> None:
        """Announce a file; its rows have become older since the owner learnt of it."""
        await announce(
            self._bus,
            self._origin,
            self._writer,
            staged,
            lambda: staged.age_s + loop_s() - since,
        )

    # --- the helper ------------------------------------------------------------------------------

    def _read(self, message: RangeMessage) -> None:
        """Apply what another consumer writes, or this one."""
        own = self._origin
        match message:
            case StageRange() if message.helper == own.slot and self._may_ask(message):
                owner = message.epoch, message.partition
                if message.number > self._served.get(owner, -1):  # else it was read before
                    self._served[owner] = message.number
                    while len(self._served) > MOST_OWNERS:
                        self._served.popitem(last=False)
                    self._helping[message.partition] += 1
                    self._tasks.create_task(self._help(message))
            case RangeStaged() if (message.slot, message.epoch) == (own.slot, own.epoch):
                if (lent := self._lent.get(message.partition)) is not None:
                    piece = (message.helper, message.piece, message.rows, message.files, loop_s())
                    self._take(lent, message.number, Piece(*piece))
            case _:
                pass

    def _may_ask(self, request: StageRange) -> bool:
        """Whether this consumer helps that owner with that partition, and has room for a range.

        Whoever may write to the landing topic can ask for any. A range that is not taken is staged
        by its owner.
        """
        owner, *helpers = self.shares.get(request.partition, (None,))
        return (
            request.slot == owner
            and self._origin.slot in helpers
            and self._helping[request.partition] < decide.MOST_AHEAD
        )

    async def _help(self, request: StageRange) -> None:
        """Stage a range for its owner, which announces the files."""

        async def staged(piece: OffsetRange, rows: int, files: tuple[Staged, ...]) -> None:
            for file in files:
                for target in self._writer.targets(file.topic):
                    if target.name == file.target:
                        self._helped.add(target, file.file, file.bytes)
            answer = RangeStaged(
                helper=self._origin.slot,
                slot=request.slot,
                epoch=request.epoch,
                number=request.number,
                partition=request.partition,
                piece=piece,
                rows=rows,
                files=files,
            )
            await self._messages.send(answer)
            self._staged.setdefault(request.partition, Counter())[self._origin.slot] += rows
            if self._helped.full and piece.first < piece.next < request.range.next:
                raise RangeRefused(f"as much is staged for {request.partition} as may be")

        try:
            if self._helped.full:
                first = request.range.first
                await staged(OffsetRange(first, first), 0, ())
                return
            await self._stager.stage(request.partition, request.topic_id, request.range, staged)
        finally:
            self._helping[request.partition] -= 1
