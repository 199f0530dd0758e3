"""Consumers that read and stage: the product's buffer and hand-over, and what the shell does."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.model.explore import Step

from binwright.core.consumer import handover
from binwright.core.consumer.batch import BatchRules
from binwright.core.consumer.buffer import Buffer
from binwright.core.consumer.handover import Consumer, Fetch, StopFetching
from binwright.core.messages import Command, Staged, StartReading, StopReading
from binwright.core.model import Slot
from binwright.core.ports import Record

from .world import NOTHING, TOPIC, File, ReaderProcess, Row, World, rows_between

RULES = BatchRules()


def new_reader(slot: int, topic: int) -> ReaderProcess:
    """Return a process that reads nothing yet."""
    return ReaderProcess(Consumer(Slot(slot), epoch=1, ready=True), topic, Buffer(RULES))


def copied(buffer: Buffer) -> Buffer:
    """Return a buffer that may be changed."""
    twin = Buffer(buffer.rules)
    twin._rows = {p: replace(r, records=list(r.records)) for p, r in buffer._rows.items()}
    twin._oldest, twin._sizes = dict(buffer._oldest), dict(buffer._sizes)
    twin._size = buffer._size
    return twin


def steps(world: World, index: int) -> Iterator[Step[World]]:
    """Yield what a reader may do next."""
    reader = world.readers[index]
    who = f"reader {index}"
    for partition in sorted(reader.consumer.parts):
        if _can_fetch(world, reader, partition.partition):
            label = (who, "fetches", partition)
            yield Step(label, lambda p=partition.partition: fetch(world, index, p))  # type: ignore[misc]
    if reader.written is not None:
        yield Step((who, "announces", reader.written.file), lambda: announce(world, index))
    elif reader.buffer.sizes:
        yield Step((who, "stages what it has"), lambda: stage(world, index))


def _place(reader: ReaderProcess, world: World, partition: int) -> int:
    place = reader.buffer.next_offset(world.partition(partition))
    assert place is not None, "what is read is in the buffer"
    return place


def _can_fetch(world: World, reader: ReaderProcess, partition: int) -> bool:
    place, log = _place(reader, world, partition), world.logs[partition]
    return place > log.end or bool(rows_between(world, partition, place, log.end))


def fetch(world: World, index: int, partition: int) -> World:
    """Take records into the buffer, or see that the log ends before the place."""
    reader, log = world.readers[index], world.logs[partition]
    place = _place(reader, world, partition)
    if place > log.end:
        return _out_of_range(world, index, partition)
    records = _records(log.entries, max(place, log.start))
    if world.bounds.singly:
        records = records[:1]
    buffer = copied(reader.buffer)
    buffer.add(world.partition(partition), records, 0.0)
    return world.reader(index, replace(reader, buffer=buffer))


def _records(entries: Sequence[int], first: int) -> list[Record]:
    return [
        Record(offset, 0, None, str(entries[offset]).encode())
        for offset in range(first, len(entries))
        if entries[offset] != NOTHING
    ]


def _out_of_range(world: World, index: int, partition: int) -> World:
    reader, log = world.readers[index], world.logs[partition]
    if reader.topic != world.topic:
        return _renew(world, index)
    buffer, tp = copied(reader.buffer), world.partition(partition)
    buffer.begin(tp, log.end, cut=True)
    consumer = handover.moved(reader.consumer, tp, log.end, cut=True)
    cuts = {**reader.cuts, partition: (log.end, log.cuts)}
    seen = replace(reader, buffer=buffer, consumer=consumer, cuts=cuts)
    return world.reader(index, seen)


def _renew(world: World, index: int) -> World:
    """Read a topic that was made anew from its beginning."""
    reader = world.readers[index]
    buffer, consumer = copied(reader.buffer), reader.consumer
    for partition in consumer.parts:
        first = world.logs[partition.partition].start
        buffer.begin(partition, first)
        consumer = handover.moved(consumer, partition, first)
    renewed = replace(reader, buffer=buffer, consumer=consumer, topic=world.topic)
    return world.reader(index, renewed)


def stage(world: World, index: int) -> World:
    """Write a file; after the fetch and before it is asked which topic it is."""
    if world.readers[index].topic != world.topic:
        return _renew(world, index)
    reader = world.readers[index]
    buffer = copied(reader.buffer)
    taken = buffer.take(TOPIC)
    name = f"f{world.counter}"
    rows = frozenset(
        Row(world.topic, p.partition, r.offset, int(r.value or b""))
        for p, stretch in taken.items()
        for r in stretch.records
    )
    staged = Staged(
        topic=TOPIC,
        topic_id=f"t{world.topic}",
        file=name,
        rows=len(rows),
        bytes=1,
        ranges={p: stretch.range for p, stretch in taken.items()},
        slot=reader.consumer.slot,
        epoch=reader.consumer.epoch,
        cut=tuple(p for p, stretch in taken.items() if stretch.cut),
    )
    consumer = handover.staging(reader.consumer, {p: s.range.next for p, s in taken.items()})
    world = replace(world, files={**world.files, name: File(rows)}, counter=world.counter + 1)
    reader = replace(reader, buffer=buffer, consumer=consumer, written=staged)
    return world.reader(index, reader)


def announce(world: World, index: int) -> World:
    """Publish what is staged."""
    reader = world.readers[index]
    staged = reader.written
    assert staged is not None
    consumer, _ = handover.announced(reader.consumer, staged.ranges)
    world = replace(world, landing=(*world.landing, staged))
    cuts = dict(reader.cuts)
    for row in world.files[staged.file].rows:
        log, (first, cut) = world.logs[row.partition], cuts.get(row.partition, (0, -1))
        if row.cut == cut == log.cuts:
            del cuts[row.partition]
            world = world.log(row.partition, replace(log, goes_on_at=first))
    return world.reader(index, replace(reader, consumer=consumer, written=None, cuts=cuts))


# --- what the controller has it do ---------------------------------------------------------------


def start(world: World, index: int, partition: int, offset: int | None) -> World:
    """Have a reader begin, or go on elsewhere."""
    command = StartReading(
        term=1,
        revision=world.counter,
        epoch=1,
        offsets={world.partition(partition): offset},
    )
    return _obey(replace(world, counter=world.counter + 1), index, command)


def stop(world: World, index: int, partition: int) -> World:
    """Have a reader stop; what it answers is where the next one begins."""
    tp = world.partition(partition)
    command = StopReading(term=1, revision=world.counter, epoch=1, partitions=(tp,))
    world = replace(world, counter=world.counter + 1)
    _, actions = handover.obey(world.readers[index].consumer, command, 0)
    replies = [a.message for a in actions if isinstance(a, handover.Reply)]
    following = {p: o for m in replies for p, o in getattr(m, "next", {}).items()}
    known = (*world.known[:partition], following[tp], *world.known[partition + 1 :])
    return _obey(replace(world, known=known), index, command)


def _obey(world: World, index: int, command: Command) -> World:
    reader = world.readers[index]
    consumer, actions = handover.obey(reader.consumer, command, 0)
    buffer, cuts = copied(reader.buffer), dict(reader.cuts)
    for action in actions:
        if isinstance(action, StopFetching):
            buffer.drop(action.partition)
            cuts.pop(action.partition.partition, None)  # nobody says it: what is kept may be less
        elif isinstance(action, Fetch):
            offset = action.offset
            if offset is None:
                offset = _where_to_begin(world, action.partition.partition)
                consumer, _ = handover.located(consumer, action, offset)
            buffer.begin(action.partition, offset)
    obeyed = replace(reader, consumer=consumer, buffer=buffer, cuts=cuts)
    return world.reader(index, obeyed)


def _where_to_begin(world: World, partition: int) -> int:
    """Return the group's committed offset, else what the start rule says."""
    topic, offset = world.group.get(partition, (-1, 0))
    if topic == world.topic:
        return offset
    log = world.logs[partition]
    return log.end if world.bounds.from_latest else log.start
