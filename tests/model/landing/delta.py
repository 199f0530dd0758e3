"""A table with Delta's rules, as measured on the real one.

A write takes its snapshot, then its tasks read the lease and the staged files, then it commits. It
conflicts if metadata were committed since its snapshot. A call that was sent may go on at any later
time.
"""

from dataclasses import replace

from tests.model.explore import InvariantViolation

from binwright.consumer.decide.land.states import (
    Committed,
    Conflict,
    Done,
    ErasedNoted,
    LeaseGone,
    Outcome,
    RowsErased,
    Unreadable,
)
from binwright.tables.columns import Columns
from binwright.tables.operations import BACKFILL, ERASE, REPLAY
from binwright.tables.ports import Batch, Commit, ErasedCounts, Ranges
from binwright.tables.stamp import Stamp, read_stamp

from .world import (
    TABLES,
    Call,
    DeltaTable,
    File,
    Part,
    Row,
    World,
    deletes,
    missing,
    newest_change,
)

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
    if call.snapshot not in {None, metadata_commits(world, call)}:
        return False
    return call.batch is None or call.rows is not None or _has_lease(world, call)


def metadata_commits(world: World, call: Call) -> int:
    """Return how many commits of metadata the table has to which the call commits."""
    table = world.tables[call.target]
    if call.part == "deletions":
        return 0  # nobody claims the table of these
    of_bad = call.part in {"bad records", "change"}
    return table.bad_metadata_commits if of_bad else table.metadata_commits


def _has_lease(world: World, call: Call) -> bool:
    # A mutated writer reads none.
    return not call.lease or (call.target, call.lease) in world.leases


def begin(world: World, call: Call) -> Call:
    """Take the snapshot of a call."""
    return replace(call, snapshot=metadata_commits(world, call))


def read(world: World, call: Call) -> tuple[Call, Outcome | None]:
    """Let an append read its lease and files: return it, with its outcome if it ends here."""
    if not _has_lease(world, call):
        return call, LeaseGone() if call.part == "all" else Unreadable(frozenset(), "gone")
    files = call.batch.files if call.batch else ()
    lost = frozenset(f for f in files if f not in world.files or not world.files[f].readable)
    if lost:
        return call, Unreadable(lost, "gone or torn")
    if call.part != "all":
        _check_columns(world, call)
    return replace(call, rows=_rows(world, call)), None


def _check_columns(world: World, call: Call) -> None:
    """Raise if the table lacks a column of the files: their values would be lost."""
    there = world.tables[call.target].columns
    for file in call.batch.files if call.batch else ():
        footer = world.files[file].footer
        if footer and not set(footer.columns or ()) <= set(there):
            raise InvariantViolation(f"{file} has {footer.columns}, the table has {there}")


def end(world: World, call: Call) -> tuple[World, Outcome | Call]:
    """End a call that has read all that it reads; return its outcome, or how it goes on."""
    table = world.tables[call.target]
    if call.snapshot != metadata_commits(world, call):
        return world, Conflict("metadata were committed")
    if call.part in {"change", "note", "erase", "deletions"}:
        table, outcome = _beside_rows(world, table, call)
        return world.table(call.target, table), outcome
    if call.batch is None and call.part == "bad records":
        return claim_bad(world, call), replace(call, snapshot=None, part="all")
    if call.batch is None:
        return world.table(call.target, with_metadata(table, call.stamp)), Committed()
    rows = frozenset(call.rows or ())
    replayed = call.batch.work == REPLAY
    _check_once(world, table, call, rows)
    if call.part == "bad records":
        return _land_bad(world, call, rows), Committed()
    if call.part == "rows" and not rows:
        return world, Committed()  # Delta makes no commit of none
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
        moved=table.moved | rows if replayed else table.moved,
        begin_offset=begin_offset,
        row=changed_row(world, table, rows, earlier=bool(call.batch.work)),
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


def changed_row(
    world: World, table: DeltaTable, rows: frozenset[Row], *, earlier: bool
) -> Row | None:
    """Return the row of the key after these changes, as the MERGE leaves it.

    Of one batch the change with the highest offset counts.
    """
    change = max(rows, key=lambda row: row.offset, default=None)
    known = known_of(table)
    if change is None or not all(is_newer(change, each, earlier=earlier) for each in known):
        return table.row
    return None if deletes(world, change) else change


def known_of(table: DeltaTable) -> frozenset[Row]:
    """Return what a change is compared with: what is noted counts where the key has no row."""
    return table.deletions if table.row is None else frozenset({table.row})


def is_newer(change: Row, known: Row, *, earlier: bool) -> bool:
    """Whether a change is newer than the row of its key, or than its deletion.

    Times of records are in the order in which they were written.
    """
    return not earlier or newest_change((known, change)) != known


