"""Tables and partitions in a few words and numbers, folded from a `Picture`."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from binwright.core.model import Slot, TopicPartition
from binwright.lab.picture import Picture

TableState = Literal["unwritten", "silent", "claiming", "landing", "refused"]
"""unwritten: no consumer writes it. silent: the one that does has not reported lately. claiming: it
shuts older writers out and reads what is committed. landing: all is well. refused: see `fault`.
"""


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition, from the log through its reader to the table; None: it is not known."""

    partition: int
    reader: Slot | None
    staged: int | None  # the next offset that its reader stages
    committed: int | None  # the next offset to land, as the table's writer reports it
    end: int | None  # of the log
    lag: int  # records that have not landed


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One topic's table."""

    topic: str
    writer: Slot | None
    state: TableState
    age_s: float  # of the oldest staged row that has not landed; 0: there is none
    pending_bytes: int  # staged and not landed
    lag: int  # records of the topic that have not landed
    rows: int = 0  # landed since the beginning of what the metadata topic keeps, about
    commits: int = 0
    fault: str = ""  # why it takes nothing
    partitions: tuple[PartitionStatus, ...] = ()


def table_statuses(
    picture: Picture,
    partitions: Collection[TopicPartition],
    live: Collection[Slot],
    now_ms: int,
) -> tuple[TableStatus, ...]:
    """Return the table of each topic, in order.

    Args:
        picture: What was reported.
        partitions: Of all topics.
        live: Consumers that are not silent.
        now_ms: Wall clock.
    """
    readers = {p: slot for slot, r in sorted(picture.reports.items()) for p in r.reading}
    return tuple(
        _table(
            picture, topic, [_partition(picture, p, readers.get(p)) for p in of_it], live, now_ms
        )
        for topic, of_it in groupby(sorted(partitions), key=lambda p: p.topic)
    )


def _partition(picture: Picture, at: TopicPartition, reader: Slot | None) -> PartitionStatus:
    return PartitionStatus(
        partition=at.partition,
        reader=reader,
        staged=None if reader is None else picture.reports[reader].reading[at],
        committed=picture.landed.get(at),
        end=picture.ends.get(at),
        lag=picture.partition_lag(at),
    )


def _table(
    picture: Picture,
    topic: str,
    partitions: list[PartitionStatus],
    live: Collection[Slot],
    now_ms: int,
) -> TableStatus:
    lag = sum(partition.lag for partition in partitions)
    view = picture.tables.by_topic.get(topic)
    if view is None:
        return TableStatus(topic, None, "unwritten", 0.0, 0, lag, partitions=tuple(partitions))
    report, since_s = view.report, max(0, now_ms - view.at_ms) / 1000
    state: TableState = report.state
    if view.writer is None:
        state = "unwritten"
    elif view.writer not in live:
        state = "silent"
    return TableStatus(
        topic=topic,
        writer=view.writer,
        state=state,
        age_s=report.age_s + since_s if report.pending_bytes else 0.0,
        pending_bytes=report.pending_bytes,
        lag=lag,
        rows=view.rows,
        commits=view.commits,
        fault=report.fault,
        partitions=tuple(partitions),
    )
