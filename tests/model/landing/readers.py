"""Consumers that read and stage: the product's buffer and hand-over, and their service."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from tests.model.explore import InvariantViolation, Step

from binwright.consumer.decide import machine
from binwright.consumer.decide.buffer import BatchConfig, Buffer
from binwright.consumer.decide.machine import Consumer, Fetch, Reply, StopFetching
from binwright.consumer.decode import one_by_one
from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.protocol.commands import Command, StartReading, StopReading
from binwright.protocol.landing import Staged
from binwright.protocol.model import Slot
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.columns import Columns, parse_columns, parse_row
from binwright.tables.ports import Footer, Ranges

from .world import NOTHING, TABLES, TOPIC, File, ReaderProcess, Row, World, deletes, kind_of

CONFIG = BatchConfig()
RAISING = ((b"x", b"z"), (b"y",))
"""The last characters of values whose decoding raises, by the settings of their place here."""


class RaisingDecoder:
    """A decoder that raises for what it did not foresee, as by an integer that is too large."""

    def __init__(self, number: int, columns: Columns, proposed: Columns = ()) -> None:
        """Decode by the settings of a number."""
        self.settings, self.columns, self.proposed = str(number), columns, proposed
        self._raising = RAISING[number] if number < len(RAISING) else ()

    def decode(self, values: Any, headers: Any = None, keys: Any = None, /) -> tuple[Any, Any]:
        """Return a row of each value, unless one of them raises."""
        del headers, keys
        if any(self.is_raising(value) for value in values.to_pylist()):
            raise OverflowError("a value is beyond 64 bits")
        rows = pa.array([{}] * len(values), row_type(self.columns))
        return rows, pa.nulls(len(values), BAD)

    def is_raising(self, value: bytes | None) -> bool:
        """Whether the decoding of a value raises."""
        return value is not None and value.endswith(self._raising)

    def memory(self, values: Any, keys: Any = None, /) -> int:
        """Return that of no value."""
        del values, keys
        return 0


def new_reader(slot: int, topic: int) -> ReaderProcess:
    """Return a process without partitions."""
    return ReaderProcess(Consumer(Slot(slot), epoch=1, ready=True), topic, Buffer(CONFIG))


def copied(buffer: Buffer) -> Buffer:
    """Return a copy of a buffer."""
    twin = Buffer(buffer.config)
    twin._rows = {p: replace(r, records=list(r.records)) for p, r in buffer._rows.items()}
    twin._oldest, twin._sizes = dict(buffer._oldest), dict(buffer._sizes)
    twin._size = buffer._size
    return twin


def steps(world: World, index: int) -> Iterator[Step[World]]:
    """Yield the possible steps of a reader."""
    reader = world.readers[index]
    actor = f"reader {index}"
    for partition in sorted(reader.consumer.partitions):
        number = world.log_of(partition)
        if _can_fetch(world, reader, number):
            label = (actor, "fetches", partition)
            yield Step(label, lambda n=number: fetch(world, index, n))  # type: ignore[misc]
    if reader.unannounced:
        yield Step((actor, "announces", reader.unannounced[0].file), lambda: announce(world, index))
        return
    for topic in world.topics:
        if reader.buffer.oldest_at(topic) is not None:
            which = (topic,) if len(world.topics) > 1 else ()
            staging = (actor, "stages what it has", *which)
            yield Step(staging, lambda topic=topic: stage(world, index, topic))  # type: ignore[misc]


def _position(reader: ReaderProcess, world: World, partition: int) -> int:
    position = reader.buffer.next_offset(world.partition(partition))
    assert position is not None, "what is read is in the buffer"
    return position


def _can_fetch(world: World, reader: ReaderProcess, partition: int) -> bool:
    return _position(reader, world, partition) != world.logs[partition].end


def fetch(world: World, index: int, partition: int) -> World:
    """Add records to the buffer, and what has none; or detect that the log ends before it."""
    reader, log = world.readers[index], world.logs[partition]
    position = _position(reader, world, partition)
    if position > log.end:
        return _out_of_range(world, index, partition)
    records = _records(world, partition, max(position, log.start))
    end = log.end
    if world.bounds.fetch_singly and records:
        records = records[:1]
        end = records[0].offset + 1
    buffer = copied(reader.buffer)
    buffer.add(world.partition(partition), Records.of(records), 0.0)
    buffer.advance(world.partition(partition), end, 0.0)
    return world.reader(index, replace(reader, buffer=buffer))


def _records(world: World, partition: int, first: int) -> list[Record]:
    entries = world.logs[partition].entries
    return [
        Record(offset, 0, None, value(world, partition, offset))
        for offset in range(first, len(entries))
        if entries[offset] != NOTHING
    ]


def value(world: World, partition: int, offset: int) -> bytes:
    """Return the value of a record: when it was written, and its kind."""
    written = world.logs[partition].entries[offset]
    return f"{written}{kind_of(world, partition, offset)}".encode()


def _out_of_range(world: World, index: int, partition: int) -> World:
    reader, log = world.readers[index], world.logs[partition]
    if reader.topic != world.topic:
        return _renew(world, index)
    buffer, tp = copied(reader.buffer), world.partition(partition)
    buffer.begin(tp, log.end, cut=True)
    consumer = machine.offset_reset(reader.consumer, tp, log.end, cut=True)
    cuts = {**reader.cuts, partition: (log.end, log.cuts)}
    seen = replace(reader, buffer=buffer, consumer=consumer, cuts=cuts)
    return world.reader(index, seen)


def _renew(world: World, index: int) -> World:
    """Read a recreated topic from its beginning."""
    reader = world.readers[index]
    buffer, consumer = copied(reader.buffer), reader.consumer
    for partition in consumer.partitions:
        first = world.logs[world.log_of(partition)].start
        buffer.begin(partition, first)
        consumer = machine.offset_reset(consumer, partition, first)
    renewed = replace(reader, buffer=buffer, consumer=consumer, topic=world.topic)
    return world.reader(index, renewed)


def stage(world: World, index: int, topic: str = TOPIC) -> World:
    """Write a file for each table, unless the topic was recreated, or decoding fails."""
    if world.readers[index].topic != world.topic:
        return _renew(world, index)
    reader = world.readers[index]
    buffer = copied(reader.buffer)
    taken = buffer.take_ranges(topic)
    values = {
        Row(world.topic, world.log_of(p), offset, int((value or b"")[:-1])): value
        for p, taken_range in taken.items()
        for records in taken_range.records
        for offset, value in zip(records.offsets, records.values, strict=True)
    }
    rows = frozenset(values)
    ranges = {p.partition: (r.range.first, r.range.next) for p, r in taken.items()}
    try:
        footer, bad = encoded(world, topic, values, ranges)
    except OverflowError:
        return world  # a fault of staging, which is tried again
    staged: list[Staged] = []
    for target in range(world.bounds.targets):
        slot, epoch = reader.consumer.slot, reader.consumer.epoch
        name = f"{slot}-{epoch}-{world.counter}-0a1b2c3d.parquet"
        staged.append(
            Staged(
                topic=topic,
                table=TABLES[target].name,
                topic_id=f"{topic}{world.topic}",
                file=name,
                rows=len(rows),
                bytes=1,
                ranges={p: taken_range.range for p, taken_range in taken.items()},
                slot=reader.consumer.slot,
                epoch=reader.consumer.epoch,
                cut=tuple(p for p, taken_range in taken.items() if taken_range.cut),
            )
        )
        files = {**world.files, name: File(rows, target, bad, footer)}
        world = replace(world, files=files, counter=world.counter + 1)
    consumer = machine.staging_started(reader.consumer, {p: s.range.next for p, s in taken.items()})
    reader = replace(reader, buffer=buffer, consumer=consumer, unannounced=tuple(staged))
    return world.reader(index, reader)


def encoded(
    world: World, topic: str, values: Mapping[Row, bytes | None], ranges: Ranges
) -> tuple[Footer, frozenset[Row]]:
    """Return what a file of these records says of itself, and which of them are bad."""
    footer = Footer(f"{topic}{world.topic}", len(values), ranges, topic=topic)
    if not world.bounds.typed:
        return footer, frozenset()
    decoding = decoder(world)
    bad = _undecodable(decoding, values)
    footer = replace(
        footer,
        columns=decoding.columns,
        bad=len(bad),
        decoded_by=decoding.settings,
        proposed=decoding.proposed,
        deleted=sum(deletes(world, row) for row in values if row not in bad),
        as_table=world.bounds.in_place,
    )
    return footer, bad


def decoder(world: World) -> RaisingDecoder:
    """Return the decoder of the settings of now; it fills what is published of new columns."""
    number, bounds = world.settings, world.bounds
    columns = (*parse_columns(bounds.settings[number]), *world.tables[0].published)
    proposed = parse_row(bounds.proposed[number]) if bounds.proposed else ()
    names = {column.name for column in columns}
    new = tuple(column for column in proposed if column.name not in names)
    return RaisingDecoder(number, columns, new)


def _undecodable(decoder: RaisingDecoder, values: Mapping[Row, bytes | None]) -> frozenset[Row]:
    """Return the records that the product takes for bad ones."""
    none = pa.nulls(len(values))
    _, bad = one_by_one.decode_parts(decoder, pa.array(values.values(), pa.binary()), none, none)
    found = frozenset(r for r, why in zip(values, bad.to_pylist(), strict=True) if why is not None)
    wanted = {row for row, value in values.items() if decoder.is_raising(value)}
    if found != wanted:
        raise InvariantViolation(f"{sorted(found)} are bad, not {sorted(wanted)}")
    return found


def announce(world: World, index: int) -> World:
    """Announce the next staged file; once all are, its rows count as staged."""
    reader = world.readers[index]
    staged, *left = reader.unannounced
    world = replace(world, landing=(*world.landing, staged))
    if left:
        return world.reader(index, replace(reader, unannounced=tuple(left)))
    consumer, _ = machine.file_announced(reader.consumer, staged.ranges)
    cuts = dict(reader.cuts)
    for row in world.files[staged.file].rows:
        log, (first, cut) = world.logs[row.partition], cuts.get(row.partition, (0, -1))
        if row.cut == cut == log.cuts:
            del cuts[row.partition]
            world = world.log(row.partition, replace(log, resumes_at=first))
    return world.reader(index, replace(reader, consumer=consumer, unannounced=(), cuts=cuts))


# --- commands ------------------------------------------------------------------------------------


def start(world: World, index: int, partition: int, offset: int | None) -> World:
    """Let a reader start a partition, or continue it at another offset."""
    command = StartReading(
        term=1,
        revision=world.counter,
        epoch=1,
        offsets={world.partition(partition): offset},
    )
    return _obey(replace(world, counter=world.counter + 1), index, command)


def stop(world: World, index: int, partition: int) -> World:
    """Let a reader stop; the next one begins at the offset of its reply."""
    tp = world.partition(partition)
    command = StopReading(term=1, revision=world.counter, epoch=1, partitions=(tp,))
    world = replace(world, counter=world.counter + 1)
    _, actions = machine.handle_command(world.readers[index].consumer, command, 0)
    replies = [a.message for a in actions if isinstance(a, Reply)]
    next_offsets = {p: o for m in replies for p, o in getattr(m, "next", {}).items()}
    start_offsets = (
        *world.start_offsets[:partition],
        next_offsets[tp],
        *world.start_offsets[partition + 1 :],
    )
    return _obey(replace(world, start_offsets=start_offsets), index, command)


def _obey(world: World, index: int, command: Command) -> World:
    reader = world.readers[index]
    consumer, actions = machine.handle_command(reader.consumer, command, 0)
    buffer, cuts = copied(reader.buffer), dict(reader.cuts)
    for action in actions:
        if isinstance(action, StopFetching):
            buffer.drop(action.partition)
            cuts.pop(world.log_of(action.partition), None)  # it will not be announced
        elif isinstance(action, Fetch):
            offset = action.offset
            if offset is None:
                offset = _begin_offset(world, world.log_of(action.partition))
                consumer, _ = machine.located(consumer, action.partition, offset)
            buffer.begin(action.partition, offset)
    obeyed = replace(reader, consumer=consumer, buffer=buffer, cuts=cuts)
    return world.reader(index, obeyed)


def _begin_offset(world: World, partition: int) -> int:
    """Return the group's committed offset, or else where the group starts by its settings."""
    topic, offset = world.group.get(partition, (-1, 0))
    if topic == world.topic:
        return offset
    log = world.logs[partition]
    return log.end if world.bounds.from_latest else log.start
