"""What is before a table's beginning: it is found, read and staged as the service does it."""

from dataclasses import replace

from binwright.consumer.decide.land.states import (
    EarlierFound,
    EarlierPortion,
    EarlierStaged,
    FindEarlier,
    Outcome,
    StageEarlier,
    TooLarge,
)
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import portion_name
from binwright.tables.ports import FileSlice

from . import readers, writers
from .world import NOTHING, DeltaTable, File, Row, World

MOST_OFFSETS = 2


def take_step(world: World, index: int, wanted: FindEarlier | StageEarlier) -> World:
    """Find where the table begins, or stage a portion of one or two offsets."""
    outcome: Outcome
    if isinstance(wanted, FindEarlier):
        table = world.tables[world.target_of(index)]
        found = lowest(world, table) if wanted.scan else None
        outcome = EarlierFound(found, writers.facts(world, index))
    elif wanted.range.next - wanted.range.first > MOST_OFFSETS:
        outcome = TooLarge()
    else:
        world, portion = _staged(world, index, wanted)
        outcome = EarlierStaged(portion, writers.facts(world, index))
    return writers.deliver_outcome(world, index, outcome)


def lowest(world: World, table: DeltaTable) -> dict[TopicPartition, int]:
    """Return the lowest offsets of a table's rows; of its bad records none."""
    return outermost(world, (table.landed - table.bad) | table.noted)


def outermost(world: World, rows: frozenset[Row]) -> dict[TopicPartition, int]:
    """Return the lowest offsets of rows."""
    offsets: dict[TopicPartition, int] = {}
    for row in rows:
        p = world.partition(row.partition)
        offsets[p] = min(row.offset, offsets.get(p, row.offset))
    return offsets


def _staged(world: World, index: int, wanted: StageEarlier) -> tuple[World, EarlierPortion]:
    p, (first, end) = wanted.partition, wanted.range
    number = world.log_of(p)
    log = world.logs[number]
    if log.end < end or log.start >= end:
        return world, EarlierPortion(partition=p, first=end)
    first = max(first, log.start)
    values = {
        Row(world.topic, number, offset, log.entries[offset]): readers.value(world, number, offset)
        for offset in range(first, end)
        if log.entries[offset] != NOTHING
    }
    if not values:
        return world, EarlierPortion(partition=p, first=first)
    ranges = {p.partition: (first, end)}
    footer, bad = readers.encoded(world, p.topic, values, ranges)
    name = portion_name(f"{world.counter:032x}")
    file = File(frozenset(values), world.target_of(index), bad, footer)
    world = replace(world, files={**world.files, name: file}, counter=world.counter + 1)
    portion = EarlierPortion(
        partition=p,
        first=first,
        slices=(FileSlice(name, ranges, whole=True, bytes=1, topic=p.topic),),
        rows=len(values) - len(bad),
        bad=len(bad),
        bytes=1,
    )
    return world, portion
