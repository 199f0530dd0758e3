"""Limits follow what consumers measure."""

from dataclasses import replace

import pytest
from tests.builders import alive, configured, group, report, with_member
from tests.controller.decide.driver import A, B, ControllerDriver, P, Q, published

from binwright.controller.decide.limits import LIMITS_MEASURED, measure_limits
from binwright.group.config import GroupConfig
from binwright.group.group import Group
from binwright.group.limits import SHARE, adopt_limits
from binwright.group.plans import Pack
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Claim, LimitsMeasured, MeasuredCapacity
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot

START = BytesPerSecond(120.0)
CONFIG = replace(configured(START, 100), start_limits=PerSlot(START))


def capacity(limit: float, used: float = 0.5) -> MeasuredCapacity:
    """Return what a consumer measures whose limit this is."""
    per_s = BytesPerSecond(limit / SHARE)
    return MeasuredCapacity(bytes_per_s=per_s, spread=0.1, used=used, seconds=60.0)


def measuring(*measured: MeasuredCapacity | None, config: GroupConfig = CONFIG) -> Group:
    members = {Slot(n): alive(n + 1, capacity=found) for n, found in enumerate(measured)}
    return group(members, config=config)


def limits(of: Group) -> PerSlot:
    after, _ = measure_limits(of)
    return after.config.limits


def test_a_measured_limit_is_adopted_published_and_packed_by() -> None:
    after, actions = measure_limits(measuring(capacity(360.0)))
    assert after.config.limits == PerSlot(BytesPerSecond(360.0))
    assert after.config.capacities == pytest.approx(300.0)
    message = LimitsMeasured(term=50, limit=BytesPerSecond(360.0))
    assert published(actions) == [message]
    assert Log(LIMITS_MEASURED, {"limit": 360, "was": 120}) in actions
    assert measure_limits(after) == (after, ())


def test_a_given_limit_stays() -> None:
    given = replace(CONFIG, start_limits=None)
    assert measure_limits(measuring(capacity(360.0), config=given))[1] == ()
    message = LimitsMeasured(term=1, limit=BytesPerSecond(360.0))
    assert adopt_limits(given, message) == given


@pytest.mark.parametrize("measured", [None, capacity(125.0), capacity(115.0)])
def test_what_is_not_known_or_hardly_differs_changes_nothing(
    measured: MeasuredCapacity | None,
) -> None:
    assert measure_limits(measuring(measured))[1] == ()


def test_a_loaded_consumer_lowers_the_limit_and_an_idle_one_does_not() -> None:
    assert limits(measuring(capacity(60.0, used=0.9))).default == 60.0
    assert limits(measuring(capacity(60.0, used=0.1))).default == START


def test_the_median_holds_for_all() -> None:
    found = limits(measuring(capacity(280.0), capacity(300.0), capacity(330.0)))
    assert found == PerSlot(BytesPerSecond(300.0))


def test_a_consumer_that_used_more_of_its_time_counts_more() -> None:
    found = limits(measuring(capacity(200.0, 0.1), capacity(210.0, 0.1), capacity(300.0, 0.9)))
    assert found == PerSlot(BytesPerSecond(300.0))


def test_a_consumer_on_another_machine_has_its_own_limit() -> None:
    fast = limits(measuring(capacity(200.0), capacity(200.0), capacity(400.0)))
    assert fast == PerSlot(BytesPerSecond(200.0), {Slot(2): BytesPerSecond(400.0)})
    slow = limits(measuring(capacity(200.0), capacity(200.0), capacity(100.0)))
    assert slow == PerSlot(BytesPerSecond(200.0), {Slot(2): BytesPerSecond(100.0)})


def test_an_idle_consumer_has_no_lower_limit_of_its_own() -> None:
    found = limits(measuring(capacity(400.0), capacity(400.0), capacity(130.0, used=0.05)))
    assert found == PerSlot(BytesPerSecond(400.0))


def test_an_own_limit_ends_when_it_is_near_the_others_again() -> None:
    slow = measure_limits(measuring(capacity(200.0), capacity(200.0), capacity(100.0)))[0]

    def after(limit: float) -> PerSlot:
        member = replace(slow.members.get(Slot(2)), capacity=capacity(limit))
        return limits(with_member(slow, Slot(2), member))

    assert after(140.0).named == {Slot(2): 140.0}
    assert after(170.0).named == {}


def test_a_limit_that_is_given_for_a_slot_stays() -> None:
    pinned = PerSlot(START, {A: BytesPerSecond(50.0)})
    config = replace(CONFIG, limits=pinned, start_limits=pinned)
    found = limits(measuring(capacity(500.0), capacity(300.0), config=config))
    assert found == PerSlot(BytesPerSecond(300.0), {A: BytesPerSecond(50.0)})
    assert limits(measuring(capacity(500.0), config=config)) == pinned
    earlier = LimitsMeasured(term=1, limit=BytesPerSecond(9.0), slot_limits=((A, START),))
    assert adopt_limits(config, earlier).limits == PerSlot(
        BytesPerSecond(9.0), {A: BytesPerSecond(50.0)}
    )


def test_a_consumer_that_has_ended_does_not_count() -> None:
    found = measuring(capacity(300.0))
    gone = replace(found.members.get(A), goodbye=1)
    assert measure_limits(with_member(found, A, gone))[1] == ()


def driver(*slots: Slot) -> ControllerDriver:
    found = ControllerDriver(CONFIG)
    found.read(LimitsMeasured(term=1, limit=BytesPerSecond(240.0)))
    found.claim()
    for slot in slots:
        found.hello(slot)
        found.report(slot)
    found.measure({P: 110.0, Q: 110.0})
    return found


def test_the_next_leader_begins_with_what_the_last_one_measured() -> None:
    after = driver(A)
    (claim,) = published(after.actions)
    assert claim == Claim(controller="me", limit=START, measured=True)
    (request,) = [a for a in after.tick() if isinstance(a, Pack)]
    assert request.load.capacity == pytest.approx(200.0)


def test_the_leader_measures_while_it_watches() -> None:
    after = driver(A, B)
    reported = replace(report(A, after.group.members.get(A).hello or 0), capacity=capacity(480.0))
    after.read(reported)
    actions = after.tick()
    assert LimitsMeasured(term=2, limit=BytesPerSecond(480.0)) in published(actions)
    (request,) = [a for a in actions if isinstance(a, Pack)]
    assert request.load.capacity == pytest.approx(400.0)


def test_a_slot_keeps_its_capacity_for_its_next_process() -> None:
    after = driver(A)
    first = report(A, after.group.members.get(A).hello or 0)
    after.read(replace(first, capacity=capacity(480.0)))
    after.read(first)
    assert after.group.members.get(A).capacity == capacity(480.0)
    after.hello(A)
    assert after.group.members.get(A).capacity == capacity(480.0)


def test_a_limit_that_another_leader_publishes_later_does_not_count() -> None:
    after = driver(A)
    before = after.group.config
    after.read(LimitsMeasured(term=9, limit=BytesPerSecond(1.0)))
    assert after.group.config == before
