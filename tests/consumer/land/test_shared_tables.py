"""Several topics in one table: one writer lands each row of each topic once."""

from collections import Counter

import pytest
from tests.consumer.land.scene import P, Scene, once, process, seconds

from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.group import load_settings
from binwright.tables.targets import Target

pytestmark = pytest.mark.looptime(noop_cycles=1)

ALL = "all"
C = TopicPartition("clicks", 0)


async def two_topics(*orders: str) -> Scene:
    """Return a scene in which `orders` and `clicks` share a table; `orders` may have more."""
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    scene.named = {"orders": (ALL, *orders), "clicks": (ALL,)}
    return scene


async def land(scene: Scene, partition: TopicPartition, first: int, end: int) -> None:
    if (missing := end - scene.topics.bounds(partition)[1]) > 0:
        scene.produce(partition, missing)
    for table in scene.named.get(partition.topic, (partition.topic,)):
        await scene.stage({partition: (first, end)}, table=table)


def landed(scene: Scene, partition: TopicPartition, table: str = ALL) -> Counter[int]:
    return Counter(r.offset for r in scene.storage.table(table).rows.get(partition, []))


def committed(scene: Scene, partition: TopicPartition) -> int | None:
    offset = scene.topics.offsets["g"].get(partition)
    return None if offset is None else offset.offset


async def test_rows_of_both_topics_land_once_by_one_writer() -> None:
    scene = await two_topics()
    async with process(scene, "orders", "clicks") as writer:
        await seconds(5)
        for n in range(3):
            await land(scene, P, 10 * n, 10 * n + 10)
            await land(scene, C, 5 * n, 5 * n + 5)
            await seconds(3)
        report = writer.report(ALL)
        assert writer.claims == 1
        assert writer.lake.calls.count(("append", ALL)) <= 4, "both topics land in one commit"
    assert (landed(scene, P), landed(scene, C)) == (once(30), once(15))
    assert (report.topic, report.topics) == (None, ("orders", "clicks"))
    assert report.committed == {P: 30, C: 15}
    assert (committed(scene, P), committed(scene, C)) == (30, 15)


async def test_what_others_landed_of_a_topic_is_committed_when_its_role_comes() -> None:
    scene = await two_topics()
    async with process(scene, "orders") as writer:
        await land(scene, C, 0, 5)
        await seconds(8)
        assert landed(scene, C) == once(5), "whoever writes the table lands all that it takes"
        assert committed(scene, C) is None
        writer.writers.start(["clicks"])
        await seconds(3)
        assert committed(scene, C) == 5


async def test_a_table_of_one_topic_gets_a_second_one() -> None:
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    async with process(scene, "orders"):
        await land(scene, P, 0, 10)
        await seconds(8)
    scene.named = {"clicks": ("orders",)}
    await land(scene, C, 0, 5)
    async with process(scene, "orders", "clicks", name="w2"):
        await land(scene, P, 10, 20)
        await seconds(10)
    assert landed(scene, P, "orders") == once(20)
    assert landed(scene, C, "orders") == once(5)


async def test_a_topic_that_is_stopped_leaves_the_table_to_the_other() -> None:
    scene = await two_topics()
    async with process(scene, "orders", "clicks") as writer:
        await seconds(5)
        writer.writers.stop(["clicks"])
        await seconds(5)
        assert [topic for topic, _ in writer.written] == ["clicks"]
        await land(scene, P, 0, 10)
        await seconds(8)
        assert {*writer.writers.reports()} == {"orders"}
    assert landed(scene, P) == once(10)


async def test_two_writers_by_settings_that_differ_double_nothing() -> None:
    """Each has the role for one topic, and both claim the table for it."""
    scene = await two_topics()
    async with process(scene, "orders") as one, process(scene, "clicks", name="w2") as other:
        for n in range(8):
            await land(scene, P, 10 * n, 10 * n + 10)
            await land(scene, C, 5 * n, 5 * n + 5)
            for writer, topic in ((one, "orders"), (other, "clicks")):
                await seconds(4)
                if topic in writer.lost:
                    writer.lost.clear()
                    writer.writers.start([topic])
        await seconds(20)
    assert (landed(scene, P), landed(scene, C)) == (once(80), once(40))


