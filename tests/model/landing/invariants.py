"""The invariants in every state, and liveness: without faults every row lands.

Doubled rows and rows missing below a stamp are checked at each commit (`delta`); deleted files, and
offsets that are committed to Kafka, when that happens (`writers`).
"""

from dataclasses import replace
from random import Random

from tests.model.explore import InvariantViolation

from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.states import Landing

from .delta import topic_number
from .steps import run_immediate_steps, steps
from .world import World, deletes, missing, newest_change, rows_between
from .writers import NEVER_S, named

PATIENCE = 600  # steps
MANY = 1_000


def check(world: World) -> None:
    """Raise if a writer's chain is ahead of its table, except for begins that it has decided."""
    if world.bounds.keyed:
        _check_row(world)
    for index, process in enumerate(world.writers):
        phase = process and process.writer.phase
        if not isinstance(phase, Landing):
            continue
        if world.bounds.from_latest and phase.stamp_due:
            continue  # it has decided where to begin, and not stamped that yet
        for partition, offset in phase.chain.committed.items():
            if topic_number(phase.chain.topic_ids.get(partition.topic)) != world.topic:
                continue
            if lost := missing(world, world.target_of(index), world.log_of(partition), offset):
                raise InvariantViolation(
                    f"{named(world, index)} is at {offset} of {partition}, without {sorted(lost)}"
                )


def _check_row(world: World) -> None:
    """Raise if the row of the key is not that of the newest change that has landed."""
    for table in world.tables:
        newest = newest_change((table.landed - table.bad) | table.moved)
        wanted = None if newest is None or deletes(world, newest) else newest
        if table.row != wanted:
            raise InvariantViolation(f"the row of the key is {table.row}, not {wanted}")


def check_liveness(world: World) -> None:
    """Take random steps without faults until every record is in the table."""
    last = len(world.bounds.settings) - 1  # by which all is decoded as the table wants it
    world = replace(world, faults=0, grants=MANY, rereads=MANY, settings=last)
    random = Random(0)
    for _ in range(PATIENCE):
        check(world)
        if _landed(world):
            return
        found = [s for s in steps(world) if "waits," not in s.label]
        world = (
            run_immediate_steps(random.choice(found).successor()) if found else _time_passes(world)
        )
    raise InvariantViolation(f"a standstill: {_state(world)}")


def _landed(world: World) -> bool:
    return not world.produce and not any(
        _unlanded(world, target, p)
        for target in range(world.bounds.targets)
        for p in range(len(world.logs))
    )


def _unlanded(world: World, target: int, partition: int) -> bool:
    log = world.logs[partition]
    if missing(world, target, partition, log.end):
        return True
    if log.resumes_at is None or world.bounds.kinds & {"file lost", "announcement lost"}:
        return False
    rows = rows_between(world, partition, log.resumes_at, log.end)
    return bool(rows - world.tables[target].landed)


def _time_passes(world: World) -> World:
    """Advance the time to when the next writer has something to do."""
    for index, process in enumerate(world.writers):
        if process is not None:
            writer, _ = machine.next_request(process.writer, process.now)
            due_at = machine.due_at(writer, process.now)
            if due_at >= NEVER_S:
                raise InvariantViolation(f"a standstill: {_state(world)}")
            later = replace(process, writer=writer, now=max(due_at, process.now))
            world = world.writer(index, later)
    return world


def _state(world: World) -> object:
    return [w and w.writer.phase for w in world.writers], world.landing
