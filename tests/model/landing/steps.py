"""The possible steps of a world, and the possible faults."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tests.model.explore import Label, Step

from binwright.consumer.decide.land.states import Outcome, Refused, Unclear
from binwright.protocol.landing import OffsetRange, Staged
from binwright.tables.ports import Commit, NotInPlace

from . import delta, readers, replays, writers
from .world import Call, Log, World, append_entry

PROCESSES = 2  # that may have the role of the writer
APPENDED = NotInPlace("no", of_table=False)
KINDS = frozenset(
    {
        "crash",  # a writer ends; its call continues
        "twice",  # the role is granted to a second process
        "unclear",  # the reply to a call is lost
        "refused",  # the table rejects a batch
        "not in place",  # its files cannot be committed as they are
        "move",  # a partition is stopped at one reader and started at the other
        "steal",  # it is started at the other reader without being stopped
        "reader crash",
        "file lost",
        "announcement lost",
        "announced twice",
        "compact",  # a commit without rows
        "altered",  # a person commits metadata
        "lease lost",  # a lease is deleted by something else
        "history cut",  # the oldest commits are cleaned up
        "recreated",  # the topic
        "landing recreated",  # the landing topic
        "log cut",
        "retention",
        "settings",  # by which values are decoded
        "forged",  # a file is announced as one of more rows than it has
    }
)


def steps(world: World) -> Iterator[Step[World]]:
    """Yield every possible step, with faults as long as their number is not used up."""
    for index in range(len(world.writers)):
        yield from writers.steps(world, index)
    yield from _calls(world)
    if world.files_to_delete:
        yield Step(("files are deleted:", *sorted(world.files_to_delete)), partial(_delete, world))
    yield from _controller(world)
    for index in range(len(world.readers)):
        yield from readers.steps(world, index)
    bounds = world.bounds
    if (bounds.replay or bounds.erase or bounds.backfill) and not world.ordered:
        what = "a back-fill" if bounds.backfill else "an erasure" if bounds.erase else "a replay"
        yield Step((what, "is ordered"), partial(replays.order, world))
    if world.produce:
        for number in range(len(world.logs)):
            yield Step(("a record is written to", number), partial(_produce, world, number))
    if world.faults:
        for kind, label, successor in _faults(world):
            if kind in world.bounds.kinds:
                yield Step(label, successor)


def system_steps(world: World) -> Iterator[Step[World]]:
    """Yield the same steps, each followed by those that need no time."""
    for step in steps(world):
        yield Step(step.label, lambda step=step: run_immediate_steps(step.successor()))  # type: ignore[misc]


def run_immediate_steps(world: World) -> World:
    """Let writers read announcements, and drop calls that can no longer matter."""
    world = writers.apply_announcements(world)
    awaited = {w.call for w in world.writers if w is not None}
    calls = {
        name: call
        for name, call in world.calls.items()
        if name in awaited or delta.can_commit(world, call)
    }
    return world if len(calls) == len(world.calls) else replace(world, calls=calls)


# --- Spark ---------------------------------------------------------------------------------------


def _calls(world: World) -> Iterator[Step[World]]:
    for name, call in world.calls.items():
        what = f"{call.by}.{call.number}" + ("" if call.part == "all" else f" {call.part}")
        if call.snapshot is None:
            yield Step(("Spark begins", what), partial(_begin, world, name))
        elif call.batch is not None and call.rows is None:
            yield Step(("Spark reads", what), partial(_read, world, name))
        else:
            yield Step(("Spark ends", what), partial(_end, world, name))


def _begin(world: World, name: int) -> World:
    return replace(world, calls={**world.calls, name: delta.begin(world, world.calls[name])})


def _read(world: World, name: int) -> World:
    call, outcome = delta.read(world, world.calls[name])
    if outcome is not None:
        return _ended(world, name, outcome)
    return replace(world, calls={**world.calls, name: call})


def _end(world: World, name: int) -> World:
    world, outcome = delta.end(world, world.calls[name])
    if not isinstance(outcome, Call):
        return _ended(world, name, outcome)
    # Its writer sends what follows, if it is there and waits.
    waits = any(process is not None and process.call == name for process in world.writers)
    calls = {n: c for n, c in world.calls.items() if n != name}
    return replace(world, calls={**calls, name: outcome} if waits else calls)


def _ended(world: World, name: int, outcome: Outcome) -> World:
    """Deliver the outcome to the writer that waits for this call, if one does."""
    world = replace(world, calls={n: c for n, c in world.calls.items() if n != name})
    for index, process in enumerate(world.writers):
        if process is not None and process.call == name:
            world = writers.deliver_outcome(world, index, outcome)
    return world


def _delete(world: World) -> World:
    files = {name: file for name, file in world.files.items() if name not in world.files_to_delete}
    return replace(world, files=files, files_to_delete=frozenset())


# --- the controller ------------------------------------------------------------------------------


def _controller(world: World) -> Iterator[Step[World]]:
    if world.grants and not any(world.writers):
        for number in range(PROCESSES):
            yield Step(("writer", number, "is granted"), partial(writers.grant, world, number))
    for number, owner in enumerate(world.owners):
        if owner is None:
            label = ("partition", number, "is started at", world.start_offsets[number])
            yield Step(label, partial(_start, world, number, 0, world.start_offsets[number]))
        elif number in world.reread_from and world.rereads:
            label = ("partition", number, "is read again from", world.reread_from[number])
            yield Step(label, partial(_reread, world, number, owner))


def _start(world: World, number: int, index: int, offset: int | None) -> World:
    owners = (*world.owners[:number], index, *world.owners[number + 1 :])
    return readers.start(replace(world, owners=owners), index, number, offset)


def _reread(world: World, number: int, owner: int) -> World:
    offset = world.reread_from[number]
    reread_from = {p: o for p, o in world.reread_from.items() if p != number}
    world = replace(world, reread_from=reread_from, rereads=world.rereads - 1)
    position = world.readers[owner].consumer.partitions[world.partition(number)].next
    if position is None or position <= offset:
        return world  # it will get there
    return readers.start(world, owner, number, offset)


def _produce(world: World, number: int) -> World:
    return replace(
        world.log(number, append_entry(world.logs[number], "r")), produce=world.produce - 1
    )


# --- faults --------------------------------------------------------------------------------------

Fault = tuple[str, Label, Callable[[], World]]


def _faults(world: World) -> Iterator[Fault]:
    world = replace(world, faults=world.faults - 1)
    yield from _writers_faults(world)
    yield from _readers_faults(world)
    yield from _staging_faults(world)
    yield from _table_faults(world)
    yield from _topics_faults(world)


def _writers_faults(world: World) -> Iterator[Fault]:
    label: Label
    for number in range(PROCESSES):
        if any(world.writers[index] is not None for index in world.process(number)):
            yield "crash", ("writer", number, "crashes"), partial(world.without_process, number)
        elif world.grants and any(world.writers):
            label = ("writer", number, "is granted, too")
            yield "twice", label, partial(writers.grant, world, number)
    for index, process in enumerate(world.writers):
        if process is not None and process.call is not None:
            actor = writers.named(world, index)
            label = (actor, "gets no reply")
            yield (
                "unclear",
                label,
                partial(writers.deliver_outcome, world, index, Unclear("no reply")),
            )
            if world.calls[process.call].snapshot is None:
                label = (actor, "is refused")
                yield "refused", label, partial(_ended, world, process.call, Refused("no"))
                if world.calls[process.call].part == "files":
                    label = (actor, "cannot land in place")
                    yield "not in place", label, partial(_ended, world, process.call, APPENDED)


def _readers_faults(world: World) -> Iterator[Fault]:
    label: Label
    for number, owner in enumerate(world.owners):
        if owner is None:
            continue
        label = ("partition", number, "is moved to reader", 1 - owner)
        yield "move", label, partial(_move, world, number, owner)
        for offset in sorted(
            {0} | {offset for offset in world.start_offsets if offset is not None}
        ):
            label = ("partition", number, "is read by reader", 1 - owner, "too, from", offset)
            yield "steal", label, partial(_start, world, number, 1 - owner, offset)
    for index, reader in enumerate(world.readers):
        if reader.consumer.partitions or reader.unannounced:
            label = ("reader", index, "crashes")
            yield "reader crash", label, partial(_reader_crash, world, index)


def _move(world: World, number: int, owner: int) -> World:
    world = readers.stop(world, owner, number)
    return _start(world, number, 1 - owner, world.start_offsets[number])


def _reader_crash(world: World, index: int) -> World:
    reader = world.readers[index]
    next_offsets = {world.log_of(p): o for p, o in reader.consumer.next_offsets().items()}
    owned = [p for p, owner in enumerate(world.owners) if owner == index]
    start_offsets = tuple(
        next_offsets.get(p) if p in owned else o for p, o in enumerate(world.start_offsets)
    )
    owners = tuple(None if owner == index else owner for owner in world.owners)
    fresh = readers.new_reader(index, world.topic)
    return replace(world.reader(index, fresh), owners=owners, start_offsets=start_offsets)


def _staging_faults(world: World) -> Iterator[Fault]:
    label: Label
    for name, file in world.files.items():
        if file.readable and any(s is not None and s.file == name for s in world.landing):
            yield "file lost", (name, "is lost"), partial(_lose_file, world, name)
    for reader in world.readers:
        for written in reader.unannounced:
            label = (written.file, "is announced as what it is not")
            yield "forged", label, partial(_forged, world, written)
    for at, staged in enumerate(world.landing):
        if staged is not None:
            label = ("the announcement of", staged.file, "is lost")
            landing = (*world.landing[:at], None, *world.landing[at + 1 :])
            yield "announcement lost", label, partial(replace, world, landing=landing)
            label = (staged.file, "is announced again")
            yield "announced twice", label, partial(_announced_again, world, at)


def _forged(world: World, staged: Staged) -> World:
    """Announce a file that is not announced yet as one that goes to the ends of its logs."""
    ranges = {
        p: OffsetRange(r.first, world.logs[world.log_of(p)].end) for p, r in staged.ranges.items()
    }
    if ranges == staged.ranges:
        return world
    rows = sum(r.next - r.first for r in ranges.values())
    forged = replace(staged, ranges=ranges, rows=rows)
    return replace(world, landing=(*world.landing, forged))


def _announced_again(world: World, at: int) -> World:
    return replace(world, landing=(*world.landing, world.landing[at]))


def _lose_file(world: World, name: str) -> World:
    files = {**world.files, name: replace(world.files[name], readable=False)}
    return replace(world, files=files)


def _table_faults(world: World) -> Iterator[Fault]:
    label: Label
    for lease in sorted(world.leases):
        label = (lease[1], "is lost")
        yield "lease lost", label, partial(replace, world, leases=world.leases - {lease})
    for target, table in enumerate(world.tables):
        what = "the table" if world.bounds.targets == 1 else f"table {target}"
        compacted = (*table.commits, Commit(table.next_version, None))
        after = replace(table, commits=compacted, next_version=table.next_version + 1)
        yield "compact", (what, "is compacted"), partial(world.table, target, after)
        altered = delta.with_metadata(table, None)
        yield "altered", (what, "is altered"), partial(world.table, target, altered)
        for kept in range(1, len(table.commits)):
            cut = replace(table, commits=table.commits[-kept:])
            label = ("all but", kept, "commits of", what, "are cleaned up")
            yield "history cut", label, partial(world.table, target, cut)


def _topics_faults(world: World) -> Iterator[Fault]:
    label: Label
    if (settings := world.settings + 1) < len(world.bounds.settings):
        label = ("the settings change to", settings)
        yield "settings", label, partial(replace, world, settings=settings)
    yield "recreated", ("the topic is recreated",), partial(_recreate_topic, world)
    if world.landing:
        label = ("the landing topic is recreated",)
        yield "landing recreated", label, partial(_recreate_landing, world)
    for number, log in enumerate(world.logs):
        for end in range(log.start, log.end):
            label = ("log", number, "is cut to", end)
            yield "log cut", label, partial(_cut, world, number, end)
        if log.start < log.end:
            label = ("log", number, "begins at", log.start + 1)
            later = replace(log, start=log.start + 1)
            yield "retention", label, partial(world.log, number, later)


def _recreate_topic(world: World) -> World:
    return replace(world, topic=world.topic + 1, logs=first_logs(world.bounds.logs))


def first_logs(kinds: tuple[str, ...]) -> tuple[Log, ...]:
    """Return logs with their initial records."""
    logs = []
    for kind in kinds:
        log = Log(())
        for entry in kind:
            log = append_entry(log, entry)
        logs.append(log)
    return tuple(logs)


def _recreate_landing(world: World) -> World:
    """Recreate the landing topic; writers keep their positions until they ask Kafka."""
    return replace(world, landing=(), landing_id=world.landing_id + 1)


def _cut(world: World, number: int, end: int) -> World:
    log = world.logs[number]
    cut = replace(
        log,
        entries=log.entries[:end],
        cuts=log.cuts + 1,
        uncertain_below=max(log.uncertain_below, log.end),
        resumes_at=None,
    )
    return world.log(number, cut)