def _beside_rows(world: World, table: DeltaTable, call: Call) -> tuple[DeltaTable, Outcome]:
    """Return the table after a step of what a person ordered, or a note, and the outcome."""
    rows = frozenset(call.rows or ())
    match call.part:
        case "change":
            return without_bad(table, rows), Done()
        case "deletions":
            deleted = {row for row in rows if deletes(world, row)}
            return replace(table, deletions=table.deletions | deleted), Committed()
        case "note":
            noted = table.noted | rows
            return replace(table, noted=noted), ErasedNoted(ErasedCounts(len(noted), 0), 0)
        case _:
            return without_noted(table), RowsErased(0)


def _check_once(world: World, table: DeltaTable, call: Call, rows: frozenset[Row]) -> None:
    """Raise if rows land twice, or are there still when what a person ordered has ended."""
    if back := rows & table.erased:
        raise InvariantViolation(f"rows come back that were erased: {sorted(back)}")
    replayed = call.batch is not None and call.batch.work == REPLAY
    landed = (table.landed - table.bad) | table.moved if replayed else table.landed
    if replayed and call.part == "changes":
        landed = frozenset()  # to apply a change again changes nothing
    if (twice := rows & landed) or len(rows) < len(call.rows or ()):
        raise InvariantViolation(f"rows land twice: {sorted(twice or rows)}")
    operation = parse_stamp(call.stamp).operation
    if operation is not None and operation.work == ERASE and operation.state == "done":
        left = {r for r in world.meant - table.erased if _is_kept(world, r)}
        if left:
            raise InvariantViolation(f"an erasure ends, and left {sorted(left)}")
    if operation is not None and operation.work == BACKFILL and operation.state == "done":
        begins, there = table.begin_offset, table.landed | rows
        before = {r for r in world.meant if r.offset < begins.get((r.topic, r.partition), 0)}
        if left := {r for r in before - there if _is_kept(world, r)}:
            raise InvariantViolation(f"a back-fill ends, and left {sorted(left)}")
    both = table.moved & table.bad
    if both and operation is not None and operation.state != "running":
        raise InvariantViolation(f"both tables have {sorted(both)} when the replay ends")


def _is_kept(world: World, row: Row) -> bool:
    """Whether a record is in its log still: what was cut off, or retention took, need not land."""
    log = world.logs[row.partition]
    there = row.topic == world.topic and log.start <= row.offset < log.end
    return there and log.entries[row.offset] == row.cut and row.offset >= log.uncertain_below


def _land_bad(world: World, call: Call, rows: frozenset[Row]) -> World:
    if rows and world.bounds.bad_share == 0:
        raise InvariantViolation(f"more are bad than may be: {sorted(rows)}")
    table = world.tables[call.target]
    after = replace(table, landed=table.landed | rows, bad=table.bad | rows)
    return world.table(call.target, after)


def without_bad(table: DeltaTable, rows: frozenset[Row]) -> DeltaTable:
    """Return the table once these have left its bad records."""
    return replace(table, bad=table.bad - rows, landed=table.landed - (rows - table.moved))


def without_noted(table: DeltaTable) -> DeltaTable:
    """Return the table once it, and its bad records, have nothing of what is noted."""
    gone = table.noted & table.landed
    return replace(
        table,
        landed=table.landed - gone,
        bad=table.bad - gone,
        moved=table.moved - gone,
        erased=table.erased | gone,
    )


def claim_bad(world: World, call: Call) -> World:
    """Commit a claim to the metadata of the table of bad records."""
    table = world.tables[call.target]
    after = replace(table, bad_metadata_commits=table.bad_metadata_commits + 1)
    return world.table(call.target, after)


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
    batch = call.batch or Batch()
    leaves_out = batch.landed_in_part and call.part != "files"
    before = world.tables[call.target].bad if leaves_out else frozenset()
    return tuple(
        row
        for part in batch.slices
        for row in sorted(_of_part(world.files[part.file], call.part) - before)
        if part.whole
        or call.part == "files"
        or _within(row, world.partition(row.partition).partition, part.ranges)
    )


def _of_part(file: File, part: Part) -> frozenset[Row]:
    """Return the rows of a file that this part of a commit is of."""
    if part == "all":
        return file.rows
    return file.bad if part == "bad records" else file.rows - file.bad


def _within(row: Row, number: int, ranges: Ranges) -> bool:
    first, end_offset = ranges.get(number, (0, 0))
    return first <= row.offset < end_offset


def topic_number(topic_id: str | None) -> int:
    """Return the number of the topic with an id; -1 if it is unknown."""
    return -1 if topic_id is None else int(topic_id[1:])


def add_columns(table: DeltaTable, columns: Columns, *, new_fields: bool) -> DeltaTable | None:
    """Return the table with these columns; None: it has one of another type."""
    there = {column.name: column for column in table.columns}
    if any(there.get(column.name, column) != column for column in columns):
        return None
    new = tuple(column for column in columns if column.name not in there)
    if not new:
        return table
    names = frozenset(column.name for column in new) if new_fields else frozenset()
    after = replace(table, columns=(*table.columns, *new), added=table.added | names)
    return with_metadata(after, None)
