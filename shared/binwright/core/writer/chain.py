"""Joins announced offset ranges onto what is committed: nothing lands twice, nothing is left out.

The rules marked † lose or double rows when left out.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from binwright.core.messages import Staged
from binwright.core.model import TopicPartition
from binwright.core.writer.batch import Batch, FileSlice, Ranges

MOST_FILES = 1_000
"""Staged files of one commit: Spark plans and opens each."""


@dataclass(frozen=True, slots=True)
class Announced:
    """One record of the landing topic about this table."""

    offset: int  # of the record: the order of announcements
    staged: Staged
    heard_at: float  # seconds, monotonic

    @property
    def ranges(self) -> Ranges:
        """Return partition -> (first, next)."""
        return {p.partition: (r.first, r.next) for p, r in self.staged.ranges.items()}

    @property
    def oldest_at(self) -> float:
        """When its oldest row was fetched; seconds, on the clock of `heard_at`."""
        return self.heard_at - self.staged.age_s


@dataclass(frozen=True, slots=True)
class Chain:
    """What of a table is committed, and the announced files that are not landed whole yet."""

    topic_id: str | None = None  # of which topic of this name the offsets are
    committed: Mapping[int, int] = field(default_factory=dict)  # partition -> next offset to land
    cuts: Mapping[int, int] = field(default_factory=dict)  # partition -> announcement of its cut
    pending: tuple[Announced, ...] = ()  # in the order of their announcements
    next_announcement: int = 0  # the record of the landing topic that is read next

    @property
    def needed_from(self) -> int:
        """Return the announcement below which nothing is needed any more."""
        return min((a.offset for a in self.pending), default=self.next_announcement)

    @property
    def oldest_at(self) -> float | None:
        """When the oldest row that has not landed was fetched; None if nothing is pending."""
        return min((a.oldest_at for a in self.pending), default=None)

    @property
    def pending_bytes(self) -> int:
        """Return the size of the files that have not landed whole."""
        return sum(a.staged.bytes for a in self.pending)


def same_topic(one: str | None, other: str | None) -> bool:
    """Tell whether two ids may be one topic's: brokers before 2.8 tell none."""
    return one is None or other is None or one == other


def announce(chain: Chain, announced: Announced) -> tuple[Chain, tuple[str, ...]]:
    """Take an announcement; return also the files that nobody needs: they have landed already.

    One that was read before is passed over.
    """
    if announced.offset < chain.next_announcement:
        return chain, ()
    chain = replace(chain, next_announcement=announced.offset + 1)
    if _is_over(chain, announced):
        return chain, (announced.staged.file,)
    return replace(chain, pending=(*chain.pending, announced)), ()


def _is_over(chain: Chain, announced: Announced) -> bool:
    """Tell whether all of a file lies below what is committed, or before its partition's cut."""
    if not same_topic(announced.staged.topic_id, chain.topic_id):
        return False
    return not _open_ranges(chain, announced)


def _open_ranges(chain: Chain, announced: Announced) -> Ranges:
    """Return the ranges of a file that have rows to land, or whose partition is not known yet."""
    return {
        p: (first, end)
        for p, (first, end) in announced.ranges.items()
        if not _is_past(chain.cuts, announced, p)
        and (end > chain.committed.get(p, -1) or _cuts(announced, p))
    }


def _cuts(announced: Announced, partition: int) -> bool:
    """Tell whether a file's range begins a log that was cut."""
    return TopicPartition(announced.staged.topic, partition) in announced.staged.cut


def _is_past(cuts: Mapping[int, int], announced: Announced, partition: int) -> bool:
    """Tell whether a file is of a log before its cut, or of the cut that was taken (†)."""
    return announced.offset <= cuts.get(partition, -1)


def open_partitions(chain: Chain, begins: Mapping[int, int]) -> Chain:
    """Take where partitions begin that no stamp knows."""
    return replace(chain, committed={**begins, **chain.committed})


def unknown_partitions(chain: Chain) -> frozenset[int]:
    """Return the partitions of pending files of which it is not known where they begin."""
    return frozenset(
        p
        for a in chain.pending
        if same_topic(a.staged.topic_id, chain.topic_id)
        for p in a.ranges
        if p not in chain.committed
    )


@dataclass(slots=True)
class _Taking:
    """A batch in the making."""

    chain: Chain
    max_bytes: int
    max_files: int
    ends: dict[int, int]
    cuts: dict[int, int]
    taken: dict[int, Ranges] = field(default_factory=dict)  # announcement -> what of it
    bytes: int = 0
    full: bool = False

    def take_all(self, candidates: Iterable[Announced]) -> bool:
        """Take what joins on of each in turn; tell whether anything did."""
        found = False
        for announced in candidates:
            found = self.take(announced) or found
            if self.full:
                return False  # what comes later may begin a log that was cut: it waits (†)
        return found

    def take(self, announced: Announced) -> bool:
        """Take what joins on of one file; tell whether anything did."""
        joined = self._joining(announced)
        if not joined:
            return False
        if announced.offset not in self.taken:
            self.full = bool(self.taken) and self._full(announced)
            if self.full:
                return False
            self.bytes += announced.staged.bytes
        self.taken[announced.offset] = {**self.taken.get(announced.offset, {}), **joined}
        for p, (_, end) in joined.items():
            self.ends[p] = end
            if _cuts(announced, p):
                self.cuts[p] = announced.offset
        return True

    def _joining(self, announced: Announced) -> Ranges:
        joined: dict[int, tuple[int, int]] = {}
        for p, (first, end) in announced.ranges.items():
            if _is_past(self.cuts, announced, p) or p not in self.ends:
                continue
            if _cuts(announced, p):
                joined[p] = (first, end)
            elif first <= self.ends[p] < end:  # joins on (†); what landed already is cut off (†)
                joined[p] = (self.ends[p], end)
        return joined

    def _full(self, announced: Announced) -> bool:
        too_large = self.bytes + announced.staged.bytes > self.max_bytes
        return too_large or len(self.taken) >= self.max_files


