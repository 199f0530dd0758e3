"""Joins announced offset ranges to what is committed, so that no row lands twice or is left out.

Without the rules marked † rows are lost or doubled.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from binwright.protocol.landing import Staged
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import is_staged_file
from binwright.tables.ports import Batch, CutFiles, FileSlice, PartitionOffsets, Ranges

MOST_FILES = 1_000
"""Staged files in one commit: Spark plans and opens each of them."""
MOST_CUT_FILES = 8
"""Consumers whose cuts of one partition are remembered, each by its last."""
NO_TOPICS: Mapping[str, str | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Announcement:
    """One record of the landing topic about this table."""

    offset: int  # of the record in the landing topic: the order of announcements
    staged: Staged
    seen_at: float  # seconds, monotonic

    @property
    def ranges(self) -> Ranges:
        """Return number of the partition -> (first, next)."""
        return {p.partition: (r.first, r.next) for p, r in self.staged.ranges.items()}

    def partition(self, number: int) -> TopicPartition:
        """Return the partition of this number of the file's topic."""
        return TopicPartition(self.staged.topic, number)

    @property
    def oldest_at(self) -> float:
        """Return when the file's oldest row was fetched; seconds, on the clock of `seen_at`."""
        return self.seen_at - self.staged.age_s


@dataclass(frozen=True, slots=True)
class Chain:
    """A table's committed offsets, and the announced files that have not landed completely."""

    topic_ids: Mapping[str, str | None] = field(default_factory=dict)
    """Topic -> id of the one that the offsets are of; topics that have landed are never removed."""
    committed: PartitionOffsets = field(default_factory=dict)  # next offset to land
    cuts: PartitionOffsets = field(default_factory=dict)  # announcement of the last cut
    cut_files: CutFiles = field(default_factory=dict)
    """The files that began after a cut and have landed: each counts once, however often it is
    announced (†)."""
    pending: tuple[Announcement, ...] = ()  # in the order of their announcements
    next_announcement: int = 0  # offset in the landing topic that is read next

    def is_of_chain(self, announced: Announcement) -> bool:
        """Whether a file is of a topic that the offsets are of, not of one recreated since (†)."""
        return same_topic(announced.staged.topic_id, self.topic_ids.get(announced.staged.topic))

    @property
    def needed_from(self) -> int:
        """Return the announcement before which none is needed any more."""
        return min((a.offset for a in self.pending), default=self.next_announcement)

    @property
    def oldest_at(self) -> float | None:
        """Return when the oldest pending row was fetched, s; None: no file is pending."""
        return min((a.oldest_at for a in self.pending), default=None)

    def oldest_of(self, files: Collection[str]) -> float | None:
        """Return when the oldest row of these pending files was fetched, s; None: none is."""
        return min((a.oldest_at for a in self.pending if a.staged.file in files), default=None)

    @property
    def pending_bytes(self) -> int:
        """Return the size of the pending files, bytes."""
        return sum(a.staged.bytes for a in self.pending)


def contradiction(staged: Staged, takes: Callable[[str], bool]) -> str:
    """Return why an announcement to a table is no consumer's; empty if it may be one (†).

    Whoever may write to the landing topic can announce any file and any range.

    Args:
        staged: The announcement.
        takes: Whether the table takes a topic's records.
    """
    if not takes(staged.topic):
        return f"it is of topic {staged.topic}, which its table does not take"
    if not is_staged_file(staged.file):
        return "its file has no name of a staged file"
    if not staged.file.startswith(f"{staged.slot}-{staged.epoch}-"):
        return "its file is of another consumer"
    if any(p.topic != staged.topic for p in (*staged.ranges, *staged.cut)):
        return "it has partitions of another topic"
    if any(r.first > r.next for r in staged.ranges.values()):
        return "a range ends before it begins"
    return ""


def same_topic(one: str | None, other: str | None) -> bool:
    """Whether two ids may be of the same topic; None, from brokers before 2.8, matches any."""
    return one is None or other is None or one == other


class NotPending(NamedTuple):
    """Announcements that were read, and that nothing waits for."""

    finished: tuple[Announcement, ...]  # of which all has landed
    refused: tuple[Announcement, ...]
    """Those that differ from the one by which their file is pending: a file is announced as what it
    is, once (†)."""


def add_announcements(chain: Chain, read: Iterable[Announcement]) -> tuple[Chain, NotPending]:
    """Add announcements in order; return also what became of the others.

    An announcement that was read before is ignored, as is one more of a file that is pending.
    """
    new = [a for a in read if a.offset >= chain.next_announcement]
    if not new:
        return chain, NotPending((), ())
    pending = {a.staged.file: a for a in chain.pending}
    finished: list[Announcement] = []
    refused: list[Announcement] = []
    for announced in new:
        if (first := pending.get(announced.staged.file)) is not None:
            if _content(announced.staged) != _content(first.staged):
                refused.append(announced)
        elif _has_landed(chain, announced):
            finished.append(announced)
        else:
            pending[announced.staged.file] = announced
    chain = replace(chain, pending=(*pending.values(),), next_announcement=new[-1].offset + 1)
    return chain, NotPending((*finished,), (*refused,))


