"""Whom the controllers' group gives partition 0."""

from types import SimpleNamespace

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from binwright.controller.assignor import CountingSticky

CLUSTER = SimpleNamespace(
    topics=lambda: {"metrics"},
    partitions_for_topic=lambda _: {0},
    available_partitions_for_topic=lambda _: {0},
)


class Member:
    """A controller's side of the group: what it brings, and what it was given."""

    def __init__(self) -> None:
        self.assignor: type[CountingSticky] = type("Sticky", (CountingSticky,), {})

    @property
    def leads(self) -> bool:
        return bool(self.assignor.member_assignment)


def rebalance(**members: Member) -> None:
    """Let the first of these members assign, over the wire."""
    first, *_ = members.values()
    brought = {name: member.assignor.metadata(["metrics"]) for name, member in members.items()}
    for name, given in first.assignor.assign(CLUSTER, brought).items():
        wire = ConsumerProtocolMemberAssignment.decode(given.encode())
        members[name].assignor.on_assignment(wire)


def test_who_leads_goes_on_when_others_come() -> None:
    one, two = Member(), Member()
    rebalance(b=one)
    rebalance(a=two, b=one)
    assert (one.leads, two.leads) == (True, False)


def test_who_slept_through_its_session_does_not_take_the_lead_back() -> None:
    """Both bring partition 0; whichever name comes first, the later generation counts."""
    for sleeper, chosen in ("ab", "ba"):
        slept, leads = Member(), Member()
        rebalance(**{sleeper: slept})
        rebalance(**{sleeper: slept, chosen: leads})
        rebalance(**{chosen: leads})  # the other's session is over
        for _ in range(2):  # later too, when the numbers of the two have met
            rebalance(**dict(sorted([(sleeper, slept), (chosen, leads)])))
            assert (leads.leads, slept.leads) == (True, False)


def test_an_assignor_that_does_not_count_is_no_trouble() -> None:
    """A controller of the version before may be the one who assigns."""
    member = Member()
    member.assignor.on_assignment(ConsumerProtocolMemberAssignment(0, [("metrics", [0])], b""))
    assert member.leads
    assert member.assignor.generation == CountingSticky.DEFAULT_GENERATION_ID
