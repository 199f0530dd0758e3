"""Several tables in one process do not delay each other."""

import asyncio

import pytest

from binwright.consumer.events import Event
from binwright.consumer.land.context import STARTS_AT_ONCE
from binwright.kafka.control_records import landing_partition
from binwright.protocol import wire
from binwright.protocol.errors import LakeUnavailable
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.model import Slot, TopicPartition
from binwright.tables.ports import Lake, Table
from binwright.testing.lake import Failure

from .scene import LANDING, P, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

NEIGHBOUR = next(
    name
    for name in (f"t{n}" for n in range(100))
    if landing_partition(name) == landing_partition("orders")
)
N = TopicPartition(NEIGHBOUR, 0)


async def test_announcements_of_other_topics_are_skipped() -> None:
    """Two tables share a partition of the landing topic, with equal offsets in both topics."""
    scene = await Scene({"orders": 1, NEIGHBOUR: 1}).prepare()
    async with process(scene, "orders", NEIGHBOUR):
        for n in range(5):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await scene.land({N: (n * 7, n * 7 + 7)})
            await seconds(2)
        await seconds(5)

    assert scene.landed(P) == once(50)
    assert scene.landed(N) == once(35)
    assert not scene.files()


async def test_announcements_of_other_topics_are_not_decoded() -> None:
    scene = await Scene({"orders": 1, NEIGHBOUR: 1}).prepare()
    async with process(scene, "orders") as writer:
        for _ in range(3):
            await scene.bus.publish(
                LANDING, landing_partition("orders"), NEIGHBOUR.encode(), b"no message of ours"
            )
        await scene.land({P: (0, 10)})
        await seconds(5)

        assert writer.report().committed[P] == 10


async def test_malformed_announcements_never_stop_a_table() -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders"):
        for n, value in enumerate([b"", b"{", b'{"kind": "staged/9"}', b'{"kind": "claim/1"}']):
            await scene.bus.publish(LANDING, landing_partition("orders"), b"orders", value)
            await scene.land({P: (n * 10, n * 10 + 10)})
        await seconds(5)

    assert scene.landed() == once(40)


async def test_an_announcement_of_this_key_about_another_topic_lands_nothing() -> None:
    scene = await Scene({"orders": 1, NEIGHBOUR: 1}).prepare()
    async with process(scene, "orders") as writer:
        foreign = Staged(
            topic=NEIGHBOUR,
            topic_id=None,
            file="x.parquet",
            rows=1,
            bytes=1,
            ranges={N: OffsetRange(0, 1)},
            slot=Slot(0),
            epoch=1,
        )
        partition = landing_partition("orders")
        await scene.bus.publish(LANDING, partition, b"orders", wire.encode(foreign))
        await seconds(5)

        assert writer.report().pending_bytes == 0
        assert not writer.gaps


async def test_a_table_that_refuses_its_rows_delays_no_other() -> None:
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    clicks = TopicPartition("clicks", 0)
    async with process(scene, "orders", "clicks") as writer:
        writer.lake.refusing.add("orders")
        await seconds(5)
        for n in range(20):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await scene.land({clicks: (n * 10, n * 10 + 10)})
            await seconds(3)
        assert scene.landed(clicks) == once(200)
        assert writer.report().state == "refused"
        assert "refuses rows" in writer.report().fault
        assert writer.report().age_s > 50
        assert writer.report("clicks").state == "landing"
        writer.lake.refusing.clear()
        await seconds(15)

        assert writer.report().state == "landing"
    assert scene.landed(P) == once(200)


async def test_a_table_of_another_group_is_refused_until_its_owner_is_changed() -> None:
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    table = scene.storage.create("orders", Table("orders", "other", "cluster-b"))
    clicks = TopicPartition("clicks", 0)
    async with process(scene, "orders", "clicks") as writer:
        await scene.land({P: (0, 10)})
        await scene.land({clicks: (0, 10)})
        await seconds(30)
        assert writer.report().state == "refused"
        assert "belongs to" in writer.report().fault
        assert scene.landed(clicks) == once(10)
        assert not table.rows
        table.owner = None
        await seconds(15)
        assert writer.report().state == "landing"

    assert scene.landed(P) == once(10)


async def test_a_deleted_table_is_recreated_and_goes_on_at_the_groups_offsets() -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 10)})
        await seconds(5)
        scene.storage.drop("orders")
        await scene.land({P: (10, 20)})
        await seconds(60)
        assert not writer.gaps

    assert scene.landed(P) == once(20, first=10)


async def test_an_unreachable_lake_is_retried_and_reported() -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene) as writer:
        writer.lake.fail_next(*[Failure.UNAVAILABLE] * 4)
        writer.writers.start(["orders"])
        await scene.land({P: (0, 10)})
        await seconds(8)
        report = writer.report()
        assert (report.state, report.committed) == ("claiming", {})
        assert "injected failure" in report.fault
        await seconds(30)
        assert writer.report().fault == ""

    assert scene.landed() == once(10)


