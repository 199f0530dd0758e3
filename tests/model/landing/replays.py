"""What a person orders: a replay of bad records, that all rows are erased, or a back-fill."""

from dataclasses import replace

from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.states import (
    ChangeBad,
    EraseNoted,
    FindEarlier,
    Landing,
    NoteErased,
    OperationRequest,
    Outcome,
    Portion,
    PortionStaged,
    SettleBad,
    StageEarlier,
    StagePortion,
)
from binwright.protocol.names import portion_name
from binwright.protocol.orders import OperationOrder
from binwright.tables.operations import Cursor
from binwright.tables.ports import BadQuery, Footer

from . import backfills, readers, writers
from .delta import topic_number
from .world import TABLES, Call, DeltaTable, File, Row, World, deletes, kind_of, rows_between

REPLAY = OperationOrder(table=TABLES[0].name, id="0" * 32, work="replay", by="ann")
ERASE = replace(REPLAY, work="erase", where="_kafka.offset >= 0")
BACKFILL = replace(REPLAY, work="backfill")


def order_of(world: World) -> OperationOrder:
    """Return what is ordered."""
    if world.bounds.backfill:
        return BACKFILL
    return ERASE if world.bounds.erase else REPLAY


def order(world: World) -> World:
    """Let a person order it: the writers that land begin it, others once they do."""
    meant = (rows_between(world, p, 0, log.end) for p, log in enumerate(world.logs))
    world = replace(world, ordered=True, meant=frozenset().union(*meant))
    for index, process in enumerate(world.writers):
        if process is not None and isinstance(process.writer.phase, Landing):
            writer, _ = machine.apply_operation(process.writer, order_of(world), process.now)
            world = world.writer(index, replace(process, writer=writer))
    return world


def take_step(world: World, index: int, wanted: OperationRequest) -> World:
    """Decode bad records again and deliver the portion, or send what leaves them."""
    if isinstance(wanted, StagePortion):
        return _stage_portion(world, index, wanted)
    if isinstance(wanted, FindEarlier | StageEarlier):
        return backfills.take_step(world, index, wanted)
    if isinstance(wanted, NoteErased | EraseNoted):
        return writers.send_call(world, index, erasing(world, index, wanted))
    return writers.send_call(world, index, _change(world, index, wanted))


def erasing(world: World, index: int, wanted: NoteErased | EraseNoted) -> Call:
    """Return the call by which rows are noted, or deleted."""
    target = world.target_of(index)
    if isinstance(wanted, EraseNoted):
        return Call(index, 0, "", part="erase", target=target, rows=())
    table, below = world.tables[target], wanted.query.below
    again = {r for r in table.bad if r.offset >= below.get(world.partition(r.partition), 0)}
    return Call(index, 0, "", part="note", target=target, rows=tuple(sorted(table.landed - again)))


def _stage_portion(world: World, index: int, wanted: StagePortion) -> World:
    query, decoder = wanted.query, readers.decoder(world)
    bad = world.tables[world.target_of(index)].bad
    rows = sorted(r for r in bad if _is_meant(world, r, query))[:1]  # one at a time
    if not rows:
        return writers.deliver_outcome(world, index, PortionStaged(Portion()))
    values = {r: f"{r.cut}{kind_of(world, r.partition, r.offset)}".encode() for r in rows}
    good = frozenset(r for r, value in values.items() if not decoder.is_raising(value))
    places = {
        world.partition(p): (min(own), max(own) + 1)
        for p in {r.partition for r in good}
        if (own := [r.offset for r in good if r.partition == p])
    }
    last = rows[-1]
    portion = Portion(
        after=Cursor(*world.partition(last.partition), last.offset),
        file=portion_name(f"{world.counter:032x}") if good else "",
        bytes=1,
        rows=len(good),
        places=places,
    )
    if good:
        ranges = {p.partition: ends for p, ends in places.items()}
        columns, settings = decoder.columns, decoder.settings
        deleted = sum(deletes(world, row) for row in good)
        footer = Footer(
            None, len(good), ranges, columns, topic="t", decoded_by=settings, deleted=deleted
        )
        file = File(good, world.target_of(index), footer=footer)
        files = {**world.files, portion.file: file}
        world = replace(world, files=files, counter=world.counter + 1)
    process = world.writers[index]
    assert process is not None
    world = world.writer(index, replace(process, removed=good))
    outcome: Outcome = PortionStaged(portion)
    return writers.deliver_outcome(world, index, outcome)


def _is_meant(world: World, row: Row, query: BadQuery) -> bool:
    partition = world.partition(row.partition)
    return (
        topic_number(query.topic_ids[partition.topic]) == row.topic
        and row.offset < query.below.get(partition, 0)
        and (query.after is None or Cursor(*partition, row.offset) > query.after)
    )


def _there(table: DeltaTable) -> frozenset[Row]:
    """Return the changes of which a table of keys has the rows: later ones replace others."""
    return frozenset() if table.row is None else frozenset({table.row})


def _change(world: World, index: int, wanted: ChangeBad | SettleBad) -> Call:
    """Return the call by which bad records leave."""
    process, target = world.writers[index], world.target_of(index)
    assert process is not None
    rows = process.removed
    if isinstance(wanted, SettleBad):
        table, within = world.tables[target], wanted.places
        rows = frozenset(
            r
            for r in table.bad & (_there(table) if world.bounds.keyed else table.moved)
            if (place := world.partition(r.partition)) in within
            and within[place][0] <= r.offset < within[place][1]
        )
    return Call(index, 0, "", part="change", target=target, rows=tuple(sorted(rows)))
