"""Plans that wait for a person; and what goes on without asking anybody."""

from dataclasses import replace

from binwright.core.approval import changed
from binwright.core.events import Action, Pack, Packed
from binwright.core.messages import (
    Accepted,
    Approved,
    Planned,
    Proposed,
    StartReading,
    StopReading,
    Withdrawn,
)
from binwright.core.states import Manage, Sentinel

from .approvals import (
    APART,
    APPROVE,
    BOTH_AT_A,
    RATES,
    R,
    approve,
    beginning,
    fleet,
    of,
    offered,
    overloaded,
    said,
    switched,
)
from .reign import A, B, P, Q, Reign, told

# --- a plan waits ------------------------------------------------------------------------------


def test_a_plan_is_shown_at_once_and_waits() -> None:
    reign, number = overloaded()
    (shown,) = of(reign.actions, Proposed)
    assert (shown.owners, shown.targets, shown.moves) == (BOTH_AT_A, APART, {Q: (A, B)})
    assert shown.waits
    assert said(reign.actions, "plan.proposed")[0]["plan"] == number
    asked = len(reign.actions)
    for _ in range(3 * 60):
        reign.report(A, reading=[P, Q])
        reign.measure(dict(RATES))
        reign.tick()
    assert reign.phase() == Sentinel
    assert reign.actions[asked:] == [], "it stands, whatever the packing would say by now"


def test_before_it_is_read_back_it_is_not_shown_again() -> None:
    reign = beginning(BOTH_AT_A, RATES)
    reign.pack(APART)
    assert reign.tick(3.0) == []
    assert said(reign.hear(Approved(plan=7, by="me")), "approval.refused") == [
        {"plan": 7, "by": "me", "reason": "no plan waits"}
    ]


def test_the_approved_plan_is_carried_out() -> None:
    reign, number = overloaded()
    actions = approve(reign, number)
    assert said(actions, "plan.approved") == [{"plan": number, "by": "a person"}]
    (accepted,) = of(actions, Accepted)
    assert (accepted.plan, accepted.targets) == (number, APART)
    (planned,) = of(actions, Planned)
    assert (planned.moves, planned.keeps) == ({Q: B}, number)
    assert fleet(actions) == [{A, B}]
    assert reign.phase() == Manage
    reign.hello(B)
    (stop,) = told(reign.report(B), StopReading)
    (start,) = told(reign.stopped(stop, A), StartReading)
    reign.started(start, B)
    assert reign.phase() == Sentinel
    reign.measure(dict(RATES))
    assert reign.tick(3.0) == []


def test_an_approval_said_again_changes_nothing() -> None:
    reign, number = overloaded()
    reign.hear(Approved(plan=number, by="me"))
    assert reign.hear(Approved(plan=number, by="me")) == []
    (accepted,) = of(reign.tick(), Accepted)
    reign.hear(accepted)
    assert reign.hear(Approved(plan=number, by="me")) == []


def test_another_number_is_refused() -> None:
    reign, number = overloaded()
    actions = approve(reign, number + 5)
    reason = f"it is not the plan that waits: that is {number}"
    assert said(actions, "approval.refused")[0]["reason"] == reason
    assert reign.phase() == Sentinel


def test_without_measurements_even_an_approved_plan_waits() -> None:
    reign, number = overloaded()
    for _ in range(200):
        reign.report(A, reading=[P, Q])
        reign.tick()
    assert not of(approve(reign, number), Accepted)
    reign.measure(dict(RATES))
    assert of(reign.tick(), Accepted)


# --- it is out of date -------------------------------------------------------------------------


def test_a_plan_out_of_date_is_replaced_when_it_is_approved() -> None:
    reign, number = overloaded()
    reign.measure({P: 90.0, Q: 10.0})
    actions = approve(reign, number)
    assert not of(actions, Accepted)
    (gone,) = of(actions, Withdrawn)
    assert gone.plan == number
    assert "saves no consumer" in gone.reason
    (facts,) = said(actions, "plan.withdrawn")
    assert facts["approved"] is True
    assert any(isinstance(a, Pack) for a in actions), "a fresh one follows"
    reign.hear(gone)
    reign.feed(Packed(reign.now, BOTH_AT_A))  # nothing is to be done by these rates
    reign.measure(dict(RATES))
    assert of(approve(reign, offered(reign, {P: B, Q: A})), Accepted)


def test_what_would_overload_a_consumer_by_now_is_out_of_date() -> None:
    reign = beginning({P: A, Q: A, R: B}, {P: 70.0, Q: 60.0, R: 30.0})
    number = offered(reign, {P: A, Q: B, R: B})
    assert of(approve(reign, number), Accepted)

    reign = beginning({P: A, Q: A, R: B}, {P: 70.0, Q: 60.0, R: 30.0})
    number = offered(reign, {P: A, Q: B, R: B})
    reign.measure({P: 70.0, Q: 60.0, R: 80.0})
    (gone,) = of(approve(reign, number), Withdrawn)
    assert gone.reason == "consumer 1 would carry 140 B/s by now"


def test_with_all_consumers_full_there_is_no_better_plan_to_wait_for() -> None:
    reign = beginning({P: A, Q: A, R: B}, {P: 70.0, Q: 60.0, R: 80.0})
    group = replace(reign.group, rules=replace(APPROVE, max_slots=2))
    reign.state = replace(reign.state, group=group)
    number = offered(reign, {P: A, Q: B, R: B})
    assert of(approve(reign, number), Accepted)


