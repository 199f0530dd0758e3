"""Which versions of a table landed which log: topics are made anew, and logs are cut.

Rows carry an offset, not the id of the topic it is an offset of; commits carry both (`Stamp`).
Only the newest `MOST_COMMITS` are read, some days of them at the default freshness: files of
versions older than that are usually vacuumed anyway. What landed before is taken for the log of the
oldest stamp that is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from binwright.core.ports import Commit, Table
from binwright.core.writer.stamp import OldStamp, Stamp, read_stamp
from binwright.lab.spark import quoted

FIRST_COMMITS, MOST_COMMITS = 2_000, 50_000


@dataclass(frozen=True, slots=True)
class Split:
    """A version after which rows are of another log than the rows before."""

    version: int  # the last one of the log before
    cut: frozenset[int] = frozenset()  # partitions whose log was cut; none: the topic is another


@dataclass(frozen=True, slots=True)
class Past:
    """What a table's stamps tell about its rows' logs."""

    splits: tuple[Split, ...] = ()  # oldest first
    begins: Mapping[int, int] = field(default_factory=dict)  # of this topic: where landing began
    ends: Mapping[int, int] = field(default_factory=dict)  # and what lands next


@dataclass(slots=True)
class _Fold:
    """Stamps, oldest first, folded."""

    topic_id: str | None = None
    landing_id: str | None = None
    seen: set[str] = field(default_factory=set)  # topic ids
    cuts: Mapping[int, int] = field(default_factory=dict)
    splits: list[Split] = field(default_factory=list)
    begins: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    whole: bool = True  # from the table's creation on

    def apply(self, version: int, stamp: Stamp | OldStamp) -> None:
        """Take the stamp of a commit; a claim says nothing of offsets."""
        if isinstance(stamp, Stamp) and not stamp.sequence:
            return
        if not self.of_topic(version - 1, stamp.topic_id):
            return
        if isinstance(stamp, Stamp):
            self._cut(version - 1, stamp)
        for p, offset in stamp.committed.items():
            self.begins[p] = min(offset, self.begins.get(p, offset))
            self.ends[p] = max(offset, self.ends.get(p, offset))

    def of_topic(self, before: int, topic_id: str | None) -> bool:
        """Take what topic follows the version `before`; False: it is one that is over already."""
        if topic_id is None or topic_id == self.topic_id:
            return True  # brokers before 2.8 tell no ids
        if topic_id in self.seen:
            return False
        if self.topic_id is not None:
            self.splits.append(Split(before))
            self.begins, self.ends, self.cuts = {}, {}, {}
        self.topic_id = topic_id
        self.seen.add(topic_id)
        return True

    def _cut(self, before: int, stamp: Stamp) -> None:
        if stamp.landing_id != self.landing_id:
            self.cuts, self.landing_id = {}, stamp.landing_id  # other announcements' numbers
        cut = frozenset(p for p, at in stamp.cuts.items() if self.cuts.get(p) != at)
        # Where the history begins later, its first stamp tells also of cuts that are long past.
        if cut and before >= 0 and (self.whole or self.ends):
            self.splits.append(Split(before, cut))
        self.cuts = stamp.cuts


def past(commits: Sequence[Commit], topic: str, topic_id: str | None) -> Past:
    """Say which versions landed which log.

    Args:
        commits: Newest first, as many as were read.
        topic: Whose table it is.
        topic_id: Of the topic of this name that is there now; None: Kafka does not tell.
    """
    fold = _Fold(whole=not commits or commits[-1].version == 0)
    for version, stamp in _stamps(commits, topic):
        fold.apply(version, stamp)
    if commits:
        fold.of_topic(commits[0].version, topic_id)  # made anew, and nothing of it has landed
    return Past(tuple(fold.splits), fold.begins, fold.ends)


def _stamps(commits: Sequence[Commit], topic: str) -> Iterable[tuple[int, Stamp | OldStamp]]:
    for commit in reversed(commits):
        stamp = _stamp(commit.metadata, topic)
        if stamp is not None:
            yield commit.version, stamp


def _stamp(text: str | None, topic: str) -> Stamp | OldStamp | None:
    """Read a stamp of whichever group wrote it: a table belongs to one."""
    try:
        found = orjson.loads(text or "")
        return read_stamp(text, Table(topic, found["group"], found.get("cluster", "")))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def commits_of(spark: Any, path: str) -> Sequence[Commit]:
    """Return the newest commits of a table, newest first. Blocking; raises what pyspark raises."""
    found: list[Commit] = []
    for limit in (FIRST_COMMITS, MOST_COMMITS):
        history = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT {limit}")
        rows = history.select("version", "userMetadata").collect()
        found = [Commit(row.version, row.userMetadata) for row in rows]
        if len(found) < limit:
            break
    return found
