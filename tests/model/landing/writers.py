"""Writers: the product's own machine, and what the shell does for it."""

from collections.abc import Iterator
from dataclasses import replace

from tests.model.explore import Broken, Step

from binwright.core.ports import Commit
from binwright.core.writer import machine
from binwright.core.writer.landing import Landing
from binwright.core.writer.machine import Lost, Writer
from binwright.core.writer.requests import (
    Append,
    AskKafka,
    Claim,
    Delete,
    Effect,
    Facts,
    Fence,
    Offsets,
    Outcome,
    ReadAgain,
    ReadAnnouncements,
    ReadHistory,
    ReadRows,
    Request,
    Rows,
    Told,
    WriterRules,
)

from .delta import topic_number
from .world import TABLE, TOPIC, Call, Row, World, WriterProcess, missing

TICK_S = 1.0  # more than any patience below
NEVER_S = 1e12


def rules(world: World) -> WriterRules:
    """Return the rules of the next writer: it commits at once, and asks whenever time passes."""
    bounds = world.bounds
    return WriterRules(
        table=TABLE,
        writer=f"w{world.counter}",
        from_latest=bounds.from_latest,
        freshness_s=0.0,
        batch_bytes=bounds.batch_bytes,
        gap_s=TICK_S,
        check_s=TICK_S,
        refused_s=TICK_S,
        idle_stamp_s=NEVER_S,
        full_stamp_every=bounds.full_stamp_every,
    )


def grant(world: World, index: int) -> World:
    """Give the role to a process."""
    process = WriterProcess(Writer(rules(world)))
    world = replace(world, counter=world.counter + 1, grants=world.grants - 1)
    return world.writer(index, process)


def steps(world: World, index: int) -> Iterator[Step[World]]:
    """Yield what a writer may do next: at once, and after some time."""
    process = world.writers[index]
    if process is None:
        return
    who = f"writer {index}"
    if process.facts is not None:
        yield Step((who, "hears from Kafka"), lambda: _informed(world, index))
    elif process.call is None:
        now = process.now
        wanted = machine.request(process.writer, now)[1]
        if wanted is not None:
            yield Step((who, *_named(wanted)), lambda: act(world, index, now))
        later = machine.request(process.writer, now + TICK_S)[1]
        if later is not None and type(later) is not type(wanted):
            label = (who, "waits,", *_named(later))
            yield Step(label, lambda: act(world, index, now + TICK_S))
    if world.bounds.late and _unheard(world, process):
        yield Step((who, "hears", process.position), lambda: hear(world, index))


def _named(wanted: Request) -> tuple[object, ...]:
    match wanted:
        case Append(batch=batch, version=version):
            rows = [(s.file, dict(s.ranges)) for s in batch.slices]
            return "appends", rows or "a stamp", f"as {version >> 24}.{version & 0xFFFFFF}"
        case Claim(version=version):
            return ("claims", version >> 24)
        case _:
            return (type(wanted).__name__,)


def act(world: World, index: int, now: float) -> World:
    """Let a writer do what it wants, up to the next call that may take long."""
    process = world.writers[index]
    assert process is not None
    world = world.writer(index, replace(process, now=now))
    while True:
        process = world.writers[index]
        if process is None:
            return world
        phase = process.writer.phase
        writer, wanted = machine.request(process.writer, now)
        world = world.writer(index, replace(process, writer=writer))
        match wanted:
            case None:
                return world
            case Claim() | Append():
                return _send(world, index, wanted)
            case AskKafka() if isinstance(phase, Landing):
                world = world.writer(index, replace(process, writer=writer, facts=_facts(world)))
                return world if world.bounds.slow_facts else _informed(world, index)
            case _:
                world = answer(world, index, _read(world, wanted))
        after = world.writers[index]
        if after is None or isinstance(after.writer.phase, Landing):
            return world


def _send(world: World, index: int, wanted: Claim | Append) -> World:
    process = world.writers[index]
    assert process is not None
    batch = wanted.batch if isinstance(wanted, Append) else None
    call = Call(wanted.version, wanted.stamp, batch)
    world = replace(world, calls={**world.calls, world.counter: call}, counter=world.counter + 1)
    return world.writer(index, replace(process, call=world.counter - 1))