async def test_a_lake_that_fails_to_open_is_opened_later() -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene) as writer:
        lake, tries = writer.writers._context.lake, []
        real = lake._open_lake

        async def failing() -> Lake:
            tries.append(1)
            if len(tries) < 3:
                raise LakeUnavailable("no module named pyspark")
            return await real()

        lake._open_lake = failing
        writer.writers.start(["orders"])
        await scene.land({P: (0, 10)})
        await seconds(30)

    assert scene.landed() == once(10)


async def test_an_unexpected_error_ends_neither_that_table_nor_another() -> None:
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    clicks = TopicPartition("clicks", 0)
    async with process(scene, "orders", "clicks") as writer:
        await seconds(5)
        known, broken = writer.writers._emit, []

        def breaking(event: Event) -> None:
            broken.append(event)
            if len(broken) == 1:
                raise ZeroDivisionError
            known(event)

        writer.writers._tables["orders"].writer._effects._emit = breaking
        file = await scene.land({P: (0, 10)})
        del scene.staging.files["orders"][file]
        await scene.land({clicks: (0, 10)})
        await seconds(40)
        assert broken
        await scene.stage({P: (0, 10)})
        await seconds(10)

        assert writer.report().state == "landing"
        assert writer.claims == 3
    assert scene.landed(P) == scene.landed(clicks) == once(10)


async def test_two_appends_run_at_a_time_and_a_batch_is_formed_when_its_append_starts() -> None:
    topics = [f"t{n}" for n in range(6)]
    scene = await Scene(dict.fromkeys(topics, 1)).prepare()
    async with process(scene, *topics, freshness_s=1.0) as writer:
        await seconds(10)
        writer.lake.latency_s = 5.0
        begun = len(writer.lake.calls)
        for topic in topics:
            await scene.land({TopicPartition(topic, 0): (0, 10)})
        for n in range(1, 12):
            await seconds(1)
            at_once = [w for w in writer.writers._tables.values() if w.writer.committing]
            assert len(at_once) <= 2
            for topic in topics:
                await scene.land({TopicPartition(topic, 0): (n * 10, n * 10 + 10)})
        await seconds(40)

        appends = [t for call, t in writer.lake.calls[begun:] if call == "append"]
        assert set(appends[:6]) == set(topics), "each table appends once before one appends twice"
        assert len(appends) <= 4 * len(topics)
    for topic in topics:
        assert scene.landed(TopicPartition(topic, 0)) == once(120)


async def test_a_few_tables_start_at_a_time_so_that_the_first_land_early() -> None:
    """Without the limit, no table lands before all of them are resolved."""
    topics = [f"t{n}" for n in range(3 * STARTS_AT_ONCE)]
    scene = await Scene(dict.fromkeys(topics, 1)).prepare()
    async with process(scene, *topics) as writer:
        writer.lake.latency_s = 1.0
        for topic in topics:
            await scene.land({TopicPartition(topic, 0): (0, 10)})
        await seconds(0.5)
        assert [call for call, _ in writer.lake.calls] == ["open"] * STARTS_AT_ONCE
        await seconds(6)
        states = [writer.report(topic).state for topic in topics]
        assert states.count("landing") >= STARTS_AT_ONCE
        assert {topic for call, topic in writer.lake.calls if call == "append"}, (
            "before the last table starts"
        )
        assert {topic for _, topic in writer.lake.calls} < set(topics)
        await seconds(60)
    assert all(scene.landed(TopicPartition(topic, 0)) == once(10) for topic in topics)


async def test_tables_with_a_fault_release_their_start_permits() -> None:
    topics = [f"t{n}" for n in range(2 * STARTS_AT_ONCE)]
    scene = await Scene(dict.fromkeys(topics, 1)).prepare()
    for topic in topics[:STARTS_AT_ONCE]:
        scene.storage.create(topic, Table(topic, "another group", "cluster-a"))
    async with process(scene, *topics) as writer:
        await seconds(5)
        states = [writer.report(topic).state for topic in topics]
    assert states == ["refused"] * STARTS_AT_ONCE + ["landing"] * STARTS_AT_ONCE


async def test_staged_rows_land_while_kafka_does_not_describe_the_topic() -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders") as writer:
        await seconds(5)
        scene.produce(P, 200)
        files = [(n * 10, n * 10 + 10) for n in range(20)]
        for found in files[:10]:
            await scene.stage({P: found})
        scene.topics.silent.add("orders")
        await seconds(60)
        assert scene.landed() == once(100)
        assert writer.report().state == "landing"


async def test_a_topic_that_was_deleted_lands_what_was_staged() -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders") as writer:
        await seconds(5)
        await scene.land({P: (0, 10)})
        scene.topics.delete("orders")
        await seconds(60)

        assert writer.report().committed[P] == 10
    assert scene.landed() == once(10)


async def test_a_process_that_ends_at_any_moment_loses_no_row() -> None:
    for moment in range(20):
        scene = await Scene({"orders": 1}).prepare()
        async with process(scene, "orders") as writer:
            writer.lake.latency_s = 0.7
            await scene.land({P: (0, 10)})
            await asyncio.sleep(0.3 * moment)
        async with process(scene, "orders", name="next"):
            await seconds(20)
        assert scene.landed() == once(10), moment
