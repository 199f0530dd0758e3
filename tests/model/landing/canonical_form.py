"""The canonical form of a world: names are numbered as they are met, times compared with now."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.model.explore import Plain

from binwright.consumer.decide.land import backfills
from binwright.consumer.decide.land.chain import Chain
from binwright.consumer.decide.land.states import (
    BadOffsetsFound,
    Claiming,
    EarlierPortion,
    InFlightCommit,
    Landing,
    Outcome,
    Portion,
    Resolving,
)
from binwright.protocol.landing import Staged
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import is_portion
from binwright.tables.columns import columns_text
from binwright.tables.operations import Operation
from binwright.tables.ports import Batch, CutFiles, PartitionOffsets

from .delta import metadata_commits, parse_stamp
from .world import Call, DeltaTable, File, ReaderProcess, Row, World, WriterProcess
from .writers import TICK_S


def canonical(world: World) -> Plain:
    """Return the canonical form."""
    return _Names(world).world(world)


def _operation(of: Operation | None) -> Plain:
    if of is None:
        return ()
    places = _sorted(of.unsettled), _sorted(of.ranges), _sorted(of.given_up)
    return of.state, tuple(of.after or ()), places, bool(of.fault)


def _sorted(found: Mapping[Any, object]) -> Plain:
    return tuple(sorted((_plain(key), value) for key, value in found.items()))


def _plain(key: Any) -> Plain:
    return tuple(key) if isinstance(key, TopicPartition) else key


def _rows(rows: Iterable[Row]) -> Plain:
    return tuple(sorted(map(tuple, rows)))


class _Names:
    def __init__(self, world: World) -> None:
        self.files: dict[str, int] = {}
        self.writers: dict[str, int] = {}
        self.portions = {
            name: (_rows(file.rows), _rows(file.bad), file.footer and file.footer.decoded_by)
            for name, file in world.files.items()
            if is_portion(name)
        }
        for staged in world.landing:
            if staged is not None:
                self.files.setdefault(staged.file, len(self.files))
        for reader in world.readers:
            for staged in reader.unannounced:
                self.files.setdefault(staged.file, len(self.files))

    def name(self, writer: str) -> int:
        return self.writers.setdefault(writer, len(self.writers))

    def world(self, world: World) -> Plain:
        return (
            tuple(map(self.table, world.tables)),
            tuple(sorted((target, self.lease(lease)) for target, lease in world.leases)),
            tuple(self.writer(w, world) for w in world.writers),
            tuple(sorted(self.call(n, c, world) for n, c in world.calls.items())),
            tuple(
                (log.entries, log.start, log.uncertain_below, log.cuts, log.resumes_at)
                for log in world.logs
            ),
            tuple(s and self.staged(s, world) for s in world.landing),
            tuple(self.reader(r, world) for r in world.readers),
            (world.topic, world.landing_id, world.grants, world.faults),
            (
                world.settings,
                world.produce,
                world.rereads,
                tuple(sorted(map(self.file, world.files_to_delete), key=repr)),
            ),
            (tuple(-1 if o is None else o for o in world.owners)),
            (tuple(-1 if o is None else o for o in world.start_offsets)),
            _sorted(world.reread_from),
            _sorted(world.group),
            world.ordered,
            _rows(world.meant),
        )

    def table(self, table: DeltaTable) -> Plain:
        commits = tuple(c.metadata and self.stamp(c.metadata) for c in table.commits)
        begins = _sorted({t * 100 + p: o for (t, p), o in table.begin_offset.items()})
        columns = columns_text(table.columns), tuple(sorted(table.added))
        moved = _rows(table.moved)
        moved = moved, _rows(table.noted), _rows(table.erased)
        moved = *moved, _rows(filter(None, [table.row])), _rows(table.deletions)
        rows = _rows(table.landed), _rows(table.bad), moved, columns, columns_text(table.published)
        return (commits, table.commits[0].version == 0), rows, begins

    def stamp(self, text: str) -> Plain:
        s = parse_stamp(text)
        where = (_sorted(s.topic_ids), s.landing_id, s.needed_from)
        return (
            self.name(s.writer),
            s.sequence,
            where,
            _sorted(s.committed),
            _sorted(s.cuts),
            self.cut_files(s.cut_files),
            s.full,
            _operation(s.operation),
        )

    def cut_files(self, files: CutFiles) -> Plain:
        return tuple((*p, *map(self.file, names)) for p, names in sorted(files.items()))

    def lease(self, name: str) -> int:
        """Return the number of the writer that the lease is of."""
        return self.name(name.removeprefix("lease-").removesuffix(".parquet")) if name else -1

    def batch(self, batch: Batch) -> Plain:
        slices = tuple((self.file(s.file), _sorted(s.ranges), s.whole) for s in batch.slices)
        return slices, batch.landed_in_part

    def file(self, name: str) -> Plain:
        return self.portions.get(name) or self.files.get(name, -1)

    def call(self, name: int, call: Call, world: World) -> Plain:
        awaited = tuple(w is not None and w.call == name for w in world.writers)
        snapshot = call.snapshot
        began = -1 if snapshot is None else int(snapshot == metadata_commits(world, call))
        batch = self.batch(call.batch) if call.batch else ()
        rows = () if call.rows is None else (_rows(call.rows),)
        what = (
            call.target,
            call.batch is None,
            call.part,
            self.lease(call.lease),
            call.stamp and self.stamp(call.stamp),
        )
        return awaited, what, batch, began, rows

    def staged(self, staged: Staged, world: World) -> Plain:
        file: File | None = world.files.get(staged.file)
        rows: Plain = 0
        if file is not None and file.readable:
            settings = file.footer and file.footer.decoded_by
            columns = columns_text((file.footer and file.footer.columns) or ())
            rows = _rows(file.rows), _rows(file.bad), settings, columns
        ranges = tuple((*p, *r) for p, r in sorted(staged.ranges.items()))
        cut = tuple(map(tuple, staged.cut))
        return self.file(staged.file), staged.target, staged.topic_id, ranges, cut, rows

    def writer(self, process: WriterProcess | None, world: World) -> Plain:
        if process is None:
            return 0
        name, now = self.name(process.writer.name), process.now
        own: Plain
        match process.writer.phase:
            case Claiming(step=step):
                own = ("claiming", step.value, _kept(process))
            case Resolving():
                own = ("resolving",)
            case Landing() as phase:
                own = ("landing", *self.landing(phase, now, world))
            case phase:
                own = (type(phase).__name__,)
        facts = process.facts
        asked = getattr(process.writer.phase, "asking_from", 0)
        plain_facts = facts and (
            _sorted(facts.topic_ids),
            _sorted(facts.bounds),
            facts.landing_id,
            asked,
        )
        position = -1 if process.position is None else process.position
        landed = [(*p, o.offset, o.topic_id) for p, o in process.landed.items()]
        kept = world.bounds.targets > 1 and tuple(sorted(landed))
        typed = self.typed(process, world), _rows(process.removed)
        return name, own, plain_facts, position, kept, typed

    def typed(self, process: WriterProcess, world: World) -> Plain:
        """Return what a writer knows of a table of decoded values, and how far its append is."""
        if (known := process.known) is None:
            return 0
        ends = known.bad_ends
        outcomes = process.append.outcomes if process.append else ()
        return (
            world.bounds.bad_share < 1 and known.share.counts,
            tuple(sorted(columns_text(columns or ()) for columns in known.taken)),
            ends and (self.lease(ends.lease), _sorted(ends.since), self.offsets(ends.highest)),
            known.lowest_bad
            and (self.lease(known.lowest_bad.lease), _sorted(known.lowest_bad.offsets)),
            tuple(sorted(known.read_again_at)),
            known.grown and tuple(sorted(str(column) for column in known.grown.proposed)),
            tuple(sorted(known.unaddable)),
            known.appending and process.now < known.appending.until,
            process.writer.config.decoding,
            tuple(self.outcome(outcome) for outcome, _ in outcomes),
        )

    def offsets(self, of_ids: Mapping[str | None, PartitionOffsets]) -> Plain:
        return tuple((topic, _sorted(offsets)) for topic, offsets in sorted(of_ids.items()))

    def outcome(self, outcome: Outcome) -> Plain:
        found = self.offsets(outcome.highest) if isinstance(outcome, BadOffsetsFound) else ()
        return type(outcome).__name__, found

    def landing(self, phase: Landing, now: float, world: World) -> Plain:
        reread_from = tuple(
            (*p, o, now - at >= TICK_S) for p, (o, at) in sorted(phase.reread_requests.items())
        )
        return (
            phase.sequence,
            phase.landing_id,
            self.chain(phase.chain, now, world),
            phase.flight and self.flight(phase.flight),
            (phase.stamp_due, phase.since_full, bool(phase.fault)),
            (_sorted(phase.doubted), phase.doubted_from if phase.doubted else 0),
            (_sorted(phase.undecided), phase.undecided_until if backfills.waits(phase) else 0),
            reread_from,
            _sorted(phase.behind),
            (now - phase.checked_at >= TICK_S, now >= phase.retry_at),
            (_operation(phase.operation), self.portion(phase.portion), now >= phase.step_at),
            (phase.described, _sorted({p: now >= at for p, (_, at) in phase.failing.items()})),
            (phase.span, phase.turn and tuple(phase.turn)),
            type(phase.asked).__name__,
            phase.erasure
            and (
                None if phase.erasure.begun is None else _sorted(phase.erasure.begun),
                phase.erasure.announced,
                phase.erasure.noted is not None,
            ),
        )

    def portion(self, portion: Portion | EarlierPortion | None) -> Plain:
        if not isinstance(portion, EarlierPortion):
            return portion is not None
        files = tuple(self.file(part.file) for part in portion.slices)
        return tuple(portion.partition), portion.first, files

    def flight(self, flight: InFlightCommit) -> Plain:
        stamp = self.stamp(flight.stamp.encode())
        return self.batch(flight.batch), stamp, _sorted(flight.after.committed)

    def chain(self, chain: Chain, now: float, world: World) -> Plain:
        pending = tuple(
            (a.offset, self.staged(a.staged, world), now - a.seen_at >= TICK_S)
            for a in chain.pending
        )
        committed, cuts = _sorted(chain.committed), _sorted(chain.cuts)
        files = self.cut_files(chain.cut_files)
        return _sorted(chain.topic_ids), committed, cuts, files, pending, chain.next_announcement

    def reader(self, reader: ReaderProcess, world: World) -> Plain:
        one = reader.consumer
        parts = tuple((*p, part.next) for p, part in sorted(one.partitions.items()))
        buffer = tuple(
            (
                *p,
                r.begin,
                r.next,
                tuple(pair for x in r.records for pair in zip(x.offsets, x.values, strict=True)),
                r.cut,
            )
            for p, r in sorted(reader.buffer._rows.items())
        )
        unannounced = tuple(self.staged(staged, world) for staged in reader.unannounced)
        staging = tuple(
            (*p, end, _same(one.partitions, p, revision))
            for p, (end, revision) in sorted(one.staging.items())
        )
        return reader.topic, parts, buffer, unannounced, staging, _sorted(reader.cuts)


def _same(parts: Mapping[TopicPartition, object], p: TopicPartition, revision: int) -> bool:
    return p in parts and getattr(parts[p], "revision", None) == revision


def _kept(process: WriterProcess) -> Plain:
    """Return what a mutated phase keeps of the landing phase before or after it."""
    kept = getattr(process.writer.phase, "kept", None)
    return kept and _sorted(kept.chain.committed)
