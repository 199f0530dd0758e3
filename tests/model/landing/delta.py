"""A table with Delta's rules, as measured on the real one.

A write takes its snapshot, then its tasks read the lease and the staged files, then it commits. It
conflicts if metadata were committed since its snapshot. A call that was sent may go on at any later
time.
"""

from dataclasses import replace

from tests.model.explore import InvariantViolation

from binwright.consumer.decide.writer.states import (
    Committed,
    Conflict,
    LeaseGone,
    Outcome,
    Unreadable,
)
from binwright.tables.ports import Commit, Ranges
from binwright.tables.stamp import Stamp, read_stamp

from .world import TABLES, Call, DeltaTable, Row, World, missing

_STAMPS: dict[str, Stamp] = {}


def parse_stamp(text: str) -> Stamp:
    """Return a stamp; each is parsed once."""
    if text not in _STAMPS:
        found = read_stamp(text, TABLES[0])
        assert isinstance(found, Stamp)
        _STAMPS[text] = found
    return _STAMPS[text]


def can_commit(world: World, call: Call) -> bool:
    """Whether a call may still be committed."""
    if call.snapshot not in {None, world.tables[call.target].metadata_commits}:
        return False
    return call.batch is None or call.rows is not None or _has_lease(world, call)


def _has_lease(world: World, call: Call) -> bool:
    # A mutated writer reads none.
    return not call.lease or (call.target, call.lease) in world.leases


def begin(world: World, call: Call) -> Call:
    """Take the snapshot of a call."""
    return replace(call, snapshot=world.tables[call.target].metadata_commits)


def read(world: World, call: Call) -> tuple[Call, Outcome | None]:
    """Let an append read its lease and files: return it, with its outcome if it ends here."""
    if not _has_lease(world, call):
        return call, LeaseGone()
    files = call.batch.files if call.batch else ()
    lost = frozenset(f for f in files if f not in world.files or not world.files[f].readable)
    if lost:
        return call, Unreadable(lost, "gone or torn")
    undecodable = frozenset[Row]().union(*(world.files[file].bad for file in files))
    return replace(call, rows=_rows(world, call), bad=undecodable), None


def end(world: World, call: Call) -> tuple[World, Outcome]:
    """End a call that has read all that it reads."""
    table = world.tables[call.target]
    if call.snapshot != table.metadata_commits:
        return world, Conflict("metadata were committed")
    if call.batch is None:
        return world.table(call.target, with_metadata(table, call.stamp)), Committed()
    rows = frozenset(call.rows or ())
    if (twice := rows & table.landed) or len(rows) < len(call.rows or ()):
        raise InvariantViolation(f"rows land twice: {sorted(twice or rows)}")
    stamp = parse_stamp(call.stamp)
    begin_offset = {
        (topic_number(stamp.topic_ids[p.topic]), world.log_of(p)): offset
        for p, offset in stamp.committed.items()
    } | dict(table.begin_offset)
    table = replace(
        table,
        commits=(*table.commits, Commit(table.next_version, call.stamp)),
        next_version=table.next_version + 1,
        landed=table.landed | rows,
        bad=table.bad | (rows & call.bad),
        begin_offset=begin_offset,
    )
    world = world.table(call.target, table)
    for partition, offset in stamp.committed.items():
        if topic_number(stamp.topic_ids[partition.topic]) != world.topic:
            continue
        if lost := missing(world, call.target, world.log_of(partition), offset):
            raise InvariantViolation(
                f"a stamp has {partition} up to {offset}, without {sorted(lost)}"
            )
    return world, Committed()


def with_metadata(table: DeltaTable, stamp: str | None) -> DeltaTable:
    """Return the table after a commit of metadata."""
    return replace(
        table,
        commits=(*table.commits, Commit(table.next_version, stamp)),
        next_version=table.next_version + 1,
        metadata_commits=table.metadata_commits + 1,
    )


def _rows(world: World, call: Call) -> tuple[Row, ...]:
    """Return the rows of the slices, as Spark reads them."""
    return tuple(
        row
        for part in (call.batch.slices if call.batch else ())
        for row in sorted(world.files[part.file].rows)
        if part.whole or _within(row, world.partition(row.partition).partition, part.ranges)
    )


def _within(row: Row, number: int, ranges: Ranges) -> bool:
    first, end_offset = ranges.get(number, (0, 0))
    return first <= row.offset < end_offset


def topic_number(topic_id: str | None) -> int:
    """Return the number of the topic with an id; -1 if it is unknown."""
    return -1 if topic_id is None else int(topic_id[1:])
