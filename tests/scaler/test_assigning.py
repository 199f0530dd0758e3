"""The scaler's loop for a group that it also assigns, on virtual time."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest
from tests.scaler.fakes import FakeKafka, FakeWorkload
from tests.scaler.test_passes import run_for

from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.model import TopicPartition
from binwright.scaler.assigning import Assigner
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.members import GroupDescription, GroupMember
from binwright.scaler.passes import ScaledTarget, Scaler

pytestmark = pytest.mark.looptime
GROUP = "orders"
CONFIG = ScaledGroupSettings(
    group=GROUP,
    min_replicas=1,
    max_replicas=10,
    records_per_s=100.0,
    assigns=True,
    cooldown_down_s=0.0,
)


def group(*owned: Iterable[int], state: str = "Stable") -> GroupDescription:
    members = {
        f"m{n}": GroupMember(
            topics=frozenset({GROUP}), owned=frozenset(TopicPartition(GROUP, one) for one in each)
        )
        for n, each in enumerate(owned)
    }
    return GroupDescription(state, "binwright", members)


@dataclass
class FakePlans:
    """Takes plans, and has the group read what `after` says when it is made to rebalance."""

    kafka: FakeKafka
    after: GroupDescription | None = None
    refuses: str = ""
    before: GroupPlan | None = None
    valid_s: float = 600.0
    published: list[GroupPlan] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    async def publish(self, plan: GroupPlan) -> None:
        self.published.append(plan)
        self.log.append(f"plan for {len(plan.bins)}")

    async def last(self, group: str) -> GroupPlan | None:
        self.log.append(f"last of {group}")
        return self.before

    async def rebalance(self, group: str, protocol: str, topic: str) -> None:
        if self.refuses:
            raise BrokerUnavailable(self.refuses)
        self.log.append(f"rebalance {group} {protocol} {topic}")
        if self.after is not None:
            self.kafka.descriptions[group] = self.after

    async def request_assignment(self, group: str) -> None:
        self.log.append(f"request {group}")
        if self.refuses:
            raise BrokerUnavailable(self.refuses)


class LoggedWorkload(FakeWorkload):
    """Says in the log of the plans when it is set to a number."""

    def __init__(self, replicas: int, plans: FakePlans) -> None:
        super().__init__(replicas)
        self.plans = plans

    async def scale(self, replicas: int, ending: Iterable[str] = ()) -> None:
        self.plans.log.append(f"scale to {replicas}")
        await super().scale(replicas, list(ending))


def scene(
    rates: list[float], replicas: int, seen: GroupDescription, **plans: object
) -> tuple[Scaler, FakePlans, LoggedWorkload, ScaledTarget]:
    kafka = FakeKafka(rates={GROUP: rates}, descriptions={GROUP: seen})
    made = FakePlans(kafka, **plans)  # type: ignore[arg-type]
    workload = LoggedWorkload(replicas, made)
    target = ScaledTarget(GROUP, CONFIG, workload)
    scaler = Scaler(lambda: {GROUP: target}, kafka, kafka, 10.0, 2.0)
    scaler.assigner = Assigner(made)
    return scaler, made, workload, target


def emptying(target: ScaledTarget) -> bool:
    return target.state.emptying is not None


async def test_the_plan_is_published_before_the_members_are_ordered() -> None:
    scaler, plans, workload, _ = scene([40.0] * 4, 1, group(range(4)))
    await run_for(scaler, 1)
    assert plans.log == [f"last of {GROUP}", "plan for 2", "scale to 2"]
    assert workload.replicas == 2


async def test_a_replica_is_emptied_and_then_ended_by_its_name() -> None:
    after = group([0, 1, 2, 3], [])
    scaler, plans, workload, target = scene([10.0] * 4, 2, group([0, 1, 2], [3]), after=after)
    await run_for(scaler, 1)
    assert plans.log[1:] == ["plan for 1", f"rebalance {GROUP} binwright {GROUP}"]
    assert plans.published[-1].leaving == ("m1",)
    assert emptying(target)

    await run_for(scaler, 11)
    assert plans.log[3:] == ["scale to 1"]
    assert workload.ended == ["pod-m1"]
    assert not emptying(target)


async def test_a_replica_that_still_reads_something_is_waited_for() -> None:
    scaler, plans, _, _ = scene([10.0] * 4, 2, group([0, 1, 2], [3]))
    await run_for(scaler, 25)
    assert "scale to 1" not in plans.log


async def test_what_cannot_be_emptied_now_is_a_fault_and_tried_again() -> None:
    scaler, plans, workload, target = scene(
        [10.0] * 4, 2, group([0, 1, 2], [3]), refuses="no broker"
    )
    await run_for(scaler, 1)
    assert (target.fault, target.state.emptying, workload.orders) == ("no broker", None, [])
    plans.refuses, plans.after = "", group([0, 1, 2, 3], [])
    await run_for(scaler, 21)
    assert (target.fault, workload.orders) == ("", [1])


async def test_an_unexpected_error_of_an_order_is_shown() -> None:
    scaler, plans, workload, target = scene([40.0] * 4, 1, group(range(4)))

    async def publish(plan: GroupPlan) -> None:
        raise RuntimeError(f"plan {plan.generation}")

    plans.publish = publish  # type: ignore[method-assign]
    await run_for(scaler, 1)
    assert target.fault == "RuntimeError: plan 0; the scaler's log has the traceback"
    assert workload.orders == []


async def test_a_group_that_cannot_be_described_keeps_its_replicas() -> None:
    scaler, plans, workload, target = scene([40.0] * 4, 1, group(range(4)))
    scaler.groups.undescribed = "no coordinator"  # type: ignore[attr-defined]
    await run_for(scaler, 1)
    assert (target.fault, workload.orders, plans.log) == ("no coordinator", [], [])


async def test_plans_are_counted_on_from_the_last_one_of_an_earlier_scaler() -> None:
    before = GroupPlan(group=GROUP, generation=7, at_ms=0, valid_ms=1, bins=(), reason="before")
    scaler, plans, _, _ = scene([40.0] * 4, 1, group(range(4)), before=before)
    await run_for(scaler, 1)
    assert plans.published[-1].generation == 8


async def test_an_uneven_group_is_evened_out_without_a_change_of_its_number() -> None:
    seen = group([0, 1, 2], [])
    scaler, plans, workload, _ = scene([60.0, 20.0, 40.0], 2, seen)
    await run_for(scaler, 1)
    assert plans.log[1:] == ["plan for 2", f"rebalance {GROUP} binwright {GROUP}"]
    assert workload.orders == []


# --- members that somebody else runs --------------------------------------------------------------


def others(rates: list[float], seen: GroupDescription) -> tuple[Scaler, FakePlans, ScaledTarget]:
    """Return the scene of a group whose number of members somebody else sets."""
    scaler, plans, _, target = scene(rates, 0, seen)
    target.workload = None
    return scaler, plans, target


def measured(scaler: Scaler) -> dict[str, float]:
    prefix = "binwright_scaled_group_"
    return {each.name.removeprefix(prefix): each.value for each in scaler.group_samples()}


async def test_members_of_others_are_assigned_and_their_number_is_left_alone() -> None:
    scaler, plans, target = others([90.0, 40.0, 30.0, 20.0], group([0, 1, 2], [3]))
    plans.after = group([0], [1, 2, 3])
    await run_for(scaler, 25)
    assert plans.log[1:] == ["plan for 2", f"rebalance {GROUP} binwright {GROUP}"]
    assert target.problem == ""
    found = measured(scaler)
    assert (found["replicas"], found["imbalance"]) == (2, 1.0)
    assert (found["rebalances_total"], found["moved_partitions_total"]) == (1, 2)
    assert (found["plan_generation"], found["fault"]) == (0, 0)


async def test_members_of_others_that_are_too_few_or_too_many_get_no_order() -> None:
    for rates in ([95.0] * 4, [1.0] * 4):
        scaler, plans, target = others(rates, group([0, 1], [2, 3]))
        await run_for(scaler, 25)
        assert plans.log == [f"last of {GROUP}", "plan for 2"], "what they read, so that it stays"
        verdict = target.verdict
        assert verdict is not None
        assert (verdict.order, verdict.proposal, verdict.current) == (None, None, 2)
        assert verdict.wanted != 2, "what they need is shown"


async def test_members_of_others_with_another_assignor_are_a_fault() -> None:
    seen = replace(group([0, 1], [2, 3]), protocol="range")
    scaler, plans, target = others([10.0] * 4, seen)
    await run_for(scaler, 1)
    assert plans.log == []
    assert target.problem == "nothing is assigned: the group uses the assignor range"


async def test_a_group_of_others_without_members_has_no_fault() -> None:
    scaler, plans, target = others([10.0] * 4, GroupDescription("Empty", "", {}))
    await run_for(scaler, 1)
    assert (plans.log, target.problem) == ([], "")


async def test_a_group_of_others_that_cannot_be_described_has_a_fault() -> None:
    scaler, plans, target = others([10.0] * 4, group([0, 1], [2, 3]))
    scaler.groups.undescribed = "no coordinator"  # type: ignore[attr-defined]
    await run_for(scaler, 1)
    assert (plans.log, target.problem) == ([], "no coordinator")


async def test_the_broker_is_asked_to_assign_an_uneven_group_of_kip_848_and_gets_no_plan() -> None:
    seen = replace(group([0, 1, 2], []), type="consumer")
    scaler, plans, target = others([60.0, 20.0, 40.0], seen)
    await run_for(scaler, 1)
    assert (plans.log, plans.published) == ([f"request {GROUP}"], [])
    assert measured(scaler)["rebalances_total"] == 1

    scaler.groups.descriptions[GROUP] = replace(group([0], [1, 2]), type="consumer")  # type: ignore[attr-defined]
    await run_for(scaler, 60)
    assert (plans.log, target.problem) == ([f"request {GROUP}"], "")


async def test_a_request_to_the_broker_that_fails_is_a_fault_and_not_repeated_at_once() -> None:
    seen = replace(group([0, 1, 2], []), type="consumer")
    scaler, plans, target = others([60.0, 20.0, 40.0], seen)
    plans.refuses = "no coordinator"
    await run_for(scaler, 25)
    assert (plans.log, target.problem) == ([f"request {GROUP}"], "no coordinator")
    await run_for(scaler, 15)
    assert (plans.log, target.problem) == ([f"request {GROUP}"] * 2, "no coordinator")
    plans.refuses = ""
    await run_for(scaler, 45)
    assert (plans.log, target.problem) == ([f"request {GROUP}"] * 3, "")
