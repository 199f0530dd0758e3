"""What the states must not stand still at."""

from dataclasses import replace

from binwright.core.events import Ended, Pack, Reconcile, Say
from binwright.core.messages import Dead, StartReading, StopReading
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import Owned, Released
from binwright.core.states import Manage, Sentinel, Synchronize

from .reign import RULES, A, B, P, Q, Reign, holding, published, ruling, told

RATES = {P: 50.0, Q: 40.0}
OTHER = TopicPartition("clicks", 0)


def live(reign: Reign, seconds: int) -> None:
    """Let time pass while everybody goes on reporting what it has."""
    for _ in range(seconds):
        reign.tick()
        for slot in (A, B):
            if reign.group.member(slot).epoch is not None:
                has = [p for p, at in reign.group.partitions.items() if at.slot == slot]
                reign.report(slot, reading=has, ready=reign.group.member(slot).ready)


def packs(reign: Reign, seconds: int) -> int:
    return sum(isinstance(action, Pack) for action in reign.tick(seconds))


# --- Synchronize -------------------------------------------------------------------------------


def test_a_newcomer_that_is_ready_before_the_others_answered_blocks_nothing() -> None:
    """It came after the claim: it was not asked, need not answer, and says its readiness once."""
    reign = Reign()
    reign.hello(A)
    reign.claim()
    reign.hello(B)
    reign.report(B, term=0)
    assert reign.phase() == Synchronize
    reign.report(A)
    assert reign.phase() == Sentinel
    reign.measure(dict(RATES))
    (start,) = told(reign.pack({P: B, Q: B}), StartReading)
    assert start.offsets.keys() == {P, Q}


def test_a_controller_that_slept_while_it_asked_gives_time_to_answer() -> None:
    """The answers may stand in partition 0, not read yet."""
    reign = Reign()
    reign.hello(A)
    reign.claim()
    reign.now += 60
    assert published(reign.tick()) == []
    assert published(reign.tick(9)) == []
    assert published(reign.tick(2)) == [Dead(slot=A, epoch=1, term=2)]


# --- what is gone ------------------------------------------------------------------------------


def test_what_is_gone_and_read_by_nobody_forces_no_plan() -> None:
    """There is nothing to do about it: it would be packed again every second, for ever."""
    reign = holding(RATES, {P: A, Q: B})
    reign.dead(B)
    reign.measure({P: 50.0})
    assert packs(reign, 5) == 0
    assert reign.group.partitions.keys() == {P}


def test_a_start_of_what_is_gone_meanwhile_does_not_hold_up_the_plan() -> None:
    reign = ruling(RATES, A)
    (start,) = told(reign.pack({P: A, Q: A}), StartReading)
    reign.started(replace(start, offsets={P: 7}), A)
    reign.measure({P: 50.0})
    (stop,) = told(reign.tick(), StopReading)
    assert stop.partitions == (Q,)
    reign.stopped(stop, A, None)
    assert reign.phase() == Sentinel
    assert reign.group.partitions.keys() == {P}


def test_a_partition_that_is_gone_before_it_is_started_does_not_hold_up_the_plan() -> None:
    reign = ruling(RATES)
    reign.pack({P: A, Q: B})
    reign.measure({P: 50.0})
    reign.hello(A)
    (start,) = told(reign.report(A), StartReading)
    assert start.offsets.keys() == {P}
    reign.started(start, A)
    assert reign.phase() == Sentinel


def test_a_topic_of_which_nothing_is_said_for_long_does_not_hold_up_the_others() -> None:
    """It was deleted while a controller was away: no measurement will ever tell of it."""
    reign = Reign()
    reign.hello(A)
    reign.claim()
    reign.report(A, reading=[OTHER])
    reign.measure({P: 90.0, Q: 80.0})
    (start,) = told(reign.tick(), StartReading)
    assert start.offsets.keys() == {P, Q}, "what nobody reads does not wait"
    reign.started(start, A)
    began, asked = reign.now, 0
    for _ in range(100):
        reign.measure({P: 90.0, Q: 80.0})
        asked += packs(reign, 1)
        reign.report(A, reading=[P, Q, OTHER])
        if reign.now - began <= RULES.stale_s:
            assert not asked
    assert asked


