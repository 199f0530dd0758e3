"""A table with Delta's rules as they were measured.

A write whose version is not above the stored one is skipped and says OK; one that began before
another commit of the same app id conflicts; what was sent may begin and commit at any later time.
"""

from dataclasses import replace

from tests.model.explore import Broken

from binwright.core.ports import Commit
from binwright.core.writer.batch import Ranges
from binwright.core.writer.requests import Committed, Conflict, Outcome, Skipped, Unreadable
from binwright.core.writer.stamp import Stamp, read_stamp

from .world import TABLE, Call, DeltaTable, Row, World, missing

_STAMPS: dict[str, Stamp] = {}


def stamp_of(text: str) -> Stamp:
    """Return a stamp; each is parsed once."""
    if text not in _STAMPS:
        found = read_stamp(text, TABLE)
        assert isinstance(found, Stamp)
        _STAMPS[text] = found
    return _STAMPS[text]


def can_commit(table: DeltaTable, call: Call) -> bool:
    """Return whether a call may still come to a commit."""
    if call.began is None:
        return call.version > table.stored
    return call.began == table.of_app


def begin(world: World, call: Call) -> tuple[Call | None, Outcome | None]:
    """Let a call begin: it goes on, or ends with an outcome."""
    if call.version <= world.table.stored:
        return None, Skipped()
    files = call.batch.files if call.batch else ()
    bad = frozenset(f for f in files if f not in world.files or not world.files[f].readable)
    if bad:
        return None, Unreadable(bad, "gone or torn")
    return replace(call, began=world.table.of_app, rows=_rows(world, call)), None


def end(world: World, call: Call) -> tuple[World, Outcome]:
    """Let a call that began end."""
    table = world.table
    if call.began != table.of_app:
        return world, Conflict("another writer's commit")
    rows = frozenset(call.rows)
    if (twice := rows & table.landed) or len(rows) < len(call.rows):
        raise Broken(f"rows land twice: {sorted(twice or call.rows)}")
    stamp = stamp_of(call.stamp)
    topic = topic_number(stamp.topic_id)
    begun = {(topic, p): offset for p, offset in stamp.committed.items()} | dict(table.begun)
    table = replace(
        table,
        commits=(*table.commits, Commit(table.next_version, call.stamp)),
        next_version=table.next_version + 1,
        of_app=table.of_app + 1,
        stored=call.version,
        landed=table.landed | rows,
        begun=begun,
    )
    world = replace(world, table=table)
    if topic == world.topic:
        for partition, offset in stamp.committed.items():
            if lost := missing(world, partition, offset):
                raise Broken(f"a stamp says {partition} up to {offset}, without {sorted(lost)}")
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
    first, following = ranges.get(row.partition, (0, 0))
    return first <= row.offset < following


def topic_number(topic_id: str | None) -> int:
    """Return which topic an id names."""
    return -1 if topic_id is None else int(topic_id[1:])
