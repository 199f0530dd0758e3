"""Writers: the product's state machine, and the service around it."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from tests.model.explore import InvariantViolation, Step

from binwright.consumer.decide.land import landed_offsets, machine
from binwright.consumer.decide.land.append import (
    REREAD_S,
    BatchCommit,
    TableKnowledge,
    knowledge_at_first,
)
from binwright.consumer.decide.land.states import (
    AddColumns,
    AddFiles,
    Append,
    AppendBad,
    AppendRequest,
    AppendRows,
    BadOffsetsFound,
    CheckLease,
    ClaimTable,
    ColumnsRead,
    CommitOffsets,
    CommitStamp,
    Contradicted,
    DeleteFiles,
    DeleteOtherLeases,
    Done,
    Effect,
    FilesFound,
    FindBadOffsets,
    FindLowestBad,
    FindReadable,
    FootersRead,
    HistoryRead,
    KafkaState,
    LandedOffsets,
    Landing,
    LeaseGone,
    Lost,
    LowestBadFound,
    MergeRows,
    NoteDeleted,
    OperationRequest,
    Outcome,
    PublishColumns,
    QueryKafka,
    ReadAnnouncements,
    ReadColumns,
    ReadFooters,
    ReadHistory,
    ReadLandedOffsets,
    Refused,
    Request,
    RereadPartitions,
    WriteLease,
    Writer,
    WriterConfig,
)
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Batch, ColumnsThere, Commit, Footer

from . import backfills, delta, replays
from .delta import topic_number
from .world import TABLES, Appending, Call, DeltaTable, Part, Row, World, WriterProcess, missing

CommitPart = AppendBad | AddFiles | AppendRows | NoteDeleted | MergeRows | CommitStamp
TICK_S = 1.0  # not less than any time-out below
NEVER_S = 1e12


def config(world: World, index: int) -> WriterConfig:
    """Return the configuration of a writer that commits at once and asks Kafka at each tick."""
    bounds = world.bounds
    table = TABLES[world.target_of(index)]
    columns = parse_columns(bounds.columns) if bounds.typed else None
    return WriterConfig(
        table=replace(
            table,
            more_topics=taken(world, index)[1:],
            columns=columns,
            primary_key=("id",) if bounds.keyed else (),
        ),
        writer=f"w{world.counter}",
        from_latest=bounds.from_latest,
        freshness_s=0.0,
        batch_bytes=bounds.batch_bytes,
        gap_s=TICK_S,
        check_s=TICK_S,
        # Bad records are not read again before.
        refused_s=TICK_S if bounds.bad_share == 1 else REREAD_S,
        bad_share=bounds.bad_share,
        fixed=columns if bounds.proposed else None,
        decoding=str(world.settings),
        in_place=bounds.in_place,
        idle_stamp_s=NEVER_S,
        full_stamp_every=bounds.full_stamp_every,
    )


def taken(world: World, index: int) -> tuple[str, ...]:
    """Return the topics that a writer's table takes, by the settings of its process."""
    before = world.bounds.topic_added and index // world.bounds.targets == 0
    return world.topics[:1] if before else world.topics


def grant(world: World, number: int) -> World:
    """Grant the role to a process: it writes all tables of the topic."""
    world = replace(world, grants=world.grants - 1)
    for index in world.process(number):
        writer = Writer(config(world, index))
        known = knowledge_at_first(writer.config) if world.bounds.typed else None
        process = WriterProcess(writer, known=known)
        world = replace(world, counter=world.counter + 1).writer(index, process)
    return world


def named(world: World, index: int) -> str:
    """Return the name of a writer in traces."""
    number, target = divmod(index, world.bounds.targets)
    return f"writer {number}" + (f" of table {target}" if world.bounds.targets > 1 else "")


def steps(world: World, index: int) -> Iterator[Step[World]]:
    """Yield the possible steps of a writer: at once, and after a tick."""
    process = world.writers[index]
    if process is None:
        return
    actor = named(world, index)
    if process.facts is not None:
        yield Step((actor, "gets Kafka's reply"), lambda: _deliver_facts(world, index))
    elif process.call is None:
        now = process.now
        wanted = machine.next_request(process.writer, now)[1]
        if wanted is not None:
            yield Step((actor, *_named(wanted)), lambda: act(world, index, now))
        later = machine.next_request(process.writer, now + TICK_S)[1]
        if later is not None and type(later) is not type(wanted):
            label = (actor, "waits,", *_named(later))
            yield Step(label, lambda: act(world, index, now + TICK_S))
    if world.bounds.late_announcements and _has_unread(world, process):
        yield Step(
            (actor, "reads announcement", process.position), lambda: read_announcement(world, index)
        )