def relieved_by_b() -> tuple[Reign, int]:
    """Return a reign in which B reads what A was approved for, and a plan that was shown before."""
    reign, number = overloaded()
    reign.hello(B)
    reign.report(B)
    reign.report(A, reading=[P, Q], leaving=True)  # its partitions go to B, nobody is asked
    assert reign.phase() == Manage
    (stop,) = told(reign.actions, StopReading)
    (start,) = told(reign.stopped(stop, A), StartReading)
    reign.started(start, B)
    assert reign.phase() == Sentinel
    return reign, number


def test_a_plan_waits_on_while_a_consumer_starts_again() -> None:
    reign, number = relieved_by_b()
    assert not of(approve(reign, number), Accepted)
    reign.hello(A)
    reign.report(A)
    (stop,) = told(reign.tick(), StopReading)
    (start,) = told(reign.stopped(stop, B), StartReading)
    reign.started(start, A)
    assert of(reign.tick(), Accepted), "things are again as they were approved"


def test_partitions_that_stay_with_other_readers_make_a_new_plan() -> None:
    reign, number = relieved_by_b()
    done: list[Action] = []
    for _ in range(61):
        reign.report(B, reading=[P, Q])
        reign.measure(dict(RATES))
        done += reign.tick()
    (gone,) = of(done, Withdrawn)
    assert (gone.plan, gone.reason) == (number, "partitions have other readers")
    assert any(isinstance(a, Pack) for a in done)


def test_slots_that_are_allowed_no_more_are_not_brought_back() -> None:
    reign = beginning(APART, RATES)
    group = replace(reign.group, rules=replace(APPROVE, max_slots=1))
    reign.state = replace(reign.state, group=group)
    actions = reign.dead(B) + reign.tick()
    assert fleet(actions) == [{A}]


def test_a_topic_that_grows_makes_a_new_plan() -> None:
    reign, _ = overloaded()
    plan = reign.group.offer
    assert plan is not None
    reign.measure({**RATES, R: 1.0})
    assert changed(reign.group, plan.plan) == "partitions have come or gone"


def test_a_plan_of_another_mode_is_made_anew() -> None:
    reign, _ = overloaded()
    (gone,) = of(switched(reign, "observe").tick(), Withdrawn)
    assert gone.reason == "the group's mode has changed"


# --- nobody is asked ---------------------------------------------------------------------------


def test_what_a_dead_consumer_read_is_given_to_the_others_and_back() -> None:
    reign = beginning(APART, RATES)
    actions = reign.dead(B) + reign.tick()
    (planned,) = of(actions, Planned)
    assert planned.keeps == 0
    assert planned.reasons[0] == "keeps plan 0"
    assert fleet(actions) == [{A, B}], "its slot stays, for its newcomer"
    (start,) = told(actions, StartReading)
    actions = reign.started(start, A)
    assert fleet(actions) == [{A, B}]
    reign.hello(B)
    reign.report(B)
    (stop,) = told(reign.tick(), StopReading)
    (start,) = told(reign.stopped(stop, A), StartReading)
    reign.started(start, B)
    assert reign.group.assignment() == APART
    assert reign.phase() == Sentinel


def test_with_nobody_left_the_newcomers_of_the_approved_slots_are_waited_for() -> None:
    reign = beginning(APART, RATES)
    for slot in (A, B):
        reign.dead(slot)
    assert fleet(reign.tick()) == [{A, B}]
    reign.hello(B)
    (start,) = told(reign.report(B), StartReading)
    assert set(start.offsets) == {P, Q}, "the first that is ready reads everything meanwhile"
    reign.started(start, B)
    reign.hello(A)
    (stop,) = told(reign.report(A), StopReading)
    assert stop.partitions == (P,)


def test_a_new_partition_finds_a_reader_among_those_that_run() -> None:
    reign = beginning(APART, RATES)
    reign.measure({**RATES, R: 60.0})
    actions = reign.tick()
    (start,) = told(actions, StartReading)
    assert start.offsets.keys() == {R}
    assert fleet(actions) == [{A, B}]
    reign.started(start, B)
    assert reign.tick() != [], "B is above its limit now: that plan waits"


def test_a_new_partition_waits_for_an_approved_slot_when_nobody_is_there() -> None:
    reign = beginning(APART, RATES)
    reign.measure({**RATES, R: 1.0})
    for slot in (A, B):
        reign.dead(slot)
    (planned,) = of(reign.tick(), Planned)
    assert planned.targets == {P: A, Q: B, R: B}


def test_what_is_gone_is_stopped() -> None:
    reign = beginning(APART, RATES)
    reign.measure({P: 90.0})
    (stop,) = told(reign.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_the_first_plan_of_a_group_waits() -> None:
    reign = Reign(APPROVE)
    reign.claim()
    reign.measure(dict(RATES))
    assert not any(fleet(reign.actions))
    number = offered(reign, APART)
    assert not fleet(reign.tick(5.0))
    assert fleet(approve(reign, number)) == [{A, B}]


def test_what_no_approved_plan_has_is_read_by_whoever_is_there() -> None:
    reign = Reign(APPROVE)
    reign.claim()
    reign.measure(dict(RATES))
    reign.hello(A)  # somebody else runs it
    reign.report(A)
    (planned,) = of(reign.tick(), Planned)
    assert (planned.targets, planned.reasons[0], planned.keeps) == (
        BOTH_AT_A,
        "finds readers",
        None,
    )


def test_a_plan_that_comes_to_nothing_retires_nobody() -> None:
    reign = beginning(BOTH_AT_A, RATES)
    reign.hello(B)
    reign.report(B)
    assert fleet(reign.pack(BOTH_AT_A)) == []
