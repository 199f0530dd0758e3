"""What the assignor for aiokafka assigns, with a plan and without one."""

from types import SimpleNamespace

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from binwright.protocol import wire
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.scaler.groups.plan_reader import PlanReader
from binwright.scaler.groups.planned_assignor import PlannedAssignor, planned_assignor

NUMBERS = range(4)
CLUSTER = SimpleNamespace(
    topics=lambda: {"orders"},
    partitions_for_topic=lambda _: set(NUMBERS),
    available_partitions_for_topic=lambda _: set(NUMBERS),
)


def plan(*bins: tuple[int, ...], age_ms: int = 0) -> GroupPlan:
    return GroupPlan(
        group="shop",
        generation=0,
        at_ms=wall_ms() - age_ms,
        valid_ms=60_000,
        bins=tuple({TopicPartition("orders", number): 1 for number in one} for one in bins),
        reason="a test",
    )


def assigned(reader: PlanReader, *members: type[PlannedAssignor]) -> list[list[int]]:
    """Have the first of these members assign, by encoded messages."""
    names = [f"m{number}" for number in range(len(members))]
    metadata = {n: m.metadata(["orders"]) for n, m in zip(names, members, strict=True)}
    members[0].plans = reader
    result = members[0].assign(CLUSTER, metadata)
    found = []
    for name, member in zip(names, members, strict=True):
        received = ConsumerProtocolMemberAssignment.decode(result[name].encode())
        member.on_assignment(received)
        found.append([partition.partition for partition in received.partitions()])
    return found


def test_members_get_the_bins_of_the_plan() -> None:
    reader = PlanReader("shop")
    reader.plan = plan((0,), (1, 2, 3))
    assert assigned(reader, planned_assignor(reader), planned_assignor(reader)) == [[0], [1, 2, 3]]


def test_a_member_keeps_what_it_reads_when_the_bins_change() -> None:
    reader = PlanReader("shop")
    members = planned_assignor(reader), planned_assignor(reader)
    reader.plan = plan((0,), (1, 2, 3))
    assigned(reader, *members)
    reader.plan = plan((1, 2), (0, 3))
    assert assigned(reader, *members) == [[0, 3], [1, 2]]


def test_without_a_valid_plan_members_get_as_many_partitions_each() -> None:
    reader = PlanReader("shop")
    reader.plan = plan((0,), (1, 2, 3), age_ms=61_000)
    found = assigned(reader, planned_assignor(reader), planned_assignor(reader))
    assert [len(numbers) for numbers in found] == [2, 2]


def test_a_reader_takes_the_plans_of_its_own_group_only() -> None:
    reader, found = PlanReader("shop"), plan((0,))
    reader.take(b"other", wire.encode(found))
    assert reader.plan is None
    reader.take(b"shop", wire.encode(found))
    assert reader.plan == found


def test_a_record_without_a_value_ends_the_plan() -> None:
    reader = PlanReader("shop")
    reader.plan = plan((0,))
    reader.take(b"shop", None)
    assert reader.valid_plan() is None


def test_a_record_that_is_no_plan_leaves_the_last_one() -> None:
    reader = PlanReader("shop")
    reader.plan = plan((0,))
    reader.take(b"shop", b"{}")
    assert reader.valid_plan() is not None