def _named(wanted: Request) -> tuple[object, ...]:
    match wanted:
        case Append(batch=batch, number=number):
            rows = [(s.file, dict(s.ranges)) for s in batch.slices]
            return "appends", rows or "a stamp", f"as {number}"
        case ClaimTable():
            return ("claims",)
        case _:
            return (type(wanted).__name__,)


def act(world: World, index: int, now: float) -> World:
    """Carry out a writer's requests, up to the next one whose outcome may take time."""
    process = world.writers[index]
    assert process is not None
    world = world.writer(index, replace(process, now=now))
    while True:
        process = world.writers[index]
        if process is None:
            return world
        phase = process.writer.phase
        writer, wanted = machine.next_request(process.writer, now)
        world = world.writer(index, replace(process, writer=writer))
        if isinstance(wanted, OperationRequest):
            return replays.take_step(world, index, wanted)
        match wanted:
            case None:
                return world
            case ClaimTable() | Append():
                return _send(world, index, wanted)
            case WriteLease(lease=lease):
                world = replace(world, leases=world.leases | {(world.target_of(index), lease)})
                return deliver_outcome(world, index, Done())
            case DeleteOtherLeases(lease=lease):
                target = world.target_of(index)
                kept = {each for each in world.leases if each[0] != target or each[1] == lease}
                world = replace(world, leases=frozenset(kept))
                return deliver_outcome(world, index, Done())
            case QueryKafka() if isinstance(phase, Landing):
                world = world.writer(
                    index, replace(process, writer=writer, facts=facts(world, index))
                )
                return world if world.bounds.slow_facts else _deliver_facts(world, index)
            case _:
                world = deliver_outcome(world, index, _read(world, index, wanted))
        after = world.writers[index]
        if after is None or isinstance(after.writer.phase, Landing):
            return world


def _send(world: World, index: int, wanted: ClaimTable | Append) -> World:
    process = world.writers[index]
    assert process is not None
    if isinstance(wanted, Append) and process.known is not None:
        return _append(world, index, wanted, process.known)
    call = Call(index, 0, wanted.stamp, target=world.target_of(index))
    if isinstance(wanted, Append):
        call = replace(call, number=wanted.number, lease=wanted.lease, batch=wanted.batch)
    elif world.bounds.typed:
        call = replace(call, part="bad records")  # they are claimed first
    return send_call(world, index, call)


def send_call(world: World, index: int, call: Call) -> World:
    process = world.writers[index]
    assert process is not None
    world = replace(world, calls={**world.calls, world.counter: call}, counter=world.counter + 1)
    return world.writer(index, replace(process, call=world.counter - 1))


# --- appends to a table of decoded values ---------------------------------------------------------


def _append(world: World, index: int, request: Append, known: TableKnowledge) -> World:
    process = world.writers[index]
    assert process is not None
    chain = process.writer.chain
    append = Appending(request, known, chain.committed if chain else {})
    return _go_on(world.writer(index, replace(process, append=append)), index)


def _go_on(world: World, index: int, outcome: Outcome | None = None) -> World:
    """Perform the requests of an append, up to the next one whose outcome may take time."""
    process = world.writers[index]
    assert process is not None
    assert process.append is not None
    append, now = process.append, process.now
    commit = BatchCommit(append.request, append.known, process.writer.config, append.committed)
    wanted: AppendRequest | None = commit.begin()
    outcomes = (*append.outcomes, (outcome, now)) if outcome else append.outcomes
    for before, at in outcomes:
        wanted = commit.apply_outcome(before, at)
    while wanted is not None:
        if isinstance(wanted, CommitPart):
            process = replace(process, append=replace(append, outcomes=outcomes))
            return _send_part(world.writer(index, process), index, append.request, wanted)
        world, outcome = _perform(world, index, append.request, wanted)
        outcomes += ((outcome, now),)
        wanted = commit.apply_outcome(outcome, now)
    assert commit.verdict is not None
    world = world.writer(index, replace(process, append=None, known=commit.known))
    return deliver_outcome(world, index, commit.verdict)


def _send_part(
    world: World,
    index: int,
    request: Append,
    wanted: CommitPart,
) -> World:
    part: Part
    match wanted:
        case AppendBad(batch=batch):
            part = "bad records"
        case AddFiles(batch=batch):
            part = "files"
        case AppendRows(batch=batch):
            part = "rows"
        case NoteDeleted(batch=batch):
            part = "deletions"
        case MergeRows(batch=batch):
            part = "changes"
        case CommitStamp():
            batch, part = Batch(), "stamp"
    target = world.target_of(index)
    call = Call(
        index, request.number, wanted.stamp, part, target=target, lease=wanted.lease, batch=batch
    )
    return send_call(world, index, call)


