"""Which log each row of a table came from: topics are created again, and logs are truncated.

A row has its offset, but not the id of its topic; a commit has both (`Stamp`). Only the newest
`MOST_COMMITS` commits are read, some days at the default freshness: the files of older versions are
usually vacuumed. Rows of earlier commits are assigned to the log of the oldest stamp that is read.

Rows in the version before a split come from the log before it; compaction rewrites files, but not
the rows of a version. Rows that were deleted since are not counted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import orjson
import pyarrow as pa

from binwright.lake.lake_reader import frame, quoted
from binwright.tables.ports import Commit, PartitionOffsets, Table
from binwright.tables.stamp import Stamp, read_stamp

FIRST_COMMITS, MOST_COMMITS = 2_000, 50_000

# Log 0 ends with the first split, and so on; `copies` of a version count all logs up to it.
_ADDED = """
WITH newest AS (SELECT partition, offset, copies AS most FROM {logs} WHERE log = {last}),
upto AS (
    SELECT partition, offset, log, least(copies, most) AS copies
    FROM {logs} JOIN newest USING (partition, offset)
), stepped AS (
    SELECT partition, offset, log, copies - coalesce(max(copies) OVER (
        PARTITION BY partition, offset ORDER BY log
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS copies FROM upto
)
SELECT partition, offset, log, copies FROM stepped WHERE copies > 0
"""
# A truncated log continues at its end then: the lowest offset that landed afterwards.
_EDGES = """
SELECT partition, cut, coalesce(min(IF(log >= cut, offset, NULL)), min(end)) AS edge
FROM {cuts} LEFT JOIN {added} USING (partition) GROUP BY partition, cut
"""
_OF_THIS_TOPIC = """
SELECT a.partition, a.offset, a.copies FROM {added} AS a {kind} JOIN {edges} AS e
ON a.partition = e.partition AND a.log < e.cut AND a.offset >= e.edge
WHERE a.log >= {first}
"""
_PRESENT = "SELECT partition, offset, sum(copies) AS copies FROM {some} GROUP BY ALL"
_EARLIER = "SELECT partition, copies FROM {added} WHERE log < {first}"
_SUMS = "SELECT partition, sum(copies) AS copies FROM {some} GROUP BY partition"
_CUTS = pa.schema([("partition", pa.int32()), ("cut", pa.int32()), ("end", pa.int64())])


@dataclass(frozen=True, slots=True)
class GenerationSplit:
    """A version after which rows come from another log."""

    version: int  # the last one of the earlier log
    cut: frozenset[int] = frozenset()  # truncated partitions; empty: the topic is another one


@dataclass(frozen=True, slots=True)
class LogHistory:
    """The logs of a table's rows, by its stamps."""

    splits: tuple[GenerationSplit, ...] = ()  # oldest first
    begins: Mapping[int, int] = field(default_factory=dict)  # of this topic: first to land
    ends: Mapping[int, int] = field(default_factory=dict)  # and next to land


@dataclass(slots=True)
class _Fold:
    """A fold over the stamps that name a topic, oldest first."""

    topic: str
    topic_id: str | None = None
    landing_id: str | None = None
    seen: set[str] = field(default_factory=set)  # topic ids
    cuts: Mapping[int, int] = field(default_factory=dict)
    splits: list[GenerationSplit] = field(default_factory=list)
    begins: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    whole: bool = True  # whether it begins with the table's creation

    def apply(self, version: int, stamp: Stamp) -> None:
        """Apply the stamp of a commit; that of a claim holds no offsets."""
        if not stamp.sequence or self.topic not in stamp.topic_ids:
            return
        if not self.of_topic(version - 1, stamp.topic_ids[self.topic]):
            return
        self._cut(version - 1, stamp)
        for p, offset in self._own(stamp.committed).items():
            self.begins[p] = min(offset, self.begins.get(p, offset))
            self.ends[p] = max(offset, self.ends.get(p, offset))

    def of_topic(self, before: int, topic_id: str | None) -> bool:
        """Apply the topic of the versions after `before`; False: that topic was replaced before."""
        if topic_id is None or topic_id == self.topic_id:
            return True  # brokers before 2.8 have no ids
        if topic_id in self.seen:
            return False
        if self.topic_id is not None:
            self.splits.append(GenerationSplit(before))
            self.begins, self.ends, self.cuts = {}, {}, {}
        self.topic_id = topic_id
        self.seen.add(topic_id)
        return True

    def _own(self, offsets: PartitionOffsets) -> Mapping[int, int]:
        return {p.partition: offset for p, offset in offsets.items() if p.topic == self.topic}

    def _cut(self, before: int, stamp: Stamp) -> None:
        cuts = self._own(stamp.cuts)
        if stamp.landing_id != self.landing_id:
            self.cuts, self.landing_id = {}, stamp.landing_id  # its announcements are numbered anew
        cut = frozenset(p for p, at in cuts.items() if self.cuts.get(p) != at)
        # If the history begins later, its first stamp names cuts from before it, too.
        if cut and before >= 0 and (self.whole or self.ends):
            self.splits.append(GenerationSplit(before, cut))
        self.cuts = cuts


def log_history(
    commits: Sequence[Commit], topic: str, topic_id: str | None, first_topic: str
) -> LogHistory:
    """Return which versions landed which log.

    Args:
        commits: The commits that were read, newest first.
        topic: One of the table's.
        topic_id: Of the present topic of this name; None: Kafka has no ids.
        first_topic: That of stamps that name none.
    """
    fold = _Fold(topic, whole=not commits or commits[-1].version == 0)
    for version, stamp in _stamps(commits, first_topic):
        fold.apply(version, stamp)
    if commits:
        fold.of_topic(commits[0].version, topic_id)  # a new topic of which nothing has landed
    return LogHistory(tuple(fold.splits), fold.begins, fold.ends)


def _stamps(commits: Sequence[Commit], first_topic: str) -> Iterable[tuple[int, Stamp]]:
    for commit in reversed(commits):
        stamp = any_stamp(commit.metadata, first_topic)
        if stamp is not None:
            yield commit.version, stamp


def any_stamp(text: str | None, first_topic: str) -> Stamp | None:
    """Return the stamp in a commit's metadata, of whichever group; None: it has none.

    One that names no topic is of `first_topic`.
    """
    try:
        fields = orjson.loads(text or "")
        return read_stamp(text, Table(first_topic, fields["group"], fields["cluster"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def newest_commits(spark: Any, path: str) -> Sequence[Commit]:
    """Return the newest commits of a table, newest first. Blocking; raises what pyspark raises."""
    commits: list[Commit] = []
    for limit in (FIRST_COMMITS, MOST_COMMITS):
        history = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT {limit}")
        rows = history.select("version", "userMetadata").collect()
        commits = [Commit(row.version, row.userMetadata) for row in rows]
        if len(commits) < limit:
            break
    return commits


@dataclass(frozen=True, slots=True)
class Origins:
    """A table's rows, by the logs they came from."""

    present: Any  # frame of partition, offset, copies: of the present log
    earlier: Mapping[int, int]  # partition -> rows of an earlier topic of this name
    rewritten: Mapping[int, int]  # -> rows whose offsets were used again after a truncation


def origins(
    spark: Any,
    counted: Callable[[int], Any],
    version: int,
    splits: Sequence[GenerationSplit],
    ends: Mapping[int, int],
) -> Origins:
    """Assign the rows of one version to logs. Raises what pyspark raises, also later, by `present`.

    Args:
        spark: The session.
        counted: Returns a version's rows: partition, offset, copies.
        version: The version to look at.
        splits: Oldest first.
        ends: Partition -> the topic's end.
    """
    versions = [*(split.version for split in splits), version]
    logs = reduce(
        lambda frame, other: frame.unionByName(other),
        (counted(v).selectExpr("*", f"{log} AS log") for log, v in enumerate(versions)),
    )
    added = spark.sql(_ADDED, logs=logs, last=len(splits))
    first = max((n for n, split in enumerate(splits, 1) if not split.cut), default=0)
    cuts = [
        {"partition": p, "cut": n, "end": ends.get(p, 0)}
        for n, s in enumerate(splits, 1)
        if n > first
        for p in sorted(s.cut)
    ]
    edges = spark.sql(_EDGES, cuts=frame(spark, pa.Table.from_pylist(cuts, _CUTS)), added=added)

    def of_this_topic(kind: str) -> Any:
        return spark.sql(
            _OF_THIS_TOPIC.replace("{kind}", kind), added=added, edges=edges, first=first
        )

    return Origins(
        present=spark.sql(_PRESENT, some=of_this_topic("LEFT ANTI")),
        earlier=_sums(spark, spark.sql(_EARLIER, added=added, first=first)),
        rewritten=_sums(spark, of_this_topic("LEFT SEMI")) if cuts else {},
    )


def _sums(spark: Any, some: Any) -> dict[int, int]:
    return {row.partition: row.copies for row in spark.sql(_SUMS, some=some).collect()}