def _read(world: World, wanted: Request) -> Outcome:
    match wanted:
        case ReadHistory(limit=limit):
            commits: tuple[Commit, ...] = world.table.commits[::-1]
            return Told(commits[:limit], complete=limit >= len(commits))
        case AskKafka():
            return _facts(world)
        case ReadRows():
            newest: dict[int, int] = {}
            for row in world.table.landed:
                newest[row.partition] = max(row.offset, newest.get(row.partition, 0))
            group = {p: o for p, (topic, o) in world.group.items() if topic == world.topic}
            return Rows(newest, group)
        case Claim() | Append() | Fence():
            raise AssertionError(f"{wanted} is no question")


def _facts(world: World) -> Facts:
    bounds = {p: (log.start, log.end) for p, log in enumerate(world.logs)}
    return Facts(f"t{world.topic}", bounds, f"l{world.landing_id}", len(world.landing))


def _informed(world: World, index: int) -> World:
    process = world.writers[index]
    assert process is not None
    assert process.facts is not None
    return answer(world.writer(index, replace(process, facts=None)), index, process.facts)


def answer(world: World, index: int, outcome: Outcome) -> World:
    """Hand an outcome to a writer; one that has lost the role ends."""
    process = world.writers[index]
    assert process is not None
    writer, effects = machine.answered(process.writer, outcome, process.now)
    world = world.writer(index, replace(process, writer=writer, call=None))
    world = _carry_out(world, index, effects)
    return world.writer(index, None) if isinstance(writer.phase, Lost) else world


def _unheard(world: World, process: WriterProcess) -> bool:
    return process.position is not None and process.position < len(world.landing)


def hear(world: World, index: int) -> World:
    """Let a writer take the next announcement."""
    process = world.writers[index]
    assert process is not None
    assert process.position is not None
    at, staged = process.position, world.landing[process.position]
    process = replace(process, position=at + 1)
    if staged is None:
        return world.writer(index, process)
    writer, effects = machine.heard(process.writer, at, staged, process.now)
    return _carry_out(world.writer(index, replace(process, writer=writer)), index, effects)


def hear_all(world: World) -> World:
    """Let every writer take what is announced, unless each is to be a step of its own."""
    if world.bounds.late:
        return world
    for index in range(len(world.writers)):
        while (process := world.writers[index]) is not None and _unheard(world, process):
            world = hear(world, index)
    return world


# --- effects -------------------------------------------------------------------------------------


def _carry_out(world: World, index: int, effects: tuple[Effect, ...]) -> World:
    for effect in effects:
        match effect:
            case ReadAnnouncements(offset=offset):
                process = world.writers[index]
                assert process is not None
                world = world.writer(index, replace(process, position=offset))
            case Delete(files=files):
                world = _delete(world, index, files)
            case Offsets(committed=committed):
                world = _tell_kafka(world, index, dict(committed))
            case ReadAgain(committed=committed):
                world = replace(world, again={**world.again, **committed})
            case _:
                pass
    return world


def _delete(world: World, index: int, names: tuple[str, ...]) -> World:
    for name in names:
        file = world.files.get(name)
        if file is None or not file.readable:
            continue
        unlanded = {r for r in file.rows - world.table.landed if _is_wanted(world, index, r)}
        if unlanded:
            raise Broken(
                f"{name} is to be deleted with {sorted(unlanded)}, which are not in the table"
            )
    return replace(world, over=world.over.union(names) & world.files.keys())


def _is_wanted(world: World, index: int, row: Row) -> bool:
    """Return whether a row is to land: it is not if its topic, or its part of the log, is gone.

    One that retention took may be missing in another reader's range. What is before the begin of
    its partition, which only `latest` puts behind a row, is not wanted either.
    """
    log = world.logs[row.partition]
    if row.topic != world.topic or row.offset < max(log.doubtful, log.start):
        return False
    if not world.bounds.from_latest:
        return True
    process = world.writers[index]
    chain = process and process.writer.chain
    begun = world.table.begun.get((world.topic, row.partition))
    if begun is None and chain:
        begun = chain.committed.get(row.partition)
    return row.offset >= (begun or 0)


def _tell_kafka(world: World, index: int, offsets: dict[int, int]) -> World:
    process = world.writers[index]
    assert process is not None
    chain = process.writer.chain
    topic = topic_number(chain.topic_id) if chain else -1
    if topic != world.topic:
        return world  # committed for a topic that is no more
    for partition, offset in offsets.items():
        if lost := missing(world, partition, offset):
            raise Broken(f"Kafka is told {TOPIC}-{partition} {offset}, without {sorted(lost)}")
    told = {p: (topic, offset) for p, offset in offsets.items()}
    return replace(world, group={**world.group, **told})
