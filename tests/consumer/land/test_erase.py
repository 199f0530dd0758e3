"""A person has rows erased: they leave the table, for good, wherever its writer dies."""

import asyncio

import pytest

from binwright.consumer.land.maintenance import (
    ERASE_MARGIN_S,
    ERASE_RETRY_S,
    MaintenanceConfig,
)
from binwright.testing.lake import Failure

from .scene import COLUMNS, P, Q, Scene, process, seconds
from .test_replay import newest_stamp, operation, rows, until_called, with_bad_records

pytestmark = pytest.mark.looptime

WEEK_S, HOUR_S = 604_800.0, 3_600.0


async def a_scene() -> Scene:
    return await Scene(columns=COLUMNS).prepare()


async def test_all_that_kafka_had_is_erased_and_what_comes_later_lands() -> None:
    scene = await a_scene()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 4)})
        await seconds(10)
        end = scene.produce(Q, 3)  # it is not staged yet
        await scene.erase()
        await seconds(10)
        assert rows(scene) == {P: [*range(4)]}, "it waits"
        assert operation(writer).state == "running"
        await scene.stage({Q: (0, end)})
        await seconds(20)
        assert rows(scene) == {}
        done = operation(writer)
        assert (done.state, done.erased, done.bad_erased) == ("done", 7, 0)
        assert done.files_until_ms >= done.ended_ms > 0
        await scene.land({P: (4, 6)})
        await seconds(10)
        assert rows(scene) == {P: [4, 5]}
        await scene.erase()
        await seconds(10)
        assert rows(scene) == {P: [4, 5]}, "an order counts once"


async def test_bad_records_are_erased_too() -> None:
    async with with_bad_records() as (scene, writer):
        await scene.erase()
        await seconds(20)
        assert scene.bad() == {}
        assert (operation(writer).erased, operation(writer).bad_erased) == (0, 8)
        await scene.replay(2)
        await seconds(10)
        assert operation(writer).work == "replay"
        assert operation(writer).files_until_ms > 0, "older versions have them still"


@pytest.mark.parametrize("call", ["note_erased", "erase_noted"])
async def test_it_goes_on_wherever_its_writer_dies(call: str) -> None:
    """No stamp has the condition: the next writer takes it from the order."""
    scene = await a_scene()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 6)})
        await seconds(10)
        writer.lake.latency_s = 2.0
        await scene.erase()
        await until_called(writer, call)
        writer.kill()
    commits = scene.storage.table("orders").commits
    assert not any("_kafka.offset" in (commit.metadata or "") for commit in commits)
    async with process(scene, "orders", name="w2") as second:
        await seconds(60)
        assert rows(scene) == {}
        assert (operation(second).state, operation(second).erased) == ("done", 6)
        stamp = newest_stamp(scene)
        assert stamp.operation is not None
        assert stamp.operation.files_until_ms == operation(second).files_until_ms


async def test_the_receipt_has_the_time_until_which_older_versions_have_rows() -> None:
    scene = await a_scene()
    scene.retention_s = WEEK_S
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 6)})
        await scene.erase()
        await seconds(30)
        done = operation(writer)
        assert done.files_until_ms - done.ended_ms == WEEK_S * 1000


async def test_their_files_go_when_the_retention_is_over() -> None:
    """Also where there is no vacuum but for that; and later, if it fails."""
    scene = await a_scene()
    never = MaintenanceConfig(vacuum_interval_s=0.0)
    async with process(scene, "orders", maintenance=never) as writer:
        await scene.land({P: (0, 6)})
        await seconds(10)
        maintenance, table = writer.context.maintenance, scene.storage.table("orders")
        until_s = asyncio.get_running_loop().time() + HOUR_S  # by its wall clock, here
        for name in ("orders", "others"):
            maintenance.erased(name, until_s)
        await seconds(HOUR_S)
        assert table.vacuums == 0
        writer.lake.fail_next(Failure.UNAVAILABLE)
        await seconds(ERASE_MARGIN_S + 1)
        assert (table.vacuums, ("vacuum", "orders") in writer.lake.calls) == (0, True)
        await seconds(ERASE_RETRY_S)
        assert table.vacuums == 1
        maintenance.erased("orders", until_s)
        await seconds(HOUR_S)
        assert table.vacuums == 1


async def test_a_later_erasure_does_not_put_off_the_vacuum_of_an_earlier_one() -> None:
    scene = await a_scene()
    never = MaintenanceConfig(vacuum_interval_s=0.0)
    async with process(scene, "orders", maintenance=never) as writer:
        await scene.land({P: (0, 6)})
        await seconds(10)
        maintenance, table = writer.context.maintenance, scene.storage.table("orders")
        until_s = asyncio.get_running_loop().time() + HOUR_S
        for later_s in (0.0, HOUR_S, 0.0):
            maintenance.erased("orders", until_s + later_s)
        await seconds(HOUR_S + ERASE_MARGIN_S - 60)
        assert table.vacuums == 0
        writer.lake.fail_next(Failure.UNAVAILABLE)
        await seconds(ERASE_RETRY_S + 120)
        assert table.vacuums == 1
        await seconds(HOUR_S)
        assert table.vacuums == 2
        await seconds(HOUR_S)
        assert table.vacuums == 2


async def test_the_next_writer_knows_the_earliest_vacuum_that_is_to_come() -> None:
    scene = await a_scene()
    scene.retention_s = WEEK_S
    async with process(scene, "orders") as writer:
        until_ms = list[int]()
        for number in (1, 2):
            await scene.land({P: (3 * number - 3, 3 * number)})
            await seconds(10)
            await scene.erase(number)
            await seconds(20)
            until_ms.append(operation(writer).files_until_ms)
    newest = newest_stamp(scene).operation
    assert newest is not None
    assert [newest.earlier_until_ms, newest.files_until_ms] == until_ms