def _content(staged: Staged) -> tuple[object, ...]:
    """Return what an announcement says of its file, whoever sends it and when."""
    of = staged.topic, staged.topic_id, staged.target
    return *of, staged.rows, staged.ranges, frozenset(staged.cut)


def read_up_to(chain: Chain, offset: int) -> Chain:
    """Advance past records of the landing topic that are other tables'."""
    return replace(chain, next_announcement=max(offset, chain.next_announcement))


def _has_landed(chain: Chain, announced: Announcement) -> bool:
    """Whether all of a file is below the committed offsets, or before its partition's cut."""
    return chain.is_of_chain(announced) and not _open_ranges(chain, announced)


def _open_ranges(chain: Chain, announced: Announcement) -> Ranges:
    """Return the ranges of a file with rows to land, and those of partitions not known yet."""
    return {
        p: (first, end)
        for p, (first, end) in announced.ranges.items()
        if not _precedes_cut(chain.cuts, chain.cut_files, announced, p)
        and (
            end > chain.committed.get(announced.partition(p), -1) or _begins_after_cut(announced, p)
        )
    }


def _begins_after_cut(announced: Announcement, partition: int) -> bool:
    """Whether a file's range is the first after its log was truncated."""
    return announced.partition(partition) in announced.staged.cut


def new_cuts(chain: Chain, announced: Announcement) -> Collection[TopicPartition]:
    """Return the partitions of which an announcement tells a cut that has not landed yet."""
    return [
        p
        for p in announced.staged.cut
        if chain.is_of_chain(announced)
        and not _precedes_cut(chain.cuts, chain.cut_files, announced, p.partition)
    ]


def _precedes_cut(
    cuts: PartitionOffsets, cut_files: CutFiles, announced: Announcement, partition: int
) -> bool:
    """Whether a file was announced before its log's cut, or is the announcement of it (†).

    So is one that is announced again later. A consumer numbers its files, and announces those of a
    partition in order.
    """
    p = announced.partition(partition)
    if announced.offset <= cuts.get(p, -1):
        return True
    if not (files := cut_files.get(p)):
        return False
    consumer, number = _origin(announced.staged.file)
    return any(_origin(f)[0] == consumer and number <= _origin(f)[1] for f in files)


def _origin(file: str) -> tuple[str, int]:
    """Return which process staged a file, and the file's number there."""
    if not is_staged_file(file):
        return file, 0
    slot, epoch, number, _ = file.split("-")
    return f"{slot}-{epoch}", int(number)


def _with_cut_file(files: tuple[str, ...], file: str) -> tuple[str, ...]:
    """Return the files with one more, in place of what its consumer had before."""
    others = [f for f in files if _origin(f)[0] != _origin(file)[0]]
    return (*others[1 - MOST_CUT_FILES :], file)


def open_partitions(
    chain: Chain, begins: PartitionOffsets, topic_ids: Mapping[str, str | None] = NO_TOPICS
) -> Chain:
    """Set where partitions begin that no stamp has, and the ids of topics that it does not have."""
    return replace(
        chain,
        committed={**begins, **chain.committed},
        topic_ids={**topic_ids, **chain.topic_ids},
    )


def unknown_partitions(chain: Chain) -> frozenset[TopicPartition]:
    """Return the partitions of pending files whose committed offset is unknown."""
    return frozenset(
        p
        for a in chain.pending
        if chain.is_of_chain(a)
        for p in a.staged.ranges
        if p not in chain.committed
    )


