"""Which consumers help to stage a partition above the limit, and which commands they get."""

from dataclasses import replace
from typing import Any

import pytest
from immutables import Map
from tests.builders import (
    CONFIG,
    NOW,
    S0,
    S1,
    S2,
    P,
    Q,
    alive,
    changed,
    group,
    owned,
    released,
    stopping,
    with_member,
)

from binwright.controller.decide.events import Reconcile, Send
from binwright.controller.decide.splits import refresh_splits
from binwright.group.controls import Controls
from binwright.group.group import Group
from binwright.group.members import Member
from binwright.group.plans import Pack, packing_request, plan, reuse_idle_consumers
from binwright.group.rates import MeasuredRates
from binwright.packing.inputs import SlotCapacities
from binwright.packing.rules import Rules
from binwright.protocol.commands import SplitReading
from binwright.protocol.log_events import Log
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition

SPLIT = CONFIG.with_settings(split=True, max_slots=6)
S3, S4 = Slot(3), Slot(4)
Helpers = dict[TopicPartition, tuple[Slot, ...]]


def made(
    rate: float,
    *ready: Slot,
    other: float = 10.0,
    helpers: Helpers | None = None,
    config: Any = SPLIT,
    members: dict[Slot, Member] | None = None,
    **more: Any,
) -> Group:
    """Return a group in which slot 0 owns P, at this rate, and slot 1 owns Q if it is ready."""
    known = {slot: alive(10 + slot) for slot in (S0, *ready)} | (members or {})
    owners = {P: owned(S0, 10), Q: owned(S1 if S1 in ready else S0, 11)}
    return group(
        known,
        owners,
        rates={P: rate, Q: other},
        config=config,
        splits=Map(helpers or {}),
        desired=frozenset(known),
        **more,
    )


def ruled(**rules: Any) -> Controls:
    return Controls(rules=Rules(**rules))


def after(group: Group) -> Helpers:
    return dict(refresh_splits(group, NOW)[0].members.splits)


def commands(group: Group, now: float = NOW) -> tuple[Group, dict[Slot, Helpers]]:
    changed, actions = refresh_splits(group, now)
    sent = {a.slot: a.message for a in actions if isinstance(a, Send)}
    assert all(isinstance(m, SplitReading) for m in sent.values())
    return changed, {s: dict(m.partitions) for s, m in sent.items() if isinstance(m, SplitReading)}


def test_a_partition_at_the_limit_is_not_split() -> None:
    assert not after(made(120.0, S1, S2))


def test_a_partition_above_it_is_staged_by_as_many_as_its_load_needs() -> None:
    assert after(made(121.0, S1, S2)) == {P: (S2,)}, "the emptiest ready consumer helps"
    assert after(made(300.0, S1, S2)) == {P: (S2, S3)}, "none has room for a third of it"


def test_without_the_setting_or_in_another_mode_nothing_is_split() -> None:
    assert not after(made(300.0, S1, S2, config=CONFIG))
    observing = SPLIT.with_settings(mode="observe")
    assert refresh_splits(made(300.0, S1, config=observing), NOW)[1] == ()


def test_consumers_that_are_missing_are_started() -> None:
    split, actions = refresh_splits(made(300.0), NOW)
    assert split.members.splits[P] == (S1, S2)
    assert Reconcile(frozenset({S0, S1, S2})) in actions
    assert not any(isinstance(a, Send) for a in actions), (
        "they get no command before they are ready"
    )
    logs = [a for a in actions if isinstance(a, Log)]
    assert [log.facts for log in logs] == [{"partition": "orders-0", "helpers": [1, 2]}]
    later = changed(split, desired=frozenset({S0, S1, S2}))
    again, actions = refresh_splits(later, NOW)
    assert (again.members.splits, actions) == (later.members.splits, ()), "they are waited for"


def test_no_more_are_started_than_may_be() -> None:
    assert after(made(300.0, config=SPLIT.with_settings(max_slots=2))) == {P: (S1,)}
    assert not after(made(300.0, controls=ruled(consumers=1)))


def test_people_hold_helpers_back() -> None:
    pinned = ruled(pins={(P.topic, P.partition): S0})
    assert not after(made(300.0, S1, S2, controls=pinned))
    drained = ruled(drained=frozenset({S2}))
    assert after(made(170.0, S1, S2, helpers={P: (S2,)}, controls=drained)) == {P: (S1,)}
    cordoned = ruled(cordoned=frozenset({S2}))
    assert after(made(190.0, S1, S2, helpers={P: (S2,)}, controls=cordoned)) == {P: (S2,)}
    frozen = replace(ruled(), frozen="by alice")
    assert not after(made(190.0, S1, S2, controls=frozen))


def test_a_helper_stays_until_the_others_carry_the_load_with_room() -> None:
    three: Helpers = {P: (S1, S2)}
    assert after(made(161.0, S1, S2, helpers=three)) == three
    assert after(made(160.0, S1, S2, helpers=three)) == {P: (S1,)}
    assert after(made(80.0, S1, S2, helpers=three)) == {}


