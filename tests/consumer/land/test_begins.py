"""Where partitions begin to land: what was staged counts, whatever Kafka's retention has taken."""

import pytest

from binwright.kafka.control_records import landing_partition

from .scene import LANDING, P, Q, Scene, once, process, seconds

pytestmark = pytest.mark.looptime


async def test_a_first_outage_longer_than_retention_loses_nothing_that_was_staged() -> None:
    scene = await Scene({"orders": 1}).prepare()
    scene.produce(P, 30)
    await scene.stage({P: (0, 30)})
    scene.topics.delete_records(P, 20)
    async with process(scene, "orders"):
        await seconds(60)
        assert scene.landed(P) == once(30)
        assert scene.files() == set()


async def test_a_partition_that_was_added_during_an_outage_loses_nothing_that_was_staged() -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 10)})
        await seconds(20)
    scene.topics.create("orders", 2)
    scene.produce(Q, 30)
    await scene.stage({Q: (0, 15)})
    await scene.stage({Q: (15, 30)})
    scene.topics.delete_records(Q, 20)
    async with process(scene, "orders", name="w2"):
        await seconds(60)
        assert scene.landed(Q) == once(30)


async def test_announcements_that_have_expired_hold_no_table() -> None:
    scene = await Scene({"orders": 1}).prepare()
    scene.produce(P, 30)
    await scene.stage({P: (0, 10)})
    scene.bus.trim(LANDING, landing_partition("orders"), 1)
    scene.topics.delete_records(P, 20)
    async with process(scene, "orders") as writer:
        await seconds(40)
        assert writer.gaps[-1] == {P: 20}
