"""The status of tables and their partitions, derived from a `GroupView`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from binwright.look.group_view import GroupView
from binwright.look.table_view import NO_REPORT, TableView
from binwright.protocol.errors import UserError
from binwright.protocol.metadata import Report, TableReport
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.texts import first_of

LISTED = 3
"""Topics of a table that are named."""
TableState = Literal["unwritten", "silent", "claiming", "landing", "paused", "refused"]
"""unwritten: no consumer writes it. silent: its writer has not reported lately. claiming: its
writer fences older writers and reads what is committed. landing: it takes rows. paused: a person
has stopped it; `fault` says who. refused: see `fault`.
"""


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition, from the log through its reader to the table; None: not known."""

    topic: str
    partition: int
    reader: Slot | None
    staged: int | None  # the next offset that its reader stages
    committed: int | None  # the next offset to land, as the table's writer reports it
    end: int | None  # of the log
    lag: int  # records that have not landed


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table of a topic, or of several."""

    topic: str  # for people: see `topics_text`
    name: str
    writer: Slot | None
    state: TableState
    lag: int  # records of the topic that have not landed in it
    report: TableReport
    """Its writer's last one, as of now: with what all its writers have counted since the oldest one
    in the metadata topic, about, and with the fault for which its topic's rows are not staged."""
    partitions: tuple[PartitionStatus, ...] = ()
    freshness_s: float | None = None  # age of the newest record that landed; None: not known
    topics: tuple[str, ...] = ()  # whose records it takes
    new_fields: tuple[str, ...] = ()  # of JSON, without a column: left out

    @property
    def rows(self) -> int:
        """Return how many landed in itself, so without bad records."""
        return self.report.rows - self.report.bad

    def plain(self) -> dict[str, Any]:
        """Return what JSON has of it, the report's fields among its own, without partitions."""
        own = {name: getattr(self, name) for name in self.__slots__} | {"rows": self.rows}
        reported = {name: getattr(self.report, name) for name in self.report.__slots__}
        inner = {"report", "partitions", "committed", "newest_ms"}
        return {n: value for n, value in {**own, **reported, **own}.items() if n not in inner}


def check_known(group: str, table: str, known: Collection[str]) -> None:
    """Raise `UserError` for a table that is none of the group's."""
    if table not in known:
        has = ", ".join(sorted(known)) or "none"
        raise UserError(f"group {group} has no table {table}; it has: {has}")


def topics_text(topics: Sequence[str]) -> str:
    """Return the topics of a table as text; many are cut short."""
    return first_of(topics, LISTED)


def table_statuses(
    view: GroupView,
    partitions: Collection[TopicPartition],
    live: Collection[Slot],
    now_ms: int,
) -> tuple[TableStatus, ...]:
    """Return the tables in order of their topics; a topic that none writes has one of its name.

    Args:
        view: Of the group.
        partitions: Of all topics of the group.
        live: Consumers that are not silent.
        now_ms: Wall clock.
    """
    readers = {p: slot for slot, r in sorted(view.reports.items()) for p in r.reading}
    reports = [report for _, report in sorted(view.reports.items())]
    faults = {topic: why for report in reports for topic, why in report.faults.items()}
    names: dict[str, list[str]] = {}
    for name, table in sorted(view.tables.by_name.items()):
        for topic in table.topics:
            names.setdefault(topic, []).append(name)
    read: dict[str, list[tuple[TopicPartition, Slot | None]]] = {}  # by table
    for p in sorted(partitions):
        for name in names.get(p.topic, [p.topic]):
            read.setdefault(name, []).append((p, readers.get(p)))
    tables = (_table(view, name, parts, live, now_ms) for name, parts in read.items())
    return tuple(
        replace(
            table,
            report=replace(table.report, fault=table.report.fault or _staging_fault(table, faults)),
            new_fields=_new_fields(table.name, reports),
        )
        for table in tables
    )


def _new_fields(table: str, reports: Collection[Report]) -> tuple[str, ...]:
    """Return the fields of JSON that any consumer leaves out of a table."""
    return tuple(sorted({f for report in reports for f in report.new_fields.get(table, ())}))


def _staging_fault(table: TableStatus, faults: Mapping[str, str]) -> str:
    """Return why rows of the table, or of one of its topics, are not staged; empty if they are."""
    return next((faults[name] for name in (table.name, *table.topics) if name in faults), "")


def _partition(
    view: GroupView, partition: TopicPartition, reader: Slot | None, committed: int | None
) -> PartitionStatus:
    return PartitionStatus(
        topic=partition.topic,
        partition=partition.partition,
        reader=reader,
        staged=None if reader is None else view.reports[reader].reading[partition],
        committed=committed,
        end=view.ends.get(partition),
        lag=view.lag_behind(partition, committed),
    )


def _table(
    view: GroupView,
    name: str,
    read: Collection[tuple[TopicPartition, Slot | None]],
    live: Collection[Slot],
    now_ms: int,
) -> TableStatus:
    table = view.tables.by_name.get(name) or TableView((), None, 0, NO_REPORT, now_ms)
    partitions = tuple(_partition(view, p, reader, table.committed.get(p)) for p, reader in read)
    topics, report = tuple(dict.fromkeys(p.topic for p, _ in read)), table.report
    since_s = max(0, now_ms - table.at_ms) / 1000
    state: TableState = report.state
    if table.writer is None:
        state = "unwritten"
    elif table.writer not in live:
        state = "silent"
    return TableStatus(
        topic=topics_text(topics),
        name=name,
        writer=table.writer,
        state=state,
        lag=sum(partition.lag for partition in partitions),
        report=replace(report, age_s=report.age_s + since_s if report.pending_bytes else 0.0),
        partitions=partitions,
        freshness_s=report.freshness_s(now_ms),
        topics=topics,
    )
