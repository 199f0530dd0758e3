"""Which pods a workload's members run in, and what a status remembers of a group."""

import pytest

from binwright.kubernetes.objects import Obj
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.learning import Estimate, Learnt
from binwright.scaler.decide.members import GroupMember
from binwright.scaler.decide.sizing import ReplicaUsage, ScalingState, Verdict
from binwright.scaler.objects.cluster import label_query, pod_of
from binwright.scaler.objects.status import learnt_of, numbers_of, state_from
from binwright.scaler.passes import ScaledTarget


@pytest.mark.parametrize(
    ("selector", "query"),
    [
        ({"matchLabels": {"app": "a", "tier": "b"}}, "app=a,tier=b"),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "app"),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, "!app"),
        (
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
            "app in (a,b)",
        ),
        ({}, ""),
    ],
)
def test_a_selector_is_written_as_a_query(selector: Obj, query: str) -> None:
    assert label_query(selector) == query


ADDRESSES = {"w-1": "10.0.0.1", "w-2": "10.0.0.2", "w-3": "10.0.0.9", "w-4": "10.0.0.9"}


@pytest.mark.parametrize(
    ("fields", "pod"),
    [
        ({"instance": "w-2", "host": "10.0.0.1"}, "w-2"),
        ({"client": "w-1"}, "w-1"),
        ({"client": "consumer-orders-1", "host": "10.0.0.2"}, "w-2"),
        ({"client": "consumer-orders-1", "host": "10.0.0.9"}, None),  # two pods of a node's network
        ({"client": "consumer-orders-1", "host": "10.0.0.7"}, None),
    ],
)
def test_a_member_is_found_by_its_name_or_by_an_address_of_its_own(
    fields: dict[str, str], pod: str | None
) -> None:
    member = GroupMember(topics=frozenset(), **fields)  # type: ignore[arg-type]
    assert pod_of(member, ADDRESSES) == pod


def test_what_was_learnt_is_remembered_with_about_its_confidence() -> None:
    before = Learnt(start_s=Estimate((4.0,) * 6), commit_interval_s=Estimate((1.0, 9.0)))
    shown = learnt_of(before)
    assert shown["start"] == {"seconds": 4.0, "samples": 6, "confidence": 0.75}
    after = state_from({"learnt": shown}, 0.0, 0.0).learnt
    assert after.start_s == Estimate((4.0,) * 6)
    assert after.commit_interval_s.known(5.0) == 5.0
    assert state_from({}, 0.0, 0.0) == ScalingState()


def test_what_was_saved_is_shown_and_counted_on_by_the_next_scaler() -> None:
    config = ScaledGroupSettings(group="orders", records_per_s=100.0, before_replicas=6.0)
    target = ScaledTarget("shop/orders", config, None)
    assert numbers_of(target) == {}
    target.verdict = Verdict(current=2, wanted=2, reasons=())
    assert "usage" not in numbers_of(target)
    target.state = ScalingState(usage=ReplicaUsage(seconds=600.0, replica_s=1_200.0, looked_s=7.0))
    shown = numbers_of(target)["usage"]
    assert shown == {"minutes": 10, "replicaMinutes": 20, "savedReplicaMinutes": 40}
    assert state_from({"usage": shown}, 0.0, 0.0).usage == ReplicaUsage(600.0, 1_200.0)
    target.config = ScaledGroupSettings(group="orders")
    assert numbers_of(target)["usage"] == {"minutes": 10, "replicaMinutes": 20}
