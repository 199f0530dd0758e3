"""A ConsumerGroup whose plans wait: shown in its status, carried out by an annotation.

Kafka is a fake here, and no pod ever says Hello; `test_group_object` does it for real.
"""

import pytest

from binwright.controller.kube.api import Obj

from .site import until
from .test_groups import Board, board

__all__ = ["board"]

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]


async def shown(board: Board, *rates: float, other_than: int | None = None) -> Obj:
    """Measure until a plan waits; return it as the object's status shows it."""
    found: Obj = {}

    async def waits() -> bool:
        await board.measure("orders", *rates)
        found.clear()
        found.update((await board.status("orders")).get("proposal") or {})
        return found.get("plan", other_than) != other_than

    await until(waits)
    return found


async def annotate(board: Board, value: object) -> None:
    note = f"binwright.dev/approve={value}"
    site = board.site
    arguments = ("annotate", "consumergroup", "orders", note, "--overwrite")
    await site.plane.kubectl("-n", site.namespace, *arguments)


async def test_a_plan_waits_for_the_annotation_with_its_number(board: Board) -> None:
    await board.make("orders", topics=["orders"], mode="approve")
    plan = await shown(board, 600.0, 500.0)
    assert (plan["waits"], plan["consumers"], plan["starts"]) == (True, 2, 2)
    assert {c["partition"] for c in plan["changes"]} == {"orders-0", "orders-1"}
    await board.site.hear("PlanProposed", f"binwright.dev/approve={plan['plan']}")
    listed = await board.site.plane.kubectl("-n", board.site.namespace, "get", "cg", "orders")
    assert str(plan["plan"]) in listed.splitlines()[1].split()

    await annotate(board, plan["plan"] + 7)
    await board.site.hear("ApprovalRefused", f"plan {plan['plan']} does")
    await annotate(board, "yes")
    await board.site.hear("ApprovalRefused", "expected a plan's number")
    assert not await board.site.slots()

    await annotate(board, plan["plan"])

    async def carried_out() -> bool:
        await board.measure("orders", 600.0, 500.0)
        return {0, 1} <= await board.site.slots()

    await until(carried_out)
    await board.site.hear("PlanApproved", f"plan {plan['plan']}")

    async def told() -> bool:
        status = await board.status("orders")
        done: bool = status.get("lastPlan", {}).get("carriedOut", False)
        return done and "proposal" not in status and status["approvalSeen"] == str(plan["plan"])

    await until(told)


async def test_a_plan_out_of_date_is_replaced_by_one_with_another_number(board: Board) -> None:
    await board.make("orders", topics=["orders"], mode="approve")
    first = await shown(board, 600.0, 500.0)
    second = await shown(board, 600.0, 500.0, 400.0, other_than=first["plan"])
    assert second["starts"] == 3
    await board.site.hear("PlanWithdrawn", "partitions have come or gone")
    await annotate(board, first["plan"])
    await board.site.hear("ApprovalRefused", f"plan {first['plan']} does not wait")
    assert not await board.site.slots()
    await annotate(board, second["plan"])

    async def carried_out() -> bool:
        await board.measure("orders", 600.0, 500.0, 400.0)
        return bool(await board.site.slots())

    await until(carried_out)


async def test_every_budget_can_be_set_and_is_checked(board: Board) -> None:
    for name in ("lookAgain", "consumerTimeout", "startTimeout", "planTimeout", "repeat"):
        refused = await board.refused("bad", topics=["a"], budgets={f"{name}Seconds": 0})
        assert f"{name}Seconds" in refused
        await board.make("good", topics=["a"], budgets={f"{name}Seconds": 45})
    assert "unknown field" in await board.refused("bad", topics=["a"], budgets={"patience": 3})
