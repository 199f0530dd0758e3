"""A group as those see it who send it no commands."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from immutables import Map
from tests.builders import (
    CONFIG,
    LIMIT,
    S0,
    S1,
    C,
    P,
    Q,
    group,
    hello,
    measurement,
    record_read,
    started,
    stopped,
)
from tests.builders import report as built

from binwright.group.config import GroupConfig
from binwright.group.fold import Measured, StateRecord
from binwright.group.group import Group
from binwright.group.observer import observe_measurement, observe_record
from binwright.group.ownership import Owned, Released
from binwright.protocol.metadata import CatchingUp, Claim, Goodbye, LimitsMeasured, StagedShare
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, PerSlot
from binwright.protocol.selection import Selection


def seen(*messages: StateRecord, config: GroupConfig = CONFIG) -> Group:
    """Return what is seen of a group after these records, from offset 1 on."""
    known = group({}, config=config, term=None)
    for offset, message in enumerate(messages, 1):
        known, _ = observe_record(known, record_read(message, offset))
    return known


def measured(topic: str, count: int, **more: Any) -> Measurement:
    rates = [PartitionRate(n, BytesPerSecond(9.0), 30, 5, 0, None) for n in range(count)]
    return measurement(topic, rates, **more)


def test_owners_are_what_consumers_report() -> None:
    both: Sequence[StateRecord] = [
        hello(S0),
        hello(S1),
        built(S0, 1, reading={P: 3, Q: 4}, writing=["orders"]),
    ]
    known = seen(*both, built(S1, 2, reading={Q: 4}))
    assert known.members.assignment() == {P: S0, Q: S0}, (
        "of two that report it the first one has it"
    )
    assert known.members.writers == {"orders": Owned(S0, 1)}
    known = seen(*both, built(S0, 1, reading={P: 5}), built(S1, 2, reading={Q: 4}))
    assert known.members.assignment() == {P: S0, Q: S1}
    assert known.members.writers == {"orders": Released()}
    assert seen(*both, built(S1, 1, reading={P: 3})).members.assignment() == {P: S0, Q: S0}, (
        "another epoch"
    )


def test_a_move_is_seen_before_the_next_reports() -> None:
    before: Sequence[StateRecord] = [
        hello(S0),
        hello(S1),
        built(S0, 1, reading={P: 3}, writing=["orders"]),
    ]
    left = seen(*before, stopped(S0, 1, {P: 5, Q: None}, ["orders"]))
    assert left.members.partitions == {P: Released()}
    assert left.members.writers == {"orders": Released()}
    assert left.members.get(S0).reading == {}
    after = seen(*before, stopped(S0, 1, {P: 5}), started(S1, 2, [P], ["orders"]))
    assert after.members.partitions == {P: Owned(S1, 2)}
    assert after.members.writers == {"orders": Owned(S1, 2)}
    assert after.members.get(S1).reading == {P: 3}


def test_a_split_is_what_its_owner_reports() -> None:
    shares = {P: (StagedShare(S0, 4), StagedShare(S1, 3))}
    split = replace(built(S0, 1, reading=[P]), splits=shares)
    helper = replace(built(S1, 2), splits=shares)
    assert seen(hello(S0), hello(S1), split, helper).members.splits == Map([(P, (S1,))])
    assert not seen(hello(S0), hello(S1), helper).members.splits
    assert not seen(hello(S0), hello(S1), split, built(S0, 1, reading=[P])).members.splits


def test_limits_are_the_last_leaders() -> None:
    claim = Claim(controller="c", limit=LIMIT, slot_limits=((S1, BytesPerSecond(60.0)),))
    given = seen(LimitsMeasured(term=1, limit=BytesPerSecond(7.0)), claim).config
    assert given.limits == PerSlot(LIMIT, {S1: BytesPerSecond(60.0)})
    assert (given.start_limits, given.capacity) == (None, 100.0)
    auto = Claim(controller="c", limit=LIMIT, measured=True)
    assert seen(auto).config.limits == PerSlot(LIMIT)
    measured_before = LimitsMeasured(term=1, limit=BytesPerSecond(240.0))
    assert seen(measured_before, auto).config.capacity == 200.0
    assert seen(auto, measured_before).config.limits == PerSlot(BytesPerSecond(240.0))


def test_what_backlogs_count_for_is_what_the_controller_publishes() -> None:
    needs = {P: BytesPerSecond(50.0)}
    counting = CONFIG.with_settings(catch_up_s=100.0)
    assert seen(CatchingUp(term=1, needs=needs), config=counting).load.catch_up == Map(
        needs.items()
    )
    none = CatchingUp(term=1, needs={})
    assert not seen(CatchingUp(term=1, needs=needs), none, config=counting).load.catch_up


SELECTING = replace(CONFIG, topics=Selection(frozenset({"orders"})))


def test_partitions_of_its_topics_are_unread_until_one_reads_them() -> None:
    known, counts = observe_measurement(
        seen(config=SELECTING), Measured(1.0, measured("orders", 2))
    )
    assert (known.unread(), counts) == ([P, Q], True)
    assert observe_measurement(known, Measured(1.0, measured("clicks", 1))) == (known, False)
    fewer = Measured(2.0, measured("orders", 1, number=1))
    assert observe_measurement(known, fewer)[0].unread() == [P]
    older = Measured(3.0, measured("orders", 1, monitor="another"))
    assert observe_measurement(known, older)[1] is False


def test_of_a_group_whose_topics_are_not_known_those_count_that_it_reads() -> None:
    known = seen(hello(S0), built(S0, 1, reading=[P]))
    other, counts = observe_measurement(known, Measured(1.0, measured("clicks", 1)))
    assert (other.unread(), other.load.rates[C], counts) == ([], 9.0, True)
    assert observe_measurement(other, Measured(1.0, measured("orders", 2)))[0].unread() == [Q]


def test_a_topic_that_is_not_selected_is_gone_once_it_has_no_reader() -> None:
    reads: Sequence[StateRecord] = [hello(S0), built(S0, 1, reading=[C, P])]
    assert seen(*reads, config=SELECTING).members.partitions.keys() == {C, P}
    left = stopped(S0, 1, {C: 5, P: 5})
    assert seen(*reads, left, config=SELECTING).members.partitions.keys() == {P}
    assert seen(*reads, left).members.partitions.keys() == {C, P}
    selected = seen(hello(S0), built(S0, 1, reading=[P]), left, config=SELECTING)
    assert selected.members.partitions.keys() == {P}


def test_what_a_consumer_hands_back_has_no_reader() -> None:
    back = Goodbye(slot=S0, epoch=1, next={P: 5})
    assert seen(hello(S0), built(S0, 1, reading=[P]), back).unread() == [P]


def test_zones_are_known_whether_or_not_they_matter() -> None:
    zones = {"a": (0,)}
    known, _ = observe_measurement(seen(), Measured(1.0, measured("orders", 1, zones=zones)))
    assert known.load.readable_in == Map({"orders": {0: frozenset("a")}})


def test_a_report_of_a_process_that_was_replaced_changes_no_owner() -> None:
    known = seen(hello(S0), built(S0, 1, reading={P: 3}))
    after, _ = observe_record(known, record_read(built(S0, 0, reading={Q: 3}), 9))
    assert after.members.assignment() == {P: S0}


def test_a_report_equal_to_the_one_before_changes_no_owner() -> None:
    known = seen(hello(S0), built(S0, 1, reading={P: 3}))
    after, _ = observe_record(known, record_read(built(S0, 1, reading={P: 5}), 9))
    assert after.members.partitions is known.members.partitions
