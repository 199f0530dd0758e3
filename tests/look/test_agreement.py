"""What views say of loads, limits, needs and triggers is what the controller decides by."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some
from tests.builders import reconfigured
from tests.controller.decide.driver import CONFIG
from tests.look.agreement import differences, settled
from tests.look.histories import TOPIC, History

from binwright.group.plans import triggers
from binwright.look.commands.status_page import rates
from binwright.look.explain.answers import Explanation
from binwright.look.explain.answers import GroupFacts as SeenGroup
from binwright.look.explain.questions import answer
from binwright.look.group_view import GroupView
from binwright.look.status import status
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot
from binwright.protocol.orders import CordonOrder, FreezeOrder, GroupOrder, PinOrder, ScaleOrder
from binwright.protocol.selection import Selection

START = PerSlot(BytesPerSecond(120.0))
BASE = replace(
    CONFIG.with_settings(
        replan_interval_s=7.0, plan_timeout_s=9.0, command_retry_s=3.0, max_slots=6
    ),
    topics=Selection(frozenset({TOPIC})),
    stale_s=1e6,
    on_time_s=3.0,
)

Step = Callable[[History], None]


def load(partition: int, rate: float) -> Step:
    return lambda history: history.rates.update({partition: rate})


def backlog(partition: int, records: int) -> Step:
    def step(history: History) -> None:
        if partition in history.ends:
            history.ends[partition] += records

    return step


def kill(slot: int) -> Step:
    def step(history: History) -> None:
        history.consumers.pop(Slot(slot), None)

    return step


def drain(slot: int) -> Step:
    def step(history: History) -> None:
        if (consumer := history.consumers.get(Slot(slot))) is not None:
            consumer.leaving = True

    return step


def order(given_order: GroupOrder, for_s: int) -> Step:
    def step(history: History) -> None:
        until_ms = history.now_ms + 1_000 * for_s
        history.publish(replace(given_order, at_ms=history.now_ms, until_ms=until_ms))

    return step


def shrink(history: History) -> None:
    """Create the topic again with fewer partitions."""
    for partition in [*history.rates][2:]:
        del history.rates[partition]


def slower(history: History) -> None:
    """Let consumers that start from now on obey a second later."""
    history.slow = not history.slow


SLOTS, PARTITIONS = some.integers(0, 3), some.integers(0, 5)
ORDERS: some.SearchStrategy[GroupOrder] = some.one_of(
    some.builds(
        PinOrder,
        topic=some.just(TOPIC),
        partition=some.none() | PARTITIONS,
        slot=some.none() | SLOTS.map(Slot),
        by=some.just("alice"),
    ),
    some.builds(
        CordonOrder,
        slot=SLOTS.map(Slot),
        state=some.sampled_from(["open", "cordoned", "drained"]),
        by=some.just("bob"),
    ),
    some.builds(FreezeOrder, frozen=some.booleans(), by=some.just("carol")),
    some.builds(ScaleOrder, consumers=some.none() | some.integers(1, 4), by=some.just("dan")),
)
STEPS: some.SearchStrategy[Step] = some.one_of(
    some.builds(load, PARTITIONS, some.sampled_from([0.0, 10.0, 35.0, 60.0, 150.0, 400.0])),
    some.builds(backlog, PARTITIONS, some.sampled_from([50, 1_000, 5_000])),
    some.builds(kill, SLOTS),
    some.builds(drain, SLOTS),
    some.builds(order, ORDERS, some.sampled_from([3, 1_000])),
    some.sampled_from([shrink, slower, History.lead, History.approve]),
)
CONFIGS = some.fixed_dictionaries(
    {
        "catch_up_s": some.sampled_from([0.0, 100.0]),
        "zone_price": some.sampled_from([0.0, 0.5, 3.0]),
        "min_slots": some.sampled_from([1, 2]),
        "moves_per_hour": some.sampled_from([None, 1, 3]),
        "moves_at_a_time": some.sampled_from([None, 1]),
        "mode": some.sampled_from(["act", "act", "approve", "observe"]),
        "split": some.booleans(),
        "start_limits": some.sampled_from([None, START]),
    }
)


@settings(max_examples=150)
@given(
    config=CONFIGS,
    capacity=some.none() | some.sampled_from([100.0, 300.0]),
    steps=some.lists(some.tuples(STEPS, some.integers(1, 6)), min_size=3, max_size=12),
)
def test_a_view_counts_as_its_controller_decides(
    config: dict[str, Any], capacity: float | None, steps: list[tuple[Step, int]]
) -> None:
    """Loads, limits, needs, triggers, and what is asked of the packing, in each state."""
    known = reconfigured(BASE, **config)
    known = known.with_settings(split=known.settings.split and known.settings.mode == "act")
    history = History(known, GroupView.of(known), capacity=capacity)
    history.rates.update({0: 30.0, 1: 30.0, 2: 30.0})
    history.seconds(10)
    for step, seconds in steps:
        step(history)
        for _ in range(seconds):
            history.seconds(1)
            group = history.state.group
            assert not differences(history.state, history.view, history.now_ms), group
        due = [f"a plan is due: {reason}" for reason in triggers(history.view.at(history.now_ms))]
        assert would_change(history)[: len(due)] == due


def would_change(history: History) -> list[str]:
    """Return what `explain` names as what would change the group."""
    return [line.text for line in explained(history).lines if line.kind == "change"]


def test_the_histories_reach_what_they_are_about() -> None:
    """Backlogs, splits and plans that wait: a property of states that never come holds always."""
    reached = set[str]()
    for more in ({"catch_up_s": 100.0}, {"split": True}, {"mode": "approve"}):
        known = reconfigured(BASE, **more)
        history = History(known, GroupView.of(known))
        history.rates.update({0: 30.0, 1: 30.0, 2: 400.0})
        history.seconds(30)
        backlog(0, 5_000)(history)
        backlog(1, 5_000)(history)
        for _ in range(30):
            history.seconds(1)
            group, seen = history.state.group, history.view.group
            reached |= {"backlog"} if seen.load.catch_up else set()
            reached |= {"split"} if seen.members.splits else set()
            reached |= {"proposal"} if seen.people.proposal else set()
            reached |= {"settled"} if settled(history.state, seen) else set()
            assert not differences(history.state, history.view, history.now_ms), group
    assert reached == {"backlog", "split", "proposal", "settled"}


def explained(history: History) -> Explanation:
    shown = status("eu", history.view, history.now_ms)
    return answer(SeenGroup(history.view, shown, history.now_ms), "")


def test_under_a_backlog_explain_has_what_the_controller_decides_by() -> None:
    """By rates alone the consumer has a third of its limit, and all would stay where it is."""
    config = BASE.with_settings(catch_up_s=100.0, mode="observe")  # the plan is not carried out
    history = History(config.with_settings(mode="act"), GroupView.of(config))
    history.rates.update({0: 20.0, 1: 20.0})
    history.seconds(20)
    group = replace(history.state.group, config=config)
    history.state = replace(history.state, group=group)
    for partition in (0, 1):
        backlog(partition, 560)(history)
    history.seconds(4)
    (due,) = triggers(history.state.group)
    assert due.startswith("consumer 0 carries 116.")
    assert due.endswith("with 2 partitions to catch up in 100 s")
    found = explained(history).lines
    change = would_change(history)
    assert change[0] == f"a plan is due: {due}"
    assert "nearest is consumer 0, 140 B/s of 120 B/s (117%), with 2 partitions" in change[1]
    packed = [line.text for line in found if line.kind == "otherwise"][-1]
    assert packed.startswith("packed now (sticky), 2 consumers would do: consumer 0 carries 116.")
    (consumer,) = status("eu", history.view, history.now_ms).consumers
    assert (consumer.load, round(consumer.need)) == (40.0, 140)
    assert "backlogs count for 100 B/s" in rates(status("eu", history.view, history.now_ms))
