"""People's orders and the settings' budgets, on virtual time: each holds, and loses no record."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.simulation.world import CONFIG, METADATA, ORDERS, P, World, until, world

from binwright.controller.decide.states import Sentinel
from binwright.protocol import wire
from binwright.protocol.metadata import Held, Planned
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import (
    AdoptOrder,
    Approved,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    OrderRecord,
    PinOrder,
    ScaleOrder,
)
from binwright.testing.control_topics import READ_RECORDS, FakeControlTopics, loop_ms

pytestmark = pytest.mark.looptime(noop_cycles=1)

LOW_LOAD, HIGH_LOAD = dict.fromkeys(P, 20_000.0), dict.fromkeys(P, 40_000.0)
A_WHILE_S = 60.0  # three times the interval at which smaller groups are looked for


def freeze(*, frozen: bool = True, until_ms: int = 0) -> FreezeOrder:
    return FreezeOrder(frozen=frozen, by="alice", reason="release", until_ms=until_ms)


def drain(slot: int, state: Any = "drained") -> CordonOrder:
    return CordonOrder(slot=Slot(slot), state=state, by="bob")


def pin(partition: TopicPartition, slot: int | None) -> PinOrder:
    to = None if slot is None else Slot(slot)
    return PinOrder(topic=partition.topic, partition=partition.partition, slot=to, by="alice")


def assigned(w: World) -> Mapping[TopicPartition, Slot]:
    return dict(w.group().members.assignment())


def held(w: World) -> tuple[str, ...]:
    return w.sent(Held)[-1].reasons if w.sent(Held) else ()


async def settled(w: World, load: Mapping[TopicPartition, float], consumers: int) -> None:
    w.load(load)
    await until(lambda: len(w.fleet.running) == consumers and w.steady())


async def test_a_freeze_holds_moves_until_it_ends_and_a_dead_consumers_partitions_move() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, HIGH_LOAD, 2)
        await w.order(freeze(until_ms=loop_ms() + 200_000))
        w.load(dict.fromkeys(P, 65_000.0))
        before = assigned(w)
        await asyncio.sleep(A_WHILE_S)
        assert assigned(w) == before
        assert "moves are frozen by alice until" in held(w)[0]
        assert "'release'; waits: consumer 0 carries" in held(w)[0]

        w.fleet.kill(Slot(1))
        lost = {p for p, slot in before.items() if slot == 1}
        await until(lambda: w.steady() and all(p in w.group().members.assignment() for p in lost))
        stayed = {p: slot for p, slot in before.items() if slot == 0}
        assert stayed.items() <= assigned(w).items(), "what has a reader has not moved"
        await until(lambda: w.group().people.controls.frozen == "", timeout_s=300)
        await until(lambda: len(set(assigned(w).values())) == 4 and w.steady())
        assert held(w) == ()
        await w.all_landed_once()


async def test_frozen_hours_hold_moves_until_they_end() -> None:
    """The virtual clock begins at midnight."""
    config = CONFIG.with_settings(frozen_hours=("23:55-00:04",))
    async with world({"orders": 4}, config) as w:
        w.load(LOW_LOAD)
        await until(lambda: w.steady() and len(w.fleet.running) == 1)  # what has no reader gets one
        w.load(HIGH_LOAD)
        await asyncio.sleep(A_WHILE_S)
        assert len(set(assigned(w).values())) == 1
        await until(lambda: len(set(assigned(w).values())) == 2 and w.steady(), timeout_s=300)
        assert loop_ms() >= 240_000
        await w.all_landed_once()


async def test_a_pinned_partition_goes_to_its_consumer_and_stays_there() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, LOW_LOAD, 1)
        await w.order(pin(P[2], 3))
        await until(lambda: w.steady() and assigned(w)[P[2]] == 3)
        await asyncio.sleep(A_WHILE_S)
        assert assigned(w)[P[2]] == 3
        w.fleet.kill(Slot(3))
        await until(lambda: w.fleet.starts[Slot(3)] == 2 and w.steady() and assigned(w)[P[2]] == 3)
        await w.order(pin(P[2], None))
        await until(lambda: len(set(assigned(w).values())) == 1 and w.steady())
        await w.all_landed_once()


async def test_a_drained_consumer_gives_up_all_ends_and_is_not_used_until_it_is_open() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, HIGH_LOAD, 2)
        await w.order(drain(0))
        await until(lambda: 0 not in w.fleet.running and w.steady())
        w.load(dict.fromkeys(P, 70_000.0))
        await until(lambda: len(w.fleet.running) == 4 and w.steady())
        assert 0 not in assigned(w).values()
        await w.order(drain(0, "open"))
        w.load(dict.fromkeys(P, 20_000.0))
        await w.all_landed_once()


async def test_a_cordoned_consumer_gets_nothing_more_and_keeps_what_it_has() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, HIGH_LOAD, 2)
        mine = {p for p, slot in assigned(w).items() if slot == 1}
        await w.order(drain(1, "cordoned"))
        w.fleet.kill(Slot(0))
        await until(lambda: w.steady() and {p for p, s in assigned(w).items() if s == 1} == mine)
        assert set(assigned(w)) == set(P)
        await w.all_landed_once()


async def test_a_group_is_scaled_to_a_number_until_a_time() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, LOW_LOAD, 1)
        await w.order(ScaleOrder(consumers=3, by="bob", until_ms=loop_ms() + 180_000))
        await until(lambda: len(set(assigned(w).values())) == 3 and w.steady())
        plans = len(w.sent(Planned))
        await asyncio.sleep(A_WHILE_S)
        assert len(w.sent(Planned)) == plans
        await until(lambda: len(set(assigned(w).values())) == 1 and w.steady(), timeout_s=200)
        await w.all_landed_once()


async def test_a_group_runs_by_adopted_settings_until_that_is_lifted() -> None:
    """Its own interval, 20 s, saves a consumer where the adopted one waits."""
    async with world({"orders": 4}) as w:
        await settled(w, HIGH_LOAD, 2)
        adopted = AdoptOrder(
            setting="replan_interval_s", value="3600", replaces="20", proposal=7, by="carol"
        )
        await w.order(adopted)
        packing = replace(adopted, setting="packing", value="sticky:4", replaces="sticky")
        await w.order(packing)
        w.load(LOW_LOAD)
        await asyncio.sleep(A_WHILE_S)
        assert len(w.fleet.running) == 2
        await w.order(replace(adopted, value=None))
        await until(lambda: len(w.fleet.running) == 1 and w.steady())
        assert w.group().people.controls.packing == "sticky:4"
        await w.all_landed_once()


async def test_a_controller_with_other_settings_does_not_take_what_is_adopted() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, HIGH_LOAD, 2)
        await w.order(
            AdoptOrder(setting="replan_interval_s", value="3600", replaces="60", by="carol")
        )
        w.load(LOW_LOAD)
        await until(lambda: len(w.fleet.running) == 1 and w.steady())
        assert "the settings give 20 by now" in held(w)[0]
        await w.all_landed_once()


async def test_fewer_consumers_than_the_load_needs_are_an_overload_that_is_shown() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, HIGH_LOAD, 2)
        await w.order(ScaleOrder(consumers=1, by="bob"))
        await until(lambda: len(set(assigned(w).values())) == 1 and w.steady())
        await until(lambda: "of its limit: scaled to 1 consumer by bob" in "".join(held(w)))
        plans = len(w.sent(Planned))
        await asyncio.sleep(A_WHILE_S)
        assert len(w.sent(Planned)) == plans
        await w.all_landed_once()


async def test_a_budget_of_moves_is_kept_and_by_the_next_controller() -> None:
    """That an hour ends is decided, and tested, in the budgets of `tests/group`."""
    async with world({"orders": 4}, CONFIG.with_settings(moves_per_hour=1)) as w:
        await settled(w, LOW_LOAD, 1)
        w.load(dict.fromkeys(P, 65_000.0))  # each needs a consumer
        await until(lambda: len(set(assigned(w).values())) == 2 and w.steady())
        await until(lambda: "controller.moves_per_hour" in "".join(held(w)))
        w.kill_controller()
        w.start_controller()
        await until(lambda: isinstance(w.controllers[-1].state, Sentinel))
        before = assigned(w)
        await asyncio.sleep(A_WHILE_S)
        assert assigned(w) == before
        assert all(len(plan.moves) <= 1 for plan in w.sent(Planned))
        await w.all_landed_once()


async def test_orders_survive_the_controller_that_received_them() -> None:
    orders: list[GroupOrder] = [pin(P[1], 2), drain(0), freeze()]
    async with world({"orders": 4}) as w:
        await settled(w, LOW_LOAD, 1)
        for order in orders:
            await w.order(order)
        await asyncio.sleep(5)
        w.kill_controller()
        w.start_controller()
        await until(lambda: isinstance(w.controllers[-1].state, Sentinel))
        await until(lambda: len(held(w)) == 2)
        assert set(w.group().people.controls.orders) == set(orders)
        await w.order(freeze(frozen=False))
        await until(lambda: w.steady() and assigned(w)[P[1]] == 2 and 0 not in w.fleet.running)
        await w.all_landed_once()


async def test_a_record_that_is_no_order_is_skipped() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, LOW_LOAD, 1)
        bus: FakeControlTopics = w.bus
        for value in (b'{"kind":"pin/1","topic":"../x"}', b'{"kind":"scale/1","consumers":-1}'):
            await bus.publish(ORDERS, 0, b"pin/x", value)
        await w.order(pin(P[0], 1))
        await until(lambda: w.steady() and assigned(w)[P[0]] == 1)
        assert len(w.group().people.controls.orders) == 1


async def test_an_order_among_the_reports_of_consumers_changes_nothing_and_is_named() -> None:
    """Whoever may report as a consumer may not give orders."""
    with capture_logs() as logs:
        async with world({"orders": 4}) as w:
            await settled(w, LOW_LOAD, 1)
            forged: list[OrderRecord] = [freeze(), drain(0), ScaleOrder(consumers=4, by="alice")]
            for order in [*forged, Approved(plan=1, by="alice")]:
                await w.bus.publish(METADATA, 0, wire.key(order), wire.encode(order))
            await asyncio.sleep(A_WHILE_S)
            w.kill_controller()
            w.start_controller()
            await until(lambda: isinstance(w.controllers[-1].state, Sentinel))
            await asyncio.sleep(A_WHILE_S)
            assert w.group().people.controls.orders == ()
            assert len(w.fleet.running) == 1
            await w.all_landed_once()
    unknown = {log["reason"] for log in logs if log["event"] == "message.unknown"}
    assert any("no right to give orders" in reason for reason in unknown)


async def test_compaction_keeps_the_newest_order_about_each_thing() -> None:
    async with world({"orders": 4}) as w:
        await settled(w, LOW_LOAD, 1)
        for order in (freeze(), drain(7), freeze(frozen=False), drain(6)):
            await w.order(order)
        w.bus.compact(ORDERS, 0)
        w.kill_controller()
        w.start_controller()
        await until(lambda: isinstance(w.controllers[-1].state, Sentinel))
        assert set(w.group().people.controls.orders) == {drain(6), drain(7)}


async def test_a_leader_reads_all_orders_before_it_acts() -> None:
    """More of them than one read returns, the last of which stops all moves."""
    async with world({"orders": 4}) as w:
        await settled(w, LOW_LOAD, 1)
        w.kill_controller()
        for number in range(READ_RECORDS + 10):
            await w.order(drain(number % 50 + 10, "cordoned"))
        await w.order(freeze())
        w.load(dict.fromkeys(P, 65_000.0))
        before = assigned(w)
        w.start_controller()
        assert w.group().people.controls.orders == ()
        await until(lambda: isinstance(w.controllers[-1].state, Sentinel))
        await asyncio.sleep(A_WHILE_S)
        assert assigned(w) == before
