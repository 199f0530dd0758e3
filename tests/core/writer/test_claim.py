"""A writer first shuts out all that were before it, and reads only then."""

from dataclasses import replace

import pytest

from binwright.core.writer import machine
from binwright.core.writer.machine import Claiming, Looking, Lost, Resolving
from binwright.core.writer.requests import (
    AskKafka,
    Claim,
    Committed,
    Conflict,
    Log,
    ReadHistory,
    Refused,
    Rows,
    Skipped,
    Told,
    Unclear,
)
from binwright.core.writer.stamp import COMMITS_PER_EPOCH, app_id, txn_version

from .scene import CREATED, RULES, TABLE, Scene, caused, claim, history, landing, staged, stamp


def looked(*stamps: object, complete: bool = True) -> Scene:
    """Return a writer that has seen this history."""
    scene = Scene()
    scene.ask()
    scene.answer(Told(history(None, *stamps), complete=complete))  # type: ignore[arg-type]
    return scene


def epoch_claimed(scene: Scene) -> int:
    wanted = scene.ask()
    assert isinstance(wanted, Claim)
    assert wanted.version == txn_version(wanted.version // COMMITS_PER_EPOCH)
    return wanted.version // COMMITS_PER_EPOCH


def test_it_claims_the_epoch_above_the_last() -> None:
    scene = looked(claim(4), stamp({0: 3}, epoch=4))
    wanted = scene.ask()
    assert wanted == Claim(app_id(TABLE), txn_version(5), claim(5, "me").encode())


def test_a_new_table_is_claimed_with_epoch_one() -> None:
    assert epoch_claimed(looked()) == 1


def test_it_looks_further_back_while_no_stamp_is_seen() -> None:
    scene = Scene()
    first = scene.ask()
    assert isinstance(first, ReadHistory)
    scene.answer(Told([CREATED], complete=False))
    further = scene.ask()
    assert isinstance(further, ReadHistory)
    assert further.limit > first.limit


@pytest.mark.parametrize("outcome", [Conflict(), Unclear()])
def test_a_claim_without_a_verdict_is_sent_again(outcome: Conflict | Unclear) -> None:
    scene = looked()
    sent = scene.ask()
    scene.answer(outcome)
    assert scene.ask() == sent


@pytest.mark.parametrize("outcome", [Refused(), Unclear()])
def test_a_history_that_cannot_be_read_is_asked_for_again(outcome: Refused | Unclear) -> None:
    scene = Scene()
    asked = scene.ask()
    scene.answer(outcome)
    assert scene.ask() == asked


def test_a_claim_that_is_refused_is_sent_again() -> None:
    scene = looked()
    sent = scene.ask()
    scene.answer(Refused("no right"))
    assert scene.ask() == sent


def test_only_after_the_claim_it_is_read_what_is_committed() -> None:
    scene = looked()
    scene.ask()
    effects = scene.answer(Committed())
    assert [log.event for log in caused(effects, Log)] == ["table.claimed"]
    assert scene.writer.phase == Resolving(1)
    assert isinstance(scene.ask(), AskKafka)


def test_a_claim_that_landed_before_its_answer_was_lost_is_its_own() -> None:
    scene = looked()
    scene.ask()
    scene.answer(Skipped())
    assert isinstance(scene.ask(), ReadHistory)
    scene.answer(Told(history(None, claim(1, "me")), complete=True))
    assert scene.writer.phase == Resolving(1)


@pytest.mark.parametrize("stamps", [(claim(1, "you"),), (claim(1, "me"), claim(2, "you"))])
def test_who_finds_another_writers_claim_loses_the_table(stamps: tuple[object, ...]) -> None:
    scene = looked()
    scene.ask()
    scene.answer(Skipped())
    effects = scene.answer(Told(history(None, *stamps), complete=True))  # type: ignore[arg-type]
    assert isinstance(scene.writer.phase, Lost)
    assert [log.event for log in caused(effects, Log)] == ["table.lost"]
    assert scene.ask() is None


def test_where_the_history_is_gone_epochs_are_tried_upwards() -> None:
    scene = looked()
    for expected in (1, 2, 4, 8):
        assert epoch_claimed(scene) == expected
        scene.answer(Skipped())
        scene.answer(Told([CREATED], complete=True))


def test_an_epoch_whose_numbers_are_used_up_is_followed_by_a_claim() -> None:
    scene = landing()
    scene.change(sequence=COMMITS_PER_EPOCH - 1)
    assert isinstance(scene.ask(), ReadHistory)
    assert isinstance(scene.writer.phase, Looking)


def test_until_it_lands_it_hears_no_announcement_and_has_no_chain() -> None:
    scene = looked()
    assert scene.hear(staged("a", {0: (0, 1)})) == []
    assert scene.writer.chain is None
    assert machine.due_at(scene.writer, 5.0) == 5.0


def test_announcements_about_another_table_are_passed_over() -> None:
    scene = landing()
    scene.hear(staged("a", {0: (0, 1)}, topic="clicks"))
    chain = scene.writer.chain
    assert chain is not None
    assert chain.pending == ()


def test_an_answer_to_what_was_not_asked_is_our_own_fault() -> None:
    scene = looked()
    assert isinstance(scene.writer.phase, Claiming)
    with pytest.raises(ValueError, match="no answer"):
        scene.answer(Rows({}, {}))


def test_two_that_claim_at_once_never_share_an_epoch() -> None:
    """Both read the same history; the table takes one of the two."""
    one, other = looked(), looked()
    other.writer = replace(other.writer, rules=replace(RULES, writer="other"))
    assert epoch_claimed(one) == epoch_claimed(other) == 1
    one.answer(Committed())
    other.answer(Skipped())
    other.answer(Told(history(None, claim(1, "me")), complete=True))
    assert isinstance(one.writer.phase, Resolving)
    assert isinstance(other.writer.phase, Lost)