# --- deadlines ---------------------------------------------------------------------------------


def test_a_newcomer_that_is_slow_to_claim_holds_up_nobody() -> None:
    """What its slot read goes on elsewhere at once."""
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    reign.hello(A)
    (start,) = told(reign.pack({P: B, Q: B}), StartReading)
    reign.started(start, B)
    assert reign.place(P) == Owned(B, start.epoch)
    assert reign.phase() == Sentinel


def test_a_newcomer_that_never_gets_ready_is_replaced_ever_less_often() -> None:
    """On a slow machine each replacement would make it slower still."""
    reign = holding(RATES, {P: A, Q: A})
    lived = []
    for _ in range(3):
        reign.hello(A)
        begun, death = reign.now, Dead(slot=A, epoch=reign.offset, term=1)
        reign.actions.clear()
        while death not in published(reign.actions) and reign.now - begun < 2_000:
            live(reign, 1)
        reign.hear(death)
        lived.append(reign.now - begun)
    assert lived == [301, 601, 1201]
    reign.hello(A)
    reign.report(A)
    assert reign.group.member(A).ready
    reign.dead(A)
    assert reign.group.member(A).failed_starts == 0


def test_a_newcomer_that_is_the_heir_itself_is_waited_for() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(A)
    reign.pack({P: A, Q: A})
    live(reign, 121)
    assert reign.phase() == Sentinel
    assert not any(isinstance(m, Dead) for m in published(reign.actions))
    assert reign.place(P) == Released(7)


# --- the end of growth -------------------------------------------------------------------------


def capped(*owners: int) -> Reign:
    reign = holding({P: 90.0, Q: 80.0, OTHER: 10.0}, dict.fromkeys([P, Q, OTHER], A))
    rules = replace(RULES, max_slots=2)
    reign.state = replace(reign.state, group=replace(reign.group, rules=rules))
    reign.hello(B)
    reign.report(B)
    reign.pack(dict(zip([P, Q, OTHER], map(Slot, owners), strict=True)))
    return reign


def test_where_no_consumer_may_be_added_an_overload_moves_what_brings_relief() -> None:
    assert capped(0, 1, 2).phase() == Manage


def test_where_no_consumer_may_be_added_nothing_moves_for_nothing() -> None:
    """Else the same overload would force move after move, for ever."""
    reign = capped(2, 0, 0)
    (stop,) = told(reign.actions, StopReading)
    start = told(reign.stopped(stop, A), StartReading)[-1]
    reign.started(start, B)
    assert reign.place(P).slot == B
    reign.measure({P: 200.0, Q: 190.0, OTHER: 10.0})
    actions = reign.pack({P: A, Q: B, OTHER: Slot(2)})
    assert Say("plan.rejected", {"reason": "all 2 consumers are full"}) in actions
    assert isinstance(reign.place(P), Owned)


# --- who is not needed -------------------------------------------------------------------------


def test_who_was_made_for_a_plan_that_came_to_nothing_is_retired() -> None:
    reign = holding(RATES, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    live(reign, 60)
    actions = reign.pack({P: A, Q: A})
    assert Reconcile(frozenset({A})) in actions
    assert reign.phase() == Sentinel


# --- who ends ----------------------------------------------------------------------------------


def test_a_process_that_the_fleet_saw_end_is_declared_dead_at_once() -> None:
    reign = holding(RATES, {P: A, Q: B})
    epoch = reign.group.member(B).epoch
    actions = reign.feed(Ended(reign.now, B, reign.group.member(B).process))
    assert published(actions) == [Dead(slot=B, epoch=epoch or 0, term=reign.group.term or 0)]
    assert reign.phase() == Sentinel
