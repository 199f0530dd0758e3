"""A writer first claims the table, and reads what is committed only then."""

from dataclasses import replace

import pytest

from binwright.consumer.decide.writer import machine
from binwright.consumer.decide.writer.states import (
    Claiming,
    ClaimTable,
    Committed,
    Conflict,
    HistoryRead,
    LandedOffsets,
    Log,
    Lost,
    QueryKafka,
    ReadHistory,
    ReadingHistory,
    Refused,
    Resolving,
    Skipped,
    Unclear,
)
from binwright.protocol.stamp import COMMITS_PER_EPOCH, app_id, txn_version

from .scene import CONFIG, CREATED, TABLE, Scene, claim, effects_of, history, landing, staged, stamp


def with_history(*stamps: object, complete: bool = True) -> Scene:
    """Return a writer that has read this history."""
    scene = Scene()
    scene.next_request()
    scene.complete(HistoryRead(history(None, *stamps), complete=complete))  # type: ignore[arg-type]
    return scene


def epoch_claimed(scene: Scene) -> int:
    wanted = scene.next_request()
    assert isinstance(wanted, ClaimTable)
    assert wanted.version == txn_version(wanted.version // COMMITS_PER_EPOCH)
    return wanted.version // COMMITS_PER_EPOCH


def test_it_claims_the_epoch_above_the_last() -> None:
    scene = with_history(claim(4), stamp({0: 3}, epoch=4))
    wanted = scene.next_request()
    assert wanted == ClaimTable(app_id(TABLE), txn_version(5), claim(5, "me").encode())


def test_a_new_table_is_claimed_with_epoch_one() -> None:
    assert epoch_claimed(with_history()) == 1


def test_it_reads_further_back_while_it_finds_no_stamp() -> None:
    scene = Scene()
    first = scene.next_request()
    assert isinstance(first, ReadHistory)
    scene.complete(HistoryRead([CREATED], complete=False))
    further = scene.next_request()
    assert isinstance(further, ReadHistory)
    assert further.limit > first.limit


@pytest.mark.parametrize("outcome", [Conflict(), Unclear()])
def test_a_claim_with_an_unknown_result_is_sent_again(outcome: Conflict | Unclear) -> None:
    scene = with_history()
    sent = scene.next_request()
    scene.complete(outcome)
    assert scene.next_request() == sent


@pytest.mark.parametrize("outcome", [Refused(), Unclear()])
def test_a_history_that_cannot_be_read_is_requested_again(outcome: Refused | Unclear) -> None:
    scene = Scene()
    first = scene.next_request()
    scene.complete(outcome)
    assert scene.next_request() == first


def test_a_claim_that_is_refused_is_sent_again() -> None:
    scene = with_history()
    sent = scene.next_request()
    scene.complete(Refused("no right"))
    assert scene.next_request() == sent


def test_what_is_committed_is_read_only_after_the_claim() -> None:
    scene = with_history()
    scene.next_request()
    effects = scene.complete(Committed())
    assert [log.event for log in effects_of(effects, Log)] == ["table.claimed"]
    assert scene.writer.phase == Resolving(1)
    assert isinstance(scene.next_request(), QueryKafka)


def test_a_skipped_claim_with_its_own_stamp_was_committed_before() -> None:
    scene = with_history()
    scene.next_request()
    scene.complete(Skipped())
    assert isinstance(scene.next_request(), ReadHistory)
    scene.complete(HistoryRead(history(None, claim(1, "me")), complete=True))
    assert scene.writer.phase == Resolving(1)


@pytest.mark.parametrize("stamps", [(claim(1, "you"),), (claim(1, "me"), claim(2, "you"))])
def test_another_writers_claim_in_the_history_means_that_the_table_is_lost(
    stamps: tuple[object, ...],
) -> None:
    scene = with_history()
    scene.next_request()
    scene.complete(Skipped())
    effects = scene.complete(HistoryRead(history(None, *stamps), complete=True))  # type: ignore[arg-type]
    assert isinstance(scene.writer.phase, Lost)
    assert [log.event for log in effects_of(effects, Log)] == ["table.lost"]
    assert scene.next_request() is None


def test_without_a_history_higher_epochs_are_tried() -> None:
    scene = with_history()
    for expected in (1, 2, 4, 8):
        assert epoch_claimed(scene) == expected
        scene.complete(Skipped())
        scene.complete(HistoryRead([CREATED], complete=True))


def test_an_epoch_whose_numbers_are_used_up_is_followed_by_a_claim() -> None:
    scene = landing()
    scene.change(sequence=COMMITS_PER_EPOCH - 1)
    assert isinstance(scene.next_request(), ReadHistory)
    assert isinstance(scene.writer.phase, ReadingHistory)


def test_before_landing_announcements_are_ignored_and_there_is_no_chain() -> None:
    scene = with_history()
    assert scene.announce(staged("a", {0: (0, 1)})) == []
    assert scene.writer.chain is None
    assert machine.due_at(scene.writer, 5.0) == 5.0


def test_announcements_of_another_table_are_ignored() -> None:
    scene = landing()
    scene.announce(staged("a", {0: (0, 1)}, topic="clicks"))
    chain = scene.writer.chain
    assert chain is not None
    assert chain.pending == ()


def test_an_outcome_of_another_request_raises() -> None:
    scene = with_history()
    assert isinstance(scene.writer.phase, Claiming)
    with pytest.raises(ValueError, match="not an outcome"):
        scene.complete(LandedOffsets({}, {}))


def test_two_writers_that_claim_at_once_never_share_an_epoch() -> None:
    """Both read the same history; the table accepts one of the two claims."""
    one, other = with_history(), with_history()
    other.writer = replace(other.writer, config=replace(CONFIG, writer="other"))
    assert epoch_claimed(one) == epoch_claimed(other) == 1
    one.complete(Committed())
    other.complete(Skipped())
    other.complete(HistoryRead(history(None, claim(1, "me")), complete=True))
    assert isinstance(one.writer.phase, Resolving)
    assert isinstance(other.writer.phase, Lost)
