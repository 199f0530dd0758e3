"""What browsers may order, and what they are told."""

import asyncio
import contextlib
from typing import Any

import orjson
import pytest
from tests.look.page.group import GROUP, ORDERS, TOPICS, Group, table

from binwright.kafka.control_records import Decoder
from binwright.look.page.order_desk import OrderDesk
from binwright.protocol import wire
from binwright.protocol.metadata import Accepted
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import (
    AdoptOrder,
    Approved,
    CordonOrder,
    FreezeOrder,
    PinOrder,
    Savings,
    ScaleOrder,
    SimulatedCost,
    decode_order,
)
from binwright.runtime.http import Posted
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import load_settings
from binwright.testing.control_topics import FakeControlTopics, loop_ms

pytestmark = pytest.mark.looptime

P = TopicPartition("orders", 0)
BY = "ann by the page"


class Desk:
    """A desk of a group with two consumers, and what it reported."""

    def __init__(self) -> None:
        self.group = Group(FakeControlTopics({**TOPICS, "orders": 2}))
        self.reported: list[str] = []
        settings = load_settings(group=GROUP, topics=("orders",), controller={"max_slots": 8})

        def connect() -> contextlib.nullcontext[FakeControlTopics]:
            return contextlib.nullcontext(self.group.bus)

        self.desk = OrderDesk(settings, connect, self.reported.append, loop_ms)

    async def start(self) -> "Desk":
        await self.group.claim()
        orders = table(committed={P: 40})
        await self.group.consumer(0, {P: 90}, writing={"orders": orders})
        await self.group.consumer(1, {})
        return self

    async def order(self, user: str = "ann", **asked: Any) -> tuple[int, str]:
        """Send an order; return the status, and what it says."""
        found = await self.desk.take(Posted(orjson.dumps(asked), user))
        (text,) = orjson.loads(found.body).values()
        return found.status, text

    async def published(self) -> list[Any]:
        """Return what people have put into the orders topic."""
        end = await self.group.bus.end(ORDERS, 0)
        reader = await self.group.bus.reader(ORDERS, 0, 0)
        decoder, found = Decoder(decode_order), list[Any]()
        while reader.position < end:
            found += [message for _, message in decoder.decode(await reader.read(1.0))]
        await reader.close()
        return found


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"order": "freeze", "reason": "a release"}, FreezeOrder(frozen=True, by=BY)),
        (
            {"order": "pin", "what": "orders-0", "number": 1, "reason": "its cache"},
            PinOrder(topic="orders", partition=0, slot=Slot(1), by=BY),
        ),
        (
            {"order": "cordon", "number": 1, "reason": "slow"},
            CordonOrder(slot=Slot(1), state="cordoned", by=BY),
        ),
        (
            {"order": "drain", "number": 1, "reason": "a new disk"},
            CordonOrder(slot=Slot(1), state="drained", by=BY),
        ),
        ({"order": "scale", "number": 3, "reason": "load"}, ScaleOrder(consumers=3, by=BY)),
    ],
)
async def test_an_order_stands_in_the_topic(asked: dict[str, Any], expected: Any) -> None:
    desk = await Desk().start()
    assert (await desk.order(**asked))[0] == 200
    (found,) = await desk.published()
    dated = {"at_ms": found.at_ms, "reason": asked["reason"]}
    assert found == type(expected)(**{**wire_fields(expected), **dated})
    assert desk.reported[0].startswith(f"{BY}: ")


def wire_fields(order: Any) -> dict[str, Any]:
    return {name: getattr(order, name) for name in type(order).__slots__}


async def test_a_proposal_is_adopted_and_that_is_lifted() -> None:
    desk = await Desk().start()
    own = SimulatedCost(rule="binwright", replica_minutes=9, within_sla=1)
    proposed = SimulatedCost(
        rule="binwright", change="packing=sticky:4", replica_minutes=8, within_sla=1
    )
    found = Savings(from_ms=0, until_ms=1, sla_s=5, own=own, proposed=proposed, replaces="sticky")
    key, value = wire.key(found), wire.encode(found)
    number = await desk.group.bus.publish(ORDERS, 0, key, value)
    code, text = await desk.order(order="adopt", number=number, reason="cheaper")
    change = f"controller.packing is sticky:4 instead of sticky, as proposal {number} has it"
    assert (code, text) == (200, change)
    _, order = await desk.published()  # the proposal stands in this topic, too
    assert (order, order.by, order.reason) == (order, BY, "cheaper")
    assert isinstance(order, AdoptOrder)
    assert await desk.order(order="unadopt", what="packing") == (
        *(200, "controller.packing is what the settings give"),
    )