async def test_a_process_that_loses_a_table_gives_up_all_its_topics() -> None:
    scene = await two_topics()
    async with process(scene, "orders", "clicks") as one, process(scene, name="w2") as other:
        await seconds(5)
        other.writers.start(["orders", "clicks"])
        await seconds(5)
        await land(scene, C, 0, 5)
        await seconds(10)
        assert sorted(one.lost) == ["clicks", "orders"]
        assert not one.writers.reports()
    assert landed(scene, C) == once(5)


async def test_two_forms_of_one_name_refuse_the_table_and_no_other() -> None:
    scene = await two_topics("orders_raw")
    entry = load_settings(tables=[{"topics": ["clicks"], "name": ALL, "format": "string"}]).tables[
        0
    ]
    async with process(scene, "orders") as writer:
        await land(scene, P, 0, 10)
        await seconds(8)
        of_orders = writer.context.targets
        object.__setattr__(
            writer.context,
            "targets",
            lambda topic: [Target(topic, ALL, entry)] if topic == "clicks" else of_orders(topic),
        )
        writer.writers.start(["clicks"])
        await land(scene, P, 10, 20)
        await seconds(20)
        report = writer.report(ALL)
        assert report.state == "refused"
        assert "the table of topics orders and clicks in two forms" in report.fault
        assert writer.report("orders_raw").committed == {P: 20}
    assert landed(scene, P) == once(10)


async def test_kills_in_between_double_and_lose_nothing() -> None:
    scene = await two_topics()
    for n in range(5):
        async with process(scene, "orders", "clicks", name=f"w{n}") as writer:
            writer.lake.latency_s = 0.3 * n
            await land(scene, P, 10 * n, 10 * n + 10)
            await land(scene, C, 5 * n, 5 * n + 5)
            await seconds(1.1 + 0.7 * n)
            writer.kill()
    async with process(scene, "orders", "clicks", name="last"):
        await seconds(30)
    assert (landed(scene, P), landed(scene, C)) == (once(50), once(25))


@pytest.mark.parametrize("fault", ["no leader", "not described"])
async def test_a_topic_of_which_nothing_is_known_keeps_no_other_from_landing(fault: str) -> None:
    """It is as if it were away, but what it has landed is still known when it comes back."""
    scene = await two_topics()
    async with process(scene, "orders", "clicks"):
        await land(scene, P, 0, 10)
        await land(scene, C, 0, 5)
        await seconds(8)
    if fault == "no leader":
        scene.topics.log(C).leader = None
    else:
        scene.topics.silent.add("clicks")
    async with process(scene, "orders", "clicks", name="w2") as writer:
        await land(scene, P, 10, 20)
        await seconds(30)
        assert writer.report(ALL).state == "landing"
        assert landed(scene, P) == once(20)
        scene.topics.log(C).leader = 1
        scene.topics.silent.clear()
        await land(scene, C, 5, 9)
        await seconds(60)
        assert writer.report(ALL).committed == {P: 20, C: 9}
        assert writer.gaps == []
    assert landed(scene, C) == once(9)


async def test_without_a_stamp_rows_of_a_topic_that_is_not_known_do_not_land_again() -> None:
    scene = await two_topics()
    async with process(scene, "orders", "clicks"):
        await land(scene, P, 0, 10)
        await land(scene, C, 0, 5)
        await seconds(8)
    scene.storage.forget(ALL, before=len(scene.storage.table(ALL).commits))
    scene.topics.offsets["g"].clear()
    scene.topics.log(C).leader = None
    async with process(scene, "orders", "clicks", name="w2") as writer:
        await seconds(60)
        assert writer.report(ALL).state != "landing"
        scene.topics.log(C).leader = 1
        await land(scene, P, 10, 20)
        await land(scene, C, 5, 9)
        await seconds(60)
    assert (landed(scene, P), landed(scene, C)) == (once(20), once(9))