def _perform(
    world: World, index: int, request: Append, wanted: AppendRequest
) -> tuple[World, Outcome]:
    """Perform a request that takes no time."""
    target = world.target_of(index)
    match wanted:
        case CheckLease(lease=lease):
            # A mutated writer has none.
            there = not lease or (target, lease) in world.leases
            return world, Done() if there else LeaseGone()
        case ReadFooters(files=files):
            footers = {name: footer for name in files if (footer := _footer(world, name))}
            return world, FootersRead(footers, 0)
        case FindReadable(files=names):
            return world, FilesFound([name for name in names if _footer(world, name)])
        case QueryKafka():
            return world, facts(world, index)
        case FindBadOffsets(since=since):
            highest: dict[str | None, dict[TopicPartition, int]] = {}
            for row in sorted(world.tables[target].bad):
                p = world.partition(row.partition)
                if p in since and row.offset >= since[p]:
                    highest.setdefault(f"{p.topic}{row.topic}", {})[p] = row.offset
            return world, BadOffsetsFound(highest)
        case FindLowestBad():
            return world, LowestBadFound(backfills.outermost(world, world.tables[target].bad))
        case ReadColumns() | AddColumns() | PublishColumns():
            table, outcome = _look_at_columns(world.tables[target], wanted)
            return world.table(target, table), outcome
        case _:
            raise AssertionError(f"{wanted} of {request} takes time")


def _look_at_columns(
    table: DeltaTable, wanted: ReadColumns | AddColumns | PublishColumns
) -> tuple[DeltaTable, Outcome]:
    match wanted:
        case ReadColumns():
            added = tuple(column for column in table.columns if column.name in table.added)
            names = frozenset(column.name for column in table.columns)
            return table, ColumnsRead(ColumnsThere(names, added))
        case PublishColumns(columns=columns):
            return replace(table, published=columns), Done()
        case AddColumns(columns=columns, comment=comment):
            after = delta.add_columns(table, columns, new_fields=bool(comment))
            if after is None:
                return table, Refused(f"the table has {table.columns}")
            return after, Done()


def _read(world: World, index: int, wanted: Request) -> Outcome:
    table = world.tables[world.target_of(index)]
    match wanted:
        case ReadHistory(limit=limit):
            commits: tuple[Commit, ...] = table.commits[::-1]
            return HistoryRead(commits[:limit], complete=limit >= len(commits))
        case QueryKafka():
            return facts(world, index)
        case ReadLandedOffsets():
            newest: dict[TopicPartition, int] = {}
            for row in table.landed | table.noted:
                partition = world.partition(row.partition)
                newest[partition] = max(row.offset, newest.get(partition, 0))
            return LandedOffsets(newest, _group(world))
        case _:
            raise AssertionError(f"{wanted} does not read")


def _group(world: World) -> dict[TopicPartition, int]:
    return {
        world.partition(number): offset
        for number, (topic, offset) in world.group.items()
        if topic == world.topic
    }


def facts(world: World, index: int) -> KafkaState:
    """Return what Kafka has of the topics of a writer's table."""
    topic_ids = {topic: f"{topic}{world.topic}" for topic in taken(world, index)}
    bounds = {world.partition(p): (log.start, log.end) for p, log in enumerate(world.logs)}
    bounds = {p: bound for p, bound in bounds.items() if p.topic in topic_ids}
    landing = f"l{world.landing_id}", len(world.landing)
    return KafkaState(topic_ids, bounds, *landing, group=_group(world))


def _deliver_facts(world: World, index: int) -> World:
    process = world.writers[index]
    assert process is not None
    assert process.facts is not None
    return deliver_outcome(world.writer(index, replace(process, facts=None)), index, process.facts)


