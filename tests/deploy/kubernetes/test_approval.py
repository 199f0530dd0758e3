"""A ConsumerGroup whose plans wait for approval: shown in its status, approved by an annotation.

Kafka is a fake here, and no pod sends a Hello; `test_group_object` has a real Kafka.
"""

import pytest
from tests.deploy.kubernetes.sandbox import until

from binwright.kubernetes.objects import Obj

from .test_groups import GroupsHarness, harness

__all__ = ["harness"]

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]


async def waiting_plan(harness: GroupsHarness, *rates: float, other_than: int | None = None) -> Obj:
    """Publish rates until a plan waits; return it as the object's status shows it."""
    found: Obj = {}

    async def waits() -> bool:
        await harness.measure("orders", *rates)
        found.clear()
        found.update((await harness.status("orders")).get("proposal") or {})
        return found.get("plan", other_than) != other_than

    await until(waits)
    return found


async def annotate(harness: GroupsHarness, value: object) -> None:
    annotation = f"binwright.dev/approve={value}"
    sandbox = harness.sandbox
    arguments = ("annotate", "consumergroup", "orders", annotation, "--overwrite")
    await sandbox.plane.kubectl("-n", sandbox.namespace, *arguments)


async def test_a_plan_waits_for_the_annotation_with_its_number(harness: GroupsHarness) -> None:
    await harness.apply("orders", topics=["orders"], mode="approve")
    plan = await waiting_plan(harness, 600.0, 500.0)
    assert (plan["waits"], plan["consumers"], plan["starts"]) == (True, 2, 2)
    assert {c["partition"] for c in plan["changes"]} == {"orders-0", "orders-1"}
    await harness.sandbox.wait_for_event("PlanProposed", f"binwright.dev/approve={plan['plan']}")
    listed = await harness.sandbox.plane.kubectl(
        "-n", harness.sandbox.namespace, "get", "cg", "orders"
    )
    assert str(plan["plan"]) in listed.splitlines()[1].split()

    await annotate(harness, plan["plan"] + 7)
    await harness.sandbox.wait_for_event("ApprovalRefused", f"plan {plan['plan']} does")
    await annotate(harness, "yes")
    await harness.sandbox.wait_for_event("ApprovalRefused", "expected a plan's number")
    assert not await harness.sandbox.slots()

    await annotate(harness, plan["plan"])

    async def carried_out() -> bool:
        await harness.measure("orders", 600.0, 500.0)
        return {0, 1} <= await harness.sandbox.slots()

    await until(carried_out)
    await harness.sandbox.wait_for_event("PlanApproved", f"plan {plan['plan']}")

    async def shown() -> bool:
        status = await harness.status("orders")
        done: bool = status.get("lastPlan", {}).get("carriedOut", False)
        return done and "proposal" not in status and status["approvalSeen"] == str(plan["plan"])

    await until(shown)


async def test_every_budget_can_be_set_and_is_checked(harness: GroupsHarness) -> None:
    for name in (
        "replanInterval",
        "consumerTimeout",
        "startTimeout",
        "planTimeout",
        "commandRetry",
    ):
        refused = await harness.refused("bad", topics=["a"], budgets={f"{name}Seconds": 0})
        assert f"{name}Seconds" in refused
        await harness.apply("good", topics=["a"], budgets={f"{name}Seconds": 45})
    assert "unknown field" in await harness.refused("bad", topics=["a"], budgets={"patience": 3})
