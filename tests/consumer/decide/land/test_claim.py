"""A writer first claims the table, and reads what is committed only then."""

import pytest

from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.states import (
    Claiming,
    ClaimStep,
    ClaimTable,
    Committed,
    Conflict,
    DeleteOtherLeases,
    Done,
    Outcome,
    QueryKafka,
    Refused,
    Resolving,
    Unclear,
    WriteLease,
)
from binwright.protocol.log_events import Log
from binwright.protocol.names import lease_name

from .scene import Scene, claim, effects_of, landed_offsets, landing, staged

LEASE = lease_name("me", 1)
STEPS = [WriteLease(LEASE), DeleteOtherLeases(LEASE), ClaimTable("me-1", claim("me-1").encode())]
RESULTS: list[Outcome] = [Done(), Done(), Committed()]


def at_step(number: int) -> Scene:
    """Return a writer that has done so many steps of its claim."""
    scene = Scene()
    for result in RESULTS[:number]:
        scene.next_request()
        scene.complete(result)
    return scene


def test_a_claim_writes_a_lease_deletes_the_others_and_then_commits_metadata() -> None:
    assert [at_step(number).next_request() for number in range(3)] == STEPS


@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("outcome", [Conflict(), Unclear(), Refused()])
def test_a_step_without_a_result_is_repeated(
    step: int, outcome: Conflict | Unclear | Refused
) -> None:
    scene = at_step(step)
    sent = scene.next_request()
    scene.complete(outcome)
    assert scene.next_request() == sent


def test_what_is_committed_is_read_only_after_the_claim() -> None:
    scene = at_step(2)
    scene.next_request()
    effects = scene.complete(Committed())
    assert [log.event for log in effects_of(effects, Log)] == ["table.claimed"]
    assert scene.writer.phase == Resolving()
    assert isinstance(scene.next_request(), QueryKafka)


def test_before_landing_announcements_are_ignored_and_there_is_no_chain() -> None:
    scene = at_step(1)
    assert scene.announce(staged("a", {0: (0, 1)})) == []
    assert machine.apply_read_up_to(scene.writer, 9) == scene.writer
    assert scene.writer.chain is None
    assert machine.due_at(scene.writer, 5.0) == 5.0


def test_announcements_of_another_table_are_ignored() -> None:
    scene = landing()
    scene.announce(staged("a", {0: (0, 1)}, topic="clicks"))
    chain = scene.writer.chain
    assert chain is not None
    assert chain.pending == ()


def test_records_of_other_tables_are_not_needed_again() -> None:
    scene = landing()
    scene.writer = machine.apply_read_up_to(scene.writer, 9)
    assert scene.landing.chain.needed_from == 9
    scene.writer = machine.apply_read_up_to(scene.writer, 0)
    assert scene.landing.chain.needed_from == 9


def test_an_outcome_of_another_request_raises() -> None:
    scene = at_step(0)
    assert scene.writer.phase == Claiming(ClaimStep.WRITE_LEASE)
    with pytest.raises(ValueError, match="not an outcome"):
        scene.complete(landed_offsets({}, {}))