def deliver_outcome(world: World, index: int, outcome: Outcome) -> World:
    """Deliver an outcome to a writer; if it has lost the table, its process gives up the role."""
    process = world.writers[index]
    assert process is not None
    if process.append is not None:
        return _go_on(world.writer(index, replace(process, call=None)), index, outcome)
    writer, effects = machine.apply_outcome(process.writer, outcome, process.now)
    if world.ordered:
        writer, _ = machine.apply_operation(writer, replays.order_of(world), process.now)
    world = world.writer(index, replace(process, writer=writer, call=None))
    world = _carry_out(world, index, effects)
    ended = isinstance(writer.phase, Lost | Contradicted)
    return world.without_process(index // world.bounds.targets) if ended else world


def _has_unread(world: World, process: WriterProcess) -> bool:
    return process.position is not None and process.position < len(world.landing)


def read_announcement(world: World, index: int) -> World:
    """Let a writer read the next announcement."""
    process = world.writers[index]
    assert process is not None
    assert process.position is not None
    at, staged = process.position, world.landing[process.position]
    process = replace(process, position=at + 1)
    read = [] if staged is None or staged.topic not in taken(world, index) else [(at, staged)]
    writer, effects = machine.apply_announcements(process.writer, read, process.now)
    if not any(isinstance(effect, ReadAnnouncements) for effect in effects):
        writer = machine.apply_read_up_to(writer, at + 1)
    return _carry_out(world.writer(index, replace(process, writer=writer)), index, effects)


def apply_announcements(world: World) -> World:
    """Let every writer read all announcements, unless each is a step of its own."""
    if world.bounds.late_announcements:
        return world
    for index in range(len(world.writers)):
        while (process := world.writers[index]) is not None and _has_unread(world, process):
            world = read_announcement(world, index)
    return world


# --- effects -------------------------------------------------------------------------------------


def _carry_out(world: World, index: int, effects: tuple[Effect, ...]) -> World:
    for effect in effects:
        match effect:
            case ReadAnnouncements(offset=offset):
                process = world.writers[index]
                assert process is not None
                world = world.writer(index, replace(process, position=offset))
            case DeleteFiles(files=files, unproven=unproven):
                kept = {
                    each.file
                    for each in unproven
                    if (footer := _footer(world, each.file)) and not footer.agrees(each)
                }
                world = _delete(world, index, [file for file in files if file not in kept])
            case CommitOffsets(committed=committed):
                world = _commit_offsets(world, index, dict(committed))
            case RereadPartitions(committed=committed):
                wanted = {world.log_of(p): offset for p, offset in committed.items()}
                lowest = {p: min(o, world.reread_from.get(p, o)) for p, o in wanted.items()}
                world = replace(world, reread_from={**world.reread_from, **lowest})
            case _:
                pass
    return world


def _footer(world: World, name: str) -> Footer | None:
    """Return the footer of a file that can be read."""
    file = world.files.get(name)
    return file.footer if file is not None and file.readable else None


def _delete(world: World, index: int, names: Collection[str]) -> World:
    for name in names:
        file = world.files.get(name)
        if file is None or not file.readable:
            continue
        landed = world.tables[file.target].landed
        gone = world.tables[file.target].erased
        unlanded = {r for r in file.rows - landed - gone if _is_wanted(world, index, r)}
        if unlanded:
            raise InvariantViolation(
                f"{name} is to be deleted with {sorted(unlanded)}, which are not in the table"
            )
    return replace(world, files_to_delete=world.files_to_delete.union(names) & world.files.keys())


def _is_wanted(world: World, index: int, row: Row) -> bool:
    """Whether a row must land: not if its topic, or its part of the log, no longer exists.

    A row that retention deleted may be missing in another reader's range. With `latest`, rows
    before the begin of their partition do not land.
    """
    log = world.logs[row.partition]
    if row.topic != world.topic or row.offset < max(log.uncertain_below, log.start):
        return False
    if not world.bounds.from_latest:
        return True
    process = world.writers[index]
    chain = process and process.writer.chain
    table = world.tables[world.target_of(index)]
    begin_offset = table.begin_offset.get((world.topic, row.partition))
    if begin_offset is None and chain:
        begin_offset = chain.committed.get(world.partition(row.partition))
    return row.offset >= (begin_offset or 0)


def _commit_offsets(world: World, index: int, offsets: dict[TopicPartition, int]) -> World:
    process = world.writers[index]
    assert process is not None
    chain = process.writer.chain
    ids = chain.topic_ids if chain else {}
    new = {p: GroupOffset(offset, ids.get(p.topic)) for p, offset in offsets.items()}
    known = {p: o for p, o in process.landed.items() if o.topic_id == ids.get(p.topic)}
    world = world.writer(index, replace(process, landed={**known, **new}))
    together = [world.writers[i] for i in world.process(index // world.bounds.targets)]
    least = landed_offsets.least_landed([w.landed for w in together if w is not None])
    for partition in least.keys() & new.keys():
        offset, topic = least[partition].offset, topic_number(least[partition].topic_id)
        if topic != world.topic:
            continue  # offsets of a topic that no longer exists
        for target in range(world.bounds.targets):
            if lost := missing(world, target, world.log_of(partition), offset):
                raise InvariantViolation(
                    f"{partition} is committed up to {offset}, and table {target} lacks "
                    f"{sorted(lost)}"
                )
        world = replace(world, group={**world.group, world.log_of(partition): (topic, offset)})
    return world
