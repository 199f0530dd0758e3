"""`binwright table replay`: what it orders, and what it says of what its writer reports."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

import pytest
from tests.look.page.group import Group

from binwright.look.commands.replay import classes_named, since_ms
from binwright.look.follower import Connect
from binwright.look.group_view import GroupView
from binwright.look.operations import carry_out, check, operation_of
from binwright.look.table_view import TableView
from binwright.look.work_texts import operation_text, records_text
from binwright.protocol.errors import ExternalError, SettingsError, UserError
from binwright.protocol.metadata import TableOperation, TableReport
from binwright.protocol.model import Slot
from binwright.protocol.orders import OperationOrder, decode_order
from binwright.testing.control_topics import FakeControlTopics

ORDER = OperationOrder(table="orders", id="1" * 32, work="replay", by="ann")
DONE = TableOperation(
    id="1",
    work="replay",
    by="ann",
    reason="a repair",
    state="done",
    moved={"malformed": 2, "incompatible": 1},
    left={"malformed": 4},
    skipped=5,
    masked=6,
)
NOW_MS = 1_795_953_600_000  # 2026-11-29 12:00 UTC


def view(operation: TableOperation | None = None, writer: int | None = 0) -> GroupView:
    found = GroupView()
    report = TableReport(state="landing", committed={}, operation=operation)
    slot = None if writer is None else Slot(writer)
    found.tables.by_name["orders"] = TableView(("orders",), slot, 1, report, 0)
    return found


def test_a_known_table_that_is_written_and_has_nothing_to_do_is_replayed() -> None:
    for known in (None, DONE):
        check("g", ORDER, view(known))
    assert operation_of(view(DONE), "orders") == DONE
    assert operation_of(view(DONE), "others") is None


def test_what_cannot_be_replayed_is_refused() -> None:
    with pytest.raises(UserError, match="it has: none"):
        check("g", ORDER, GroupView())
    with pytest.raises(ExternalError, match="no consumer writes"):
        check("g", ORDER, view(writer=None))
    running = TableOperation(id="2", work="replay", by="bob", state="running")
    with pytest.raises(UserError, match="replay by bob"):
        check("g", ORDER, view(running))
    with pytest.raises(UserError, match="erase by bob"):
        check("g", ORDER, view(replace(running, work="erase", fault="no answer", erased=3)))
    check("g", ORDER, view(replace(running, work="erase", fault="no answer")))


def test_classes_are_those_that_there_are() -> None:
    assert classes_named([]) == ()
    assert classes_named(["too_large", "malformed"]) == ("malformed", "too_large")
    with pytest.raises(UserError, match=r"no class 'ugly'.*malformed, incompatible"):
        classes_named(["malformed", "ugly"])


def test_a_moment_in_the_past_is_read() -> None:
    assert since_ms("", NOW_MS) == 0
    assert since_ms("2h", NOW_MS) == NOW_MS - 7_200_000
    assert since_ms("2026-11-29", NOW_MS) == NOW_MS - 43_200_000
    assert since_ms("11:00", NOW_MS) == NOW_MS - 3_600_000
    for wrong in ("soon", "13:00", "2027-01-01", "99999999d", "0001-01-01"):
        with pytest.raises(SettingsError, match="--since"):
            since_ms(wrong, NOW_MS)


def test_what_became_of_records_is_counted_by_class() -> None:
    assert records_text(DONE) == (
        "3 moved (1 incompatible, 2 malformed), 4 left (4 malformed), 5 skipped, "
        "6 without their values, masked"
    )
    assert operation_text(DONE).startswith("replay by ann: a repair; ")
    would = TableOperation(
        id="1", work="replay", by="ann", at_ms=1_000, state="running", dry_run=True
    )
    assert operation_text(would) == (
        "replay (dry run) by ann at 1970-01-01 00:00:01 UTC; running; 0 would move, 0 left"
    )
    failed = TableOperation(id="1", work="replay", by="ann", state="failed", fault="no")
    assert "failed: no" in operation_text(failed)


# --- the whole command, on a fake bus -----------------------------------------------------------


async def a_group(operation: TableOperation | None = None) -> Group:
    group = Group()
    await group.claim()
    report = TableReport(state="landing", committed={}, operation=operation)
    await group.consumer(0, {}, writing={"orders": report})
    return group


def connect(group: Group) -> Connect:
    @asynccontextmanager
    async def opened() -> AsyncIterator[FakeControlTopics]:
        yield group.bus

    return opened


@pytest.mark.looptime
async def test_an_order_is_published_and_followed_until_it_has_ended() -> None:
    group, shown = await a_group(), list[str]()
    waiting = asyncio.create_task(
        carry_out(connect(group), "eu", ORDER, 60.0, lambda found: shown.append(found.state))
    )
    await asyncio.sleep(5)
    (record,) = await (await group.bus.reader("eu.group-orders", 0, 0)).read(1.0)
    assert decode_order(record.value or b"") == ORDER
    states: tuple[Literal["running", "done"], ...] = ("running", "running", "done")
    for moved, state in enumerate(states):
        operation = replace(DONE, id=ORDER.id, state=state, moved={"malformed": moved})
        report = TableReport(state="landing", committed={}, operation=operation)
        await group.consumer(0, {}, writing={"orders": report})
        await asyncio.sleep(40)
    done = await waiting
    assert (done.id, done.moved) == (ORDER.id, {"malformed": 2})
    assert shown == ["running", "running", "done"]


@pytest.mark.looptime
async def test_an_order_that_is_replaced_ends_the_command() -> None:
    group = await a_group()
    waiting = asyncio.create_task(carry_out(connect(group), "eu", ORDER, 60.0, lambda _: None))
    await asyncio.sleep(5)
    for id_ in (ORDER.id, "2" * 32):
        operation = replace(DONE, id=id_, state="running", by="bob")
        report = TableReport(state="landing", committed={}, operation=operation)
        await group.consumer(0, {}, writing={"orders": report})
        await asyncio.sleep(40)
    with pytest.raises(UserError, match="gave way to a replay by bob"):
        await waiting


@pytest.mark.looptime
async def test_a_standstill_ends_the_command_and_not_the_work() -> None:
    group = await a_group()
    with pytest.raises(ExternalError, match="has not gone on for 60 s"):
        await carry_out(connect(group), "eu", ORDER, 60.0, lambda _: None)
