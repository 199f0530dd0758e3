"""What must hold in every state, and that all lands once faults stop.

That no row lands twice and none is missing below a stamp is checked at each commit (`delta`), files
and the offsets that Kafka is told at each deletion and each telling (`writers`).
"""

from dataclasses import replace
from random import Random

from tests.model.explore import Broken

from binwright.core.writer import machine
from binwright.core.writer.landing import Landing

from .delta import topic_number
from .steps import rest, steps
from .world import World, missing, rows_between
from .writers import NEVER_S

PATIENCE = 600  # steps
MANY = 1_000


def check(world: World) -> None:
    """Raise if a writer believes more than is in the table, and decides no more than a begin."""
    for index, process in enumerate(world.writers):
        phase = process and process.writer.phase
        if not isinstance(phase, Landing) or topic_number(phase.chain.topic_id) != world.topic:
            continue
        if world.bounds.from_latest and phase.stamp_due:
            continue  # it has decided where to begin, and nobody knows yet
        for partition, offset in phase.chain.committed.items():
            if lost := missing(world, partition, offset):
                raise Broken(f"writer {index} believes {partition} at {offset}: {sorted(lost)}")


def settle(world: World) -> None:
    """Let everybody act in turn, without faults, until every record is in the table."""
    world = replace(world, faults=0, grants=MANY, rereads=MANY)
    random = Random(0)
    for _ in range(PATIENCE):
        check(world)
        if _landed(world):
            return
        found = [s for s in steps(world) if "waits," not in s.label]
        world = rest(random.choice(found).take()) if found else _time_passes(world)
    raise Broken(f"a standstill: {_state(world)}")


def _landed(world: World) -> bool:
    return not world.produce and not any(_unlanded(world, p) for p in range(len(world.logs)))


def _unlanded(world: World, partition: int) -> bool:
    log = world.logs[partition]
    if missing(world, partition, log.end):
        return True
    if log.goes_on_at is None or world.bounds.kinds & {"file lost", "announcement lost"}:
        return False
    return bool(rows_between(world, partition, log.goes_on_at, log.end) - world.table.landed)


def _time_passes(world: World) -> World:
    """Let time go on to when the next writer has something to do."""
    for index, process in enumerate(world.writers):
        if process is not None:
            writer, _ = machine.request(process.writer, process.now)
            due_at = machine.due_at(writer, process.now)
            if due_at >= NEVER_S:
                raise Broken(f"a standstill: {_state(world)}")
            later = replace(process, writer=writer, now=max(due_at, process.now))
            world = world.writer(index, later)
    return world


def _state(world: World) -> object:
    return [w and w.writer.phase for w in world.writers], world.landing
