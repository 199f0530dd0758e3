"""A table with Delta's rules, as measured on the real one.

A write whose version is not above the stored one is skipped; one that began before another commit
of the same app id conflicts; a call that was sent may begin and commit at any later time.
"""

from dataclasses import replace

from tests.model.explore import InvariantViolation

from binwright.consumer.decide.writer.states import (
    Committed,
    Conflict,
    Outcome,
    Skipped,
    Unreadable,
)
from binwright.protocol.ports.lake import Commit, Ranges
from binwright.protocol.stamp import Stamp, read_stamp

from .world import TABLE, Call, DeltaTable, Row, World, missing

_STAMPS: dict[str, Stamp] = {}


def parse_stamp(text: str) -> Stamp:
    """Return a stamp; each is parsed once."""
    if text not in _STAMPS:
        found = read_stamp(text, TABLE)
        assert isinstance(found, Stamp)
        _STAMPS[text] = found
    return _STAMPS[text]


def can_commit(table: DeltaTable, call: Call) -> bool:
    """Whether a call may still be committed."""
    if call.began is None:
        return call.version > table.stored_version
    return call.began == table.app_commits


def begin(world: World, call: Call) -> tuple[Call | None, Outcome | None]:
    """Begin a call: return it, or its outcome if it ends at once."""
    if call.version <= world.table.stored_version:
        return None, Skipped()
    files = call.batch.files if call.batch else ()
    bad = frozenset(f for f in files if f not in world.files or not world.files[f].readable)
    if bad:
        return None, Unreadable(bad, "gone or torn")
    return replace(call, began=world.table.app_commits, rows=_rows(world, call)), None


def end(world: World, call: Call) -> tuple[World, Outcome]:
    """End a call that has begun."""
    table = world.table
    if call.began != table.app_commits:
        return world, Conflict("another writer's commit")
    rows = frozenset(call.rows)
    if (twice := rows & table.landed) or len(rows) < len(call.rows):
        raise InvariantViolation(f"rows land twice: {sorted(twice or call.rows)}")
    stamp = parse_stamp(call.stamp)
    topic = topic_number(stamp.topic_id)
    begin_offset = {(topic, p): offset for p, offset in stamp.committed.items()} | dict(
        table.begin_offset
    )
    table = replace(
        table,
        commits=(*table.commits, Commit(table.next_version, call.stamp)),
        next_version=table.next_version + 1,
        app_commits=table.app_commits + 1,
        stored_version=call.version,
        landed=table.landed | rows,
        begin_offset=begin_offset,
    )
    world = replace(world, table=table)
    if topic == world.topic:
        for partition, offset in stamp.committed.items():
            if lost := missing(world, partition, offset):
                raise InvariantViolation(
                    f"a stamp has {partition} up to {offset}, without {sorted(lost)}"
                )
    return world, Committed()


def _rows(world: World, call: Call) -> tuple[Row, ...]:
    """Return the rows of the slices, as Spark reads them."""
    return tuple(
        row
        for part in (call.batch.slices if call.batch else ())
        for row in sorted(world.files[part.file].rows)
        if part.whole or _within(row, part.ranges)
    )


def _within(row: Row, ranges: Ranges) -> bool:
    first, end_offset = ranges.get(row.partition, (0, 0))
    return first <= row.offset < end_offset


def topic_number(topic_id: str | None) -> int:
    """Return the number of the topic with an id; -1 if it is unknown."""
    return -1 if topic_id is None else int(topic_id[1:])
