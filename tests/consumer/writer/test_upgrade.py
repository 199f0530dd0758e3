"""Tables that version 0.1 landed, where each consumer stamped and committed for itself."""

import asyncio
import json

import pytest

from .scene import P, Q, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

OLD_EPOCH_SHIFT = 1 << 24  # versions of 0.1: epoch x 2^24 + sequence


def old_stamp(slot: int, epoch: int, sequence: int, landed: dict[str, int]) -> str:
    return json.dumps(
        {
            "kind": "binwright-stamp/1",
            "group": "g",
            "slot": slot,
            "epoch": epoch,
            "sequence": sequence,
            "landed": landed,
            "topic_id": "orders-1",
        }
    )


async def old_table(scene: Scene) -> None:
    """Build the table of three consumers whose partitions moved between them."""
    table = scene.storage.create("orders")
    scene.produce(P, 100)
    scene.produce(Q, 100)
    for slot, epoch, sequence, partition, first, end in [
        (0, 11, 1, P, 0, 20),
        (1, 12, 1, Q, 0, 30),
        (0, 11, 2, P, 20, 40),
        (2, 15, 1, P, 40, 50),  # P moved
        (1, 12, 2, Q, 30, 60),
    ]:
        rows = {
            partition: [
                r
                for o, r in scene.topics.log(partition).read(0.0, first)
                if o < end and r is not None
            ]
        }
        number = epoch * OLD_EPOCH_SHIFT + sequence
        stamp = old_stamp(slot, epoch, sequence, {str(partition): end})
        table.commit(f"binwright/g/{slot}", number, rows, stamp)


async def test_landing_continues_where_the_old_consumers_stopped() -> None:
    scene = await Scene().prepare()
    await old_table(scene)
    async with process(scene, "orders") as writer:
        await seconds(5)
        assert writer.report().committed == {P: 50, Q: 60}
        await scene.stage({P: (0, 100), Q: (60, 100)})
        await seconds(5)

    assert scene.landed(P) == scene.landed(Q) == once(100)


async def test_a_late_commit_of_an_old_consumer_is_fenced() -> None:
    """It was in flight when the last old process died."""
    scene = await Scene().prepare()
    await old_table(scene)
    table = scene.storage.table("orders")
    async with process(scene, "orders"):
        await seconds(5)
        for slot, epoch in [(0, 11), (1, 12), (2, 15)]:
            number = epoch * OLD_EPOCH_SHIFT + 9
            assert table.numbers[f"binwright/g/{slot}"] >= number, "Delta would take it"


async def test_an_old_commit_that_lands_before_the_fence_counts() -> None:
    """The fences are committed before the table is read (†)."""
    scene = await Scene().prepare()
    await old_table(scene)
    table = scene.storage.table("orders")

    def late() -> None:
        rows = {P: [r for o, r in scene.topics.log(P).read(0.0, 50) if o < 70 and r is not None]}
        number = 15 * OLD_EPOCH_SHIFT + 2
        if table.numbers["binwright/g/2"] < number:
            table.commit("binwright/g/2", number, rows, old_stamp(2, 15, 2, {str(P): 70}))

    for moment in range(1, 12):
        asyncio.get_running_loop().call_later(moment, late)  # the first that is not fenced lands
    async with process(scene, "orders") as writer:
        writer.lake.latency_s = 0.6
        await scene.stage({P: (0, 100), Q: (0, 100)})
        await seconds(60)

    assert scene.landed(P) == scene.landed(Q) == once(100)


async def test_the_next_start_does_not_read_the_old_history_again() -> None:
    scene = await Scene().prepare()
    await old_table(scene)
    async with process(scene, "orders"):
        await seconds(5)
    async with process(scene, "orders", name="next") as next_writer:
        await seconds(5)
        assert next_writer.report().committed == {P: 50, Q: 60}
        assert next_writer.claims == 1