@pytest.mark.parametrize(
    ("give", "end"),
    [
        ({"order": "freeze", "reason": "r"}, {"order": "unfreeze"}),
        ({"order": "scale", "number": 2, "reason": "r"}, {"order": "unscale"}),
        ({"order": "drain", "number": 1, "reason": "r"}, {"order": "uncordon", "number": 1}),
        (
            {"order": "pin", "what": "orders", "number": 1, "reason": "r"},
            {"order": "unpin", "what": "orders"},
        ),
    ],
)
async def test_an_order_is_lifted_once(give: dict[str, Any], end: dict[str, Any]) -> None:
    desk = await Desk().start()
    assert (await desk.order(**give))[0] == 200
    assert (await desk.order(**end))[0] == 200
    status, text = await desk.order(**end)
    assert status == 400, text


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({}, "order: Field required"),
        ({"order": "explode"}, "order: Input should be"),
        ({"order": "freeze", "reason": "r", "force": True}, "force: Extra inputs"),
        ({"order": "freeze"}, "a reason is needed"),
        ({"order": "freeze", "reason": "x" * 501}, "501 characters"),
        ({"order": "freeze", "reason": "r", "until": "soon"}, "'soon' is no time"),
        ({"order": "pin", "number": 1, "reason": "r"}, "none is named"),
        ({"order": "pin", "what": "orders", "reason": "r"}, "the number of a consumer"),
        ({"order": "pin", "what": "x-1", "number": 1, "reason": "r"}, "no partition or topic"),
        ({"order": "drain", "number": 8, "reason": "r"}, "controller.max_slots is 8"),
        ({"order": "scale", "number": 0, "reason": "r"}, "1 to 10,000"),
        ({"order": "scale", "number": 10001, "reason": "r"}, "1 to 10,000"),
        ({"order": "drain", "number": 2**40, "reason": "r"}, "there is no consumer"),
        ({"order": "drain", "number": 1.5, "reason": "r"}, "number: Input should be"),
        ({"order": "approve", "number": 3}, "no plan of group eu waits"),
        ({"order": "adopt", "reason": "r"}, "the number of a proposal"),
        ({"order": "adopt", "number": 3, "reason": "r"}, "nothing is proposed to group eu"),
        ({"order": "unadopt"}, "unadopt is about a setting: none is named"),
        ({"order": "unadopt", "what": "mode"}, "mode is not one of packing"),
        ({"order": "unadopt", "what": "packing"}, "is what the settings give already"),
        ({"order": "pause", "what": "x", "reason": "r"}, "no table x"),
        ({"order": "resume", "what": "orders"}, "is not paused"),
    ],
)
async def test_a_bad_order_is_refused_with_what_is_wrong(asked: dict[str, Any], fault: str) -> None:
    desk = await Desk().start()
    status, text = await desk.order(**asked)
    assert status == 400
    assert fault in text
    assert not await desk.published()
    assert not desk.reported


async def test_what_is_no_json_is_refused() -> None:
    desk = await Desk().start()
    found = await desk.desk.take(Posted(b"freeze", "ann"))
    assert (found.status, b"the order: Invalid JSON" in found.body) == (400, True)


async def test_the_user_is_named_as_far_as_there_is_one() -> None:
    desk = await Desk().start()
    await desk.order("", order="freeze", reason="r")
    await desk.order("b\x1b[2Job" + "b" * 300, order="freeze", reason="r")
    first, second = await desk.published()
    assert first.by == "a browser by the page"
    assert second.by.startswith("b[2Jobbb")
    assert len(second.by) == 200


async def test_an_approval_waits_until_a_controller_accepts_it() -> None:
    desk = await Desk().start()
    number = await desk.group.propose({P: 0}, {P: 1})

    async def accept() -> None:
        while not await desk.published():  # noqa: ASYNC110 - only the topic shows it
            await asyncio.sleep(1)
        await desk.group.post(Accepted(term=0, plan=number, targets={P: Slot(1)}))

    async with background_tasks(accept()):
        found = await desk.order(order="approve", number=number)
    assert found == (200, f"plan {number} goes ahead")
    assert await desk.published() == [Approved(plan=number, by=BY)]


async def test_a_pause_waits_until_the_writer_follows() -> None:
    desk = await Desk().start()

    async def follow() -> None:
        await asyncio.sleep(5)
        paused = {"orders": table(state="paused", committed={P: 40})}
        await desk.group.consumer(0, {P: 90}, writing=paused)

    async with background_tasks(follow()):
        status, text = await desk.order(order="pause", what="orders", reason="a migration")
    assert (status, "the table orders is paused: its rows wait" in text) == (200, True)
    assert [(o.table, o.paused, o.by, o.reason) for o in await desk.published()] == [
        ("orders", True, BY, "a migration")
    ]


async def test_a_controller_that_does_not_answer_is_reported_in_time() -> None:
    desk = await Desk().start()
    number = await desk.group.propose({P: 0}, {P: 1})
    status, text = await desk.order(order="approve", number=number)
    assert status == 503
    assert "no controller of group eu has accepted plan" in text