def test_a_helper_that_has_ended_is_replaced_unless_it_is_started_again() -> None:
    gone = made(170.0, S1, helpers={P: (S2,)})
    assert after(gone) == {P: (S1,)}
    again = changed(gone, desired=frozenset({S0, S1, S2}))
    assert after(again) == {P: (S2,)}
    leaving = made(170.0, S1, helpers={P: (S2,)}, members={S2: alive(12, leaving=True)})
    assert after(leaving) == {P: (S1,)}


def test_the_new_owner_is_no_helper() -> None:
    assert after(made(150.0, S1, S2, helpers={P: (S0, S2)})) == {P: (S2,)}


def test_a_partition_that_is_gone_has_no_helpers() -> None:
    moving = made(300.0, S1, S2, helpers={P: (S2,)})
    unknown = changed(moving, partitions=moving.members.partitions.without([P]))
    assert not after(unknown)


def test_helpers_stay_while_no_consumer_owns_the_partition_or_its_rate_is_not_known() -> None:
    split = made(300.0, S1, S2, helpers={P: (S2,)})
    unread = changed(split, partitions=split.members.partitions.changed({P: released(7)}))
    assert after(unread) == {P: (S2,)}
    assert commands(unread)[1] == {}
    assert after(changed(split, rates=MeasuredRates())) == {P: (S2,)}


def test_a_new_leader_keeps_the_helpers_that_consumers_report() -> None:
    reporting = alive(10, splits={P: (S0, S2)})
    assert after(made(190.0, S1, S2, members={S0: reporting})) == {P: (S2,)}
    helping = alive(10, splits={P: (S2, S0)})
    assert after(made(170.0, S1, members={S0: helping})) == {P: (S1,)}, "it was the other's"


# --- loads ----------------------------------------------------------------------------------------


def test_each_consumer_has_a_share_of_the_load() -> None:
    split = made(300.0, S1, S2, helpers={P: (S1, S2)})
    assert split.loads() == {S0: 100.0, S1: 110.0, S2: 100.0}
    assert split.load.need(P) == 300.0
    assert split.need(P) == 100.0
    assert split.need(Q) == 10.0
    assert split.members.owning() == {S0, S1, S2}


def test_a_packing_has_the_room_that_helpers_leave() -> None:
    split = made(150.0, S1, S2, helpers={P: (S2,)})
    request = packing_request(split)
    assert isinstance(request, Pack)
    assert request.load.rates == {P: 75.0, Q: 10.0}
    assert request.load.capacity == SlotCapacities(
        BytesPerSecond(100.0), {S2: BytesPerSecond(25.0)}
    )
    assert made(150.0).capacities == CONFIG.capacities


def test_a_helper_is_not_an_idle_consumer() -> None:
    split = made(150.0, S1, S2, helpers={P: (S2,)})
    assert reuse_idle_consumers(split, {P: S0, Q: S3})[Q] == S3
    free = made(150.0, S1, S2)
    assert reuse_idle_consumers(free, {P: S0, Q: S3})[Q] == S2
    assert plan(split, {P: S0, Q: S1}, ()).reason == "nothing would change"  # type: ignore[union-attr]


# --- commands -------------------------------------------------------------------------------------


def test_owner_and_helpers_get_one_command_and_another_when_they_report_something_else() -> None:
    wanted: Helpers = {P: (S0, S2)}
    split, sent = commands(made(190.0, S1, S2, helpers={P: (S2,)}))
    assert sent == {S0: wanted, S2: wanted}
    assert commands(split, NOW + 1.0)[1] == {}
    assert commands(split, NOW + 10.0)[1] == {S0: wanted, S2: wanted}
    reported = replace(split.members.get(S0), splits=wanted)
    assert commands(with_member(split, S0, reported), NOW + 10.0)[1] == {S2: wanted}
    restarted = with_member(split, S2, alive(99))
    assert commands(restarted, NOW + 1.0)[1] == {S2: wanted}


def test_only_ready_helpers_are_named_and_no_partition_that_moves() -> None:
    starting = made(190.0, S1, helpers={P: (S2,)}, members={S2: alive(12, ready=False)})
    assert commands(starting)[1] == {}
    split = made(190.0, S1, S2, helpers={P: (S2,)})
    moving = changed(split, partitions=split.members.partitions.changed({P: stopping(S0, 10)}))
    assert commands(moving)[1] == {}


@pytest.mark.parametrize("config", [SPLIT, CONFIG])
def test_consumers_get_a_command_when_a_partition_is_split_no_more(config: Any) -> None:
    reporting = alive(12, splits={P: (S0, S2)})
    _, sent = commands(made(20.0, S1, config=config, members={S2: reporting}))
    assert sent == {S2: {}}


def test_slots_with_other_limits_count() -> None:
    large = replace(SPLIT, limits=PerSlot(SPLIT.limits.default, {S0: BytesPerSecond(500.0)}))
    assert not after(made(300.0, S1, S2, config=large))
