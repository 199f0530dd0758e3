"""Which controller the group assigns partition 0."""

from types import SimpleNamespace

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from binwright.kafka.generation_sticky import GenerationStickyAssignor

CLUSTER = SimpleNamespace(
    topics=lambda: {"metrics"},
    partitions_for_topic=lambda _: {0},
    available_partitions_for_topic=lambda _: {0},
)


class Member:
    """A controller's side of the group: the assignor with its state."""

    def __init__(self) -> None:
        self.assignor: type[GenerationStickyAssignor] = type(
            "Sticky", (GenerationStickyAssignor,), {}
        )

    @property
    def leads(self) -> bool:
        return bool(self.assignor.member_assignment)


def rebalance(**members: Member) -> None:
    """Have the first of these members assign, by encoded messages."""
    first, *_ = members.values()
    metadata = {name: member.assignor.metadata(["metrics"]) for name, member in members.items()}
    for name, assignment in first.assignor.assign(CLUSTER, metadata).items():
        wire = ConsumerProtocolMemberAssignment.decode(assignment.encode())
        members[name].assignor.on_assignment(wire)


def test_the_leader_goes_on_leading_when_members_join() -> None:
    one, two = Member(), Member()
    rebalance(b=one)
    rebalance(a=two, b=one)
    assert (one.leads, two.leads) == (True, False)


def test_a_controller_suspended_beyond_its_session_does_not_take_leadership_back() -> None:
    """Both send partition 0; whichever name sorts first, the later generation wins."""
    for old_name, new_name in ("ab", "ba"):
        old, new = Member(), Member()
        rebalance(**{old_name: old})
        rebalance(**{old_name: old, new_name: new})
        rebalance(**{new_name: new})  # the other one's session has expired
        for _ in range(2):  # the second time, when both have the same generation
            rebalance(**dict(sorted([(old_name, old), (new_name, new)])))
            assert (new.leads, old.leads) == (True, False)


def test_an_assignment_without_a_generation_is_accepted() -> None:
    """The assigning controller may be of an earlier version."""
    member = Member()
    member.assignor.on_assignment(ConsumerProtocolMemberAssignment(0, [("metrics", [0])], b""))
    assert member.leads
    assert member.assignor.generation == GenerationStickyAssignor.DEFAULT_GENERATION_ID