def next_batch(
    chain: Chain, max_bytes: int, max_files: int = MOST_FILES
) -> tuple[Batch, Chain] | None:
    """Return what can land now, and the chain as it will be then; None if nothing joins on.

    Args:
        chain: What is committed and what is pending.
        max_bytes: Of staged files; one file is taken whatever its size.
        max_files: Of one batch.
    """
    taking = _Taking(chain, max_bytes, max_files, dict(chain.committed), dict(chain.cuts))
    candidates = [a for a in chain.pending if same_topic(a.staged.topic_id, chain.topic_id)]
    # Two readers' announcements of one partition may come out of order: look again while any joins.
    while taking.take_all(candidates):
        pass
    if not taking.taken:
        return None
    chosen = [a for a in candidates if a.offset in taking.taken]
    slices = tuple(_slice(a, taking.taken[a.offset]) for a in chosen)
    ends = {p: taking.ends[p] for part in slices for p in part.ranges}
    after = replace(chain, committed=taking.ends, cuts=taking.cuts)
    return Batch(slices, ends, sum(a.staged.rows for a in chosen), taking.bytes), after


def _slice(announced: Announced, ranges: Ranges) -> FileSlice:
    whole = ranges == announced.ranges
    return FileSlice(announced.staged.file, ranges, whole, announced.staged.bytes)


def landed(chain: Chain, after: Chain) -> tuple[Chain, tuple[str, ...]]:
    """Take that a batch is committed; return also the files of which nothing is left to land (†).

    Args:
        chain: As it is now: announcements may have come since the batch was formed.
        after: What `next_batch` returned beside the batch.
    """
    chain = replace(chain, committed={**chain.committed, **after.committed}, cuts=after.cuts)
    over = [a for a in chain.pending if _is_over(chain, a)]
    return _without(chain, over), tuple(a.staged.file for a in over)


def _without(chain: Chain, announced: Iterable[Announced]) -> Chain:
    gone = {a.offset for a in announced}
    return replace(chain, pending=tuple(a for a in chain.pending if a.offset not in gone))


def without_files(chain: Chain, files: Collection[str]) -> tuple[Chain, Mapping[int, int]]:
    """Forget files that are lost or unreadable.

    Returns:
        The chain, and what is to be read again: partition -> from where.
    """
    lost = [a for a in chain.pending if a.staged.file in files]
    again = {
        p: chain.committed[p] for a in lost for p in _open_ranges(chain, a) if p in chain.committed
    }
    return _without(chain, lost), again


def gaps(chain: Chain, now: float, patience_s: float) -> Mapping[int, int]:
    """Return the partitions whose next rows were not announced: partition -> from where to read.

    A range that begins later than what is committed has waited `patience_s` for what is between.
    """
    waiting: dict[int, float] = {}
    joining: set[int] = set()
    for a in chain.pending:
        if not same_topic(a.staged.topic_id, chain.topic_id):
            continue
        for p, (first, _) in _open_ranges(chain, a).items():
            if p not in chain.committed:
                continue
            if first <= chain.committed[p] or _cuts(a, p):
                joining.add(p)
            else:
                waiting[p] = min(a.heard_at, waiting.get(p, a.heard_at))
    return {
        p: chain.committed[p]
        for p, since in sorted(waiting.items())
        if p not in joining and now - since >= patience_s
    }


def renewed_id(chain: Chain) -> str | None:
    """Return the id of the topic that pending files are of, if the topic was made anew.

    What still joins on of the topic before comes first.
    """
    return next(
        (
            a.staged.topic_id
            for a in chain.pending
            if not same_topic(a.staged.topic_id, chain.topic_id)
        ),
        None,
    )


def without_strangers(chain: Chain, before: int) -> tuple[Chain, tuple[str, ...]]:
    """Forget the files of a topic that is no more; return their names.

    Args:
        chain: Of the topic that there was when Kafka was asked.
        before: The announcement that was read next then: later ones may be of a newer topic (†).
    """
    old = [
        a
        for a in chain.pending
        if a.offset < before and not same_topic(a.staged.topic_id, chain.topic_id)
    ]
    return _without(chain, old), tuple(a.staged.file for a in old)


def renew(
    chain: Chain, topic_id: str | None, begins: Mapping[int, int], before: int
) -> tuple[Chain, tuple[str, ...]]:
    """Begin a new chain for a topic that was made anew; return the files of all others.

    Args:
        chain: Of the topic before.
        topic_id: What Kafka says the topic's id is now.
        begins: Where each of its partitions begins.
        before: As for `without_strangers`.
    """
    fresh = replace(chain, topic_id=topic_id, committed=dict(begins), cuts={})
    return without_strangers(fresh, before)