@dataclass(slots=True)
class _BatchBuilder:
    """A batch under construction."""

    max_bytes: float
    max_files: float
    ends: dict[TopicPartition, int]
    cuts: dict[TopicPartition, int]
    cut_files: dict[TopicPartition, tuple[str, ...]]
    taken: dict[int, Ranges] = field(default_factory=dict)  # announcement -> what of it
    partitions: set[TopicPartition] = field(default_factory=set)  # of which it has something
    bytes: int = 0
    full: bool = False

    def take_all(self, candidates: Sequence[Announcement]) -> None:
        """Take what joins, in order, and again while anything does; nothing behind a full batch.

        Two readers may announce ranges of one partition out of order. A file is looked at again
        once it may join: the work grows with the files, whatever their order.
        """
        due = [(0, number) for number in range(len(candidates))]  # in turns, each in order
        waiting: dict[TopicPartition, list[tuple[int, int]]] = {}  # heaps: first offset, number
        waits: set[tuple[TopicPartition, int]] = set()
        while due:
            turn, number = heappop(due)
            announced = candidates[number]
            joined = self.take_ranges(announced)
            if self.full:
                return  # a later file may be the first after a cut: it must wait (†)
            for p, (first, _) in announced.ranges.items():
                partition = announced.partition(p)
                if first > self.ends.get(partition, first) and (partition, number) not in waits:
                    waits.add((partition, number))
                    heappush(waiting.setdefault(partition, []), (first, number))
            for partition in map(announced.partition, joined):
                later = waiting.get(partition, [])
                while later and later[0][0] <= self.ends[partition]:
                    _, other = heappop(later)
                    waits.discard((partition, other))
                    heappush(due, (turn + (other <= number), other))

    def take_ranges(self, announced: Announcement) -> Ranges:
        """Take and return what joins of one file."""
        joined = self._joining(announced)
        if not joined:
            return joined
        restarted = {announced.partition(p) for p in joined if _begins_after_cut(announced, p)}
        if announced.offset not in self.taken:
            self.full = bool(self.taken) and self._full(announced)
        # What is before a cut and what is behind it, in batches of their own: offsets are in
        # order in each (†).
        self.full = self.full or not restarted.isdisjoint(self.partitions)
        if self.full:
            return {}
        if announced.offset not in self.taken:
            self.bytes += announced.staged.bytes
        self.taken[announced.offset] = {**self.taken.get(announced.offset, {}), **joined}
        for p, (_, end) in joined.items():
            self.ends[announced.partition(p)] = end
        for partition in restarted:
            self.cuts[partition] = announced.offset
            files = self.cut_files.get(partition, ())
            self.cut_files[partition] = _with_cut_file(files, announced.staged.file)
        self.partitions.update(map(announced.partition, joined))
        return joined

    def _joining(self, announced: Announcement) -> Ranges:
        joined: dict[int, tuple[int, int]] = {}
        for p, (first, end) in announced.ranges.items():
            landed_to = self.ends.get(announced.partition(p))
            if landed_to is None or _precedes_cut(self.cuts, self.cut_files, announced, p):
                continue
            if _begins_after_cut(announced, p):
                joined[p] = (first, end)
            elif first <= landed_to < end:  # it joins (†); what has landed is cut off (†)
                joined[p] = (landed_to, end)
        return joined

    def _full(self, announced: Announcement) -> bool:
        too_large = self.bytes + announced.staged.bytes > self.max_bytes
        return too_large or len(self.taken) >= self.max_files


def _builder(chain: Chain, max_bytes: float = inf, max_files: float = inf) -> _BatchBuilder:
    return _BatchBuilder(
        max_bytes, max_files, dict(chain.committed), dict(chain.cuts), dict(chain.cut_files)
    )


def next_batch(
    chain: Chain, max_bytes: int, max_files: int = MOST_FILES
) -> tuple[Batch, Chain] | None:
    """Return the next batch, and the chain after its commit; None if no range joins.

    Args:
        chain: The committed offsets and the pending files.
        max_bytes: Of staged files in the batch; a single file is taken whatever its size.
        max_files: In the batch.
    """
    builder = _builder(chain, max_bytes, max_files)
    candidates = [a for a in chain.pending if chain.is_of_chain(a)]
    builder.take_all(candidates)
    if not builder.taken:
        return None
    announced = [a for a in candidates if a.offset in builder.taken]
    slices = tuple(_slice(a, builder.taken[a.offset]) for a in announced)
    ends = {p: builder.ends[p] for part in slices for p in part.partitions}
    after = replace(chain, committed=builder.ends, cuts=builder.cuts, cut_files=builder.cut_files)
    return Batch(slices, ends, sum(a.staged.rows for a in announced), builder.bytes), after


def _slice(announced: Announcement, ranges: Ranges) -> FileSlice:
    whole = ranges == announced.ranges
    staged = announced.staged
    return FileSlice(staged.file, ranges, whole, staged.bytes, staged.topic, staged)


def landed(chain: Chain, after: Chain) -> tuple[Chain, tuple[Announcement, ...]]:
    """Advance past a committed batch; return also what has nothing left to land (†).

    Args:
        chain: The current one: announcements may have been added since the batch was formed.
        after: The chain that `next_batch` returned with the batch.
    """
    committed = {**chain.committed, **after.committed}
    chain = replace(chain, committed=committed, cuts=after.cuts, cut_files=after.cut_files)
    finished = tuple(a for a in chain.pending if _has_landed(chain, a))
    return without(chain, finished), finished


def joining(chain: Chain) -> Collection[int]:
    """Return the announcements of which something joins, in however many batches."""
    builder = _builder(chain)
    builder.take_all([a for a in chain.pending if chain.is_of_chain(a)])
    return builder.taken.keys()


