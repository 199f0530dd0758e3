"""Everything that may happen next: who may do what, and what may go wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tests.model.explore import Label, Step

from binwright.core.ports import Commit
from binwright.core.writer.requests import Outcome, Refused, Unclear

from . import delta, readers, writers
from .world import Log, World, grown

KINDS = frozenset(
    {
        "crash",  # a writer ends without a word; its call goes on
        "twice",  # the role is granted to another, too
        "unclear",  # the answer to a call is lost
        "refused",  # the table does not take a batch
        "move",  # a partition is stopped at one reader and started at the other
        "steal",  # it is started at the other, and the one goes on
        "reader crash",
        "file lost",
        "announcement lost",
        "announced twice",
        "compact",  # a commit that lands nothing
        "history cut",  # the oldest commits are cleaned up
        "made anew",  # the topic
        "landing made anew",  # the landing topic
        "log cut",
        "retention",
    }
)


def steps(world: World) -> Iterator[Step[World]]:
    """Yield every step; where it is a fault, one is left in the budget."""
    for index in range(len(world.writers)):
        yield from writers.steps(world, index)
    yield from _calls(world)
    if world.over:
        yield Step(("files are deleted:", *sorted(world.over)), partial(_delete, world))
    yield from _controller(world)
    for index in range(len(world.readers)):
        yield from readers.steps(world, index)
    if world.produce:
        for number in range(len(world.logs)):
            yield Step(("a record is written to", number), partial(_produce, world, number))
    if world.faults:
        for kind, label, take in _faults(world):
            if kind in world.bounds.kinds:
                yield Step(label, take)


def system_steps(world: World) -> Iterator[Step[World]]:
    """Yield the same, each followed by what needs no time."""
    for step in steps(world):
        yield Step(step.label, lambda step=step: rest(step.take()))  # type: ignore[misc]


def rest(world: World) -> World:
    """Let writers hear what is announced, and forget calls that come to nothing."""
    world = writers.hear_all(world)
    awaited = {w.call for w in world.writers if w is not None}
    calls = {
        name: call
        for name, call in world.calls.items()
        if name in awaited or delta.can_commit(world.table, call)
    }
    return world if len(calls) == len(world.calls) else replace(world, calls=calls)


# --- Spark ---------------------------------------------------------------------------------------


def _calls(world: World) -> Iterator[Step[World]]:
    for name, call in world.calls.items():
        what = f"{call.version >> 24}.{call.version & 0xFFFFFF}"
        if call.began is None:
            yield Step(("Spark begins", what), partial(_begin, world, name))
        else:
            yield Step(("Spark ends", what), partial(_end, world, name))


def _begin(world: World, name: int) -> World:
    call, outcome = delta.begin(world, world.calls[name])
    if outcome is not None:
        return _ended(world, name, outcome)
    assert call is not None
    return replace(world, calls={**world.calls, name: call})


def _end(world: World, name: int) -> World:
    world, outcome = delta.end(world, world.calls[name])
    return _ended(world, name, outcome)


def _ended(world: World, name: int, outcome: Outcome) -> World:
    """Tell the writer, if it still waits for this very call."""
    world = replace(world, calls={n: c for n, c in world.calls.items() if n != name})
    for index, process in enumerate(world.writers):
        if process is not None and process.call == name:
            world = writers.answer(world, index, outcome)
    return world


def _delete(world: World) -> World:
    files = {name: file for name, file in world.files.items() if name not in world.over}
    return replace(world, files=files, over=frozenset())


# --- the controller ------------------------------------------------------------------------------


def _controller(world: World) -> Iterator[Step[World]]:
    if world.grants and not any(world.writers):
        for index in range(len(world.writers)):
            yield Step(("writer", index, "is granted"), partial(writers.grant, world, index))
    for number, owner in enumerate(world.owners):
        if owner is None:
            label = ("partition", number, "is started at", world.known[number])
            yield Step(label, partial(_start, world, number, 0, world.known[number]))
        elif number in world.again and world.rereads:
            label = ("partition", number, "is read again from", world.again[number])
            yield Step(label, partial(_again, world, number, owner))


def _start(world: World, number: int, index: int, offset: int | None) -> World:
    owners = (*world.owners[:number], index, *world.owners[number + 1 :])
    return readers.start(replace(world, owners=owners), index, number, offset)


def _again(world: World, number: int, owner: int) -> World:
    offset = world.again[number]
    again = {p: o for p, o in world.again.items() if p != number}
    world = replace(world, again=again, rereads=world.rereads - 1)
    return readers.start(world, owner, number, offset)


def _produce(world: World, number: int) -> World:
    return replace(world.log(number, grown(world.logs[number], "r")), produce=world.produce - 1)


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
    for index, process in enumerate(world.writers):
        if process is None:
            if world.grants and any(world.writers):
                label = ("writer", index, "is granted, too")
                yield "twice", label, partial(writers.grant, world, index)
            continue
        yield "crash", ("writer", index, "crashes"), partial(world.writer, index, None)
        if process.call is not None:
            label = ("writer", index, "gets no answer")
            yield "unclear", label, partial(writers.answer, world, index, Unclear("no answer"))
            if world.calls[process.call].began is None:
                label = ("writer", index, "is refused")
                yield "refused", label, partial(_ended, world, process.call, Refused("no"))


def _readers_faults(world: World) -> Iterator[Fault]:
    label: Label
    for number, owner in enumerate(world.owners):
        if owner is None:
            continue
        label = ("partition", number, "is moved to reader", 1 - owner)
        yield "move", label, partial(_move, world, number, owner)
        for offset in sorted({0} | {known for known in world.known if known is not None}):
            label = ("partition", number, "is read by reader", 1 - owner, "too, from", offset)
            yield "steal", label, partial(_start, world, number, 1 - owner, offset)
    for index, reader in enumerate(world.readers):
        if reader.consumer.parts or reader.written:
            label = ("reader", index, "crashes")
            yield "reader crash", label, partial(_reader_crash, world, index)


def _move(world: World, number: int, owner: int) -> World:
    world = readers.stop(world, owner, number)
    return _start(world, number, 1 - owner, world.known[number])


def _reader_crash(world: World, index: int) -> World:
    reader = world.readers[index]
    following = {p.partition: o for p, o in reader.consumer.next_offsets().items()}
    owned = [p for p, owner in enumerate(world.owners) if owner == index]
    known = tuple(following.get(p) if p in owned else o for p, o in enumerate(world.known))
    owners = tuple(None if owner == index else owner for owner in world.owners)
    fresh = readers.new_reader(index, world.topic)
    return replace(world.reader(index, fresh), owners=owners, known=known)


def _staging_faults(world: World) -> Iterator[Fault]:
    label: Label
    for name, file in world.files.items():
        if file.readable and any(s is not None and s.file == name for s in world.landing):
            yield "file lost", (name, "is lost"), partial(_lose_file, world, name)
    for at, staged in enumerate(world.landing):
        if staged is not None:
            label = ("the announcement of", staged.file, "is lost")
            landing = (*world.landing[:at], None, *world.landing[at + 1 :])
            yield "announcement lost", label, partial(replace, world, landing=landing)
            label = (staged.file, "is announced again")
            yield "announced twice", label, partial(_announced_again, world, at)


def _announced_again(world: World, at: int) -> World:
    return replace(world, landing=(*world.landing, world.landing[at]))


def _lose_file(world: World, name: str) -> World:
    files = {**world.files, name: replace(world.files[name], readable=False)}
    return replace(world, files=files)


def _table_faults(world: World) -> Iterator[Fault]:
    label: Label
    table = world.table
    compacted = Commit(table.next_version, None)
    after = replace(table, commits=(*table.commits, compacted), next_version=table.next_version + 1)
    yield "compact", ("the table is compacted",), partial(replace, world, table=after)
    for kept in range(1, len(table.commits)):
        cut = replace(table, commits=table.commits[-kept:])
        label = ("all but", kept, "commits are cleaned up")
        yield "history cut", label, partial(replace, world, table=cut)


def _topics_faults(world: World) -> Iterator[Fault]:
    label: Label
    yield "made anew", ("the topic is made anew",), partial(_made_anew, world)
    if world.landing:
        label = ("the landing topic is made anew",)
        yield "landing made anew", label, partial(_landing_made_anew, world)
    for number, log in enumerate(world.logs):
        for end in range(log.start, log.end):
            label = ("log", number, "is cut to", end)
            yield "log cut", label, partial(_cut, world, number, end)
        if log.start < log.end:
            label = ("log", number, "begins at", log.start + 1)
            later = replace(log, start=log.start + 1)
            yield "retention", label, partial(world.log, number, later)


def _made_anew(world: World) -> World:
    return replace(world, topic=world.topic + 1, logs=first_logs(world.bounds.logs))


def first_logs(kinds: tuple[str, ...]) -> tuple[Log, ...]:
    """Return logs with what is written before all else."""
    logs = []
    for kind in kinds:
        log = Log(())
        for entry in kind:
            log = grown(log, entry)
        logs.append(log)
    return tuple(logs)


def _landing_made_anew(world: World) -> World:
    """Writers go on where they are, in the new one, until they are told."""
    return replace(world, landing=(), landing_id=world.landing_id + 1)


def _cut(world: World, number: int, end: int) -> World:
    log = world.logs[number]
    cut = replace(
        log,
        entries=log.entries[:end],
        cuts=log.cuts + 1,
        doubtful=max(log.doubtful, log.end),
        goes_on_at=None,
    )
    return world.log(number, cut)
