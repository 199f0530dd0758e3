"""Which pods a workload's members run in, and what a status remembers of a group."""

import pytest

from binwright.kubernetes.objects import Obj
from binwright.scaler.decide.learning import Estimate, Learnt
from binwright.scaler.decide.members import GroupMember
from binwright.scaler.decide.sizing import ScalingState
from binwright.scaler.objects.cluster import label_query, pod_of
from binwright.scaler.objects.status import learnt_of, state_from


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