def joining_topics(chain: Chain) -> frozenset[str]:
    """Return the topics of which pending files have something that joins."""
    joined = joining(chain)
    return frozenset(a.staged.topic for a in chain.pending if a.offset in joined)


def without_excess(chain: Chain, most: int) -> tuple[Chain, tuple[Announcement, ...]]:
    """Keep `most` files that do not join, the newest; return the others, too.

    Nobody else may keep back what announcements are needed, or have each step take longer. If there
    are true ones among those that go, what is before them is missing, and is read again with them.
    """
    if len(chain.pending) <= most:
        return chain, ()
    joined = joining(chain)
    waiting = [a for a in chain.pending if a.offset not in joined]
    excess = tuple(waiting[: max(len(waiting) - most, 0)])
    return without(chain, excess), excess


def without(chain: Chain, announced: Iterable[Announcement]) -> Chain:
    """Remove announcements."""
    gone = {a.offset for a in announced}
    return replace(chain, pending=tuple(a for a in chain.pending if a.offset not in gone))


def without_files(chain: Chain, files: Collection[str]) -> tuple[Chain, PartitionOffsets]:
    """Remove files that are lost or unreadable.

    Returns:
        The chain, and what must be read again: partition -> offset to begin at.
    """
    lost = [a for a in chain.pending if a.staged.file in files]
    needed = {a.partition(p) for a in lost for p in _open_ranges(chain, a)}
    again = {p: chain.committed[p] for p in sorted(needed) if p in chain.committed}
    return without(chain, lost), again


def beyond_ends(chain: Chain, ends: PartitionOffsets) -> tuple[Announcement, ...]:
    """Return the files with a range that has fewer rows than offsets and exceeds its log.

    Args:
        chain: What is announced.
        ends: Partition -> end of its log, as known; other partitions are not compared.
    """
    return tuple(
        a
        for a in chain.pending
        if chain.is_of_chain(a)
        and any(r.next > ends.get(p, r.next) for p, r in a.staged.ranges.items())
        and sum(end - first for first, end in a.ranges.values()) > a.staged.rows
    )


def gaps(chain: Chain, now: float, patience_s: float) -> PartitionOffsets:
    """Return the partitions whose next rows were not announced: partition -> offset to begin at.

    A range after the gap has waited `patience_s` seconds for the offsets before it.
    """
    waiting: dict[TopicPartition, float] = {}
    joining: set[TopicPartition] = set()
    for a in chain.pending:
        if not chain.is_of_chain(a):
            continue
        for number, (first, _) in _open_ranges(chain, a).items():
            p = a.partition(number)
            if p not in chain.committed:
                continue
            if first <= chain.committed[p] or _begins_after_cut(a, number):
                joining.add(p)
            else:
                waiting[p] = min(a.seen_at, waiting.get(p, a.seen_at))
    return {
        p: chain.committed[p]
        for p, since in sorted(waiting.items())
        if p not in joining and now - since >= patience_s
    }


def recreated_topics(chain: Chain) -> frozenset[str]:
    """Return the topics of which pending files have another id than the chain: recreated ones.

    What still joins of the previous topic of the name lands first.
    """
    return frozenset(a.staged.topic for a in chain.pending if not chain.is_of_chain(a))


def without_old_topic(
    chain: Chain, topic: str, before: int
) -> tuple[Chain, tuple[Announcement, ...]]:
    """Remove the files of a topic that no longer exists, and return them, too.

    Args:
        chain: Of the topic that existed when Kafka was asked.
        topic: The name of both.
        before: `next_announcement` at that time: later ones may be of a newer topic (†).
    """
    old = tuple(
        a
        for a in chain.pending
        if a.offset < before and a.staged.topic == topic and not chain.is_of_chain(a)
    )
    return without(chain, old), old


def begin_new_topic(
    chain: Chain, topic: str, topic_id: str | None, before: int
) -> tuple[Chain, tuple[Announcement, ...]]:
    """Begin again for a topic that was recreated; return also the files of earlier ones.

    Args:
        chain: Of the previous topic of the name; other topics stay as they are (†).
        topic: The name.
        topic_id: Of the new topic, whose partitions begin where `open_partitions` says.
        before: As for `without_old_topic`.
    """
    fresh = replace(
        chain,
        topic_ids={**chain.topic_ids, topic: topic_id},
        committed=_without_topic(chain.committed, topic),
        cuts=_without_topic(chain.cuts, topic),
        cut_files={p: files for p, files in chain.cut_files.items() if p.topic != topic},
    )
    return without_old_topic(fresh, topic, before)


def _without_topic(offsets: PartitionOffsets, topic: str) -> PartitionOffsets:
    return {p: offset for p, offset in offsets.items() if p.topic != topic}
