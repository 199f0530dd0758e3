"""What a consumer stages and announces: no row is omitted while storage or Kafka are away."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.consumer.harness import (
    CONFIG,
    LANDING,
    C,
    ConsumerHarness,
    P,
    Q,
    Report,
    harness,
    numbered,
    until,
)

from binwright.protocol.errors import RecordTooLarge
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import RECORD_BYTES
from binwright.runtime.run import background_tasks
from binwright.tables.ports import Footer
from binwright.testing.data_topics import FakePace
from binwright.testing.staging import ROW_OVERHEAD

pytestmark = pytest.mark.looptime(noop_cycles=1)


async def test_fetched_records_are_staged_and_announced_with_their_range() -> None:
    async with harness({"orders": 2}) as b:
        b.topics.produce(P, *numbered(5))
        b.topics.skip(P, 2)
        await b.read({P: 2, Q: 0})
        await until(b.staged)
        (staged,) = b.staged()
        assert staged.ranges == {P: (2, 7)}
        assert (staged.topic_id, staged.rows, staged.cut) == ("orders-1", 3, ())
        assert b.values(P) == numbered(3, 2)
        assert staged.file.startswith(f"0-{b.epoch}-1-")
        b.topics.produce(P, *numbered(1, 7))
        await until(lambda: b.staged_end(P) == 8)
        assert b.ranges(P) == [(2, 7), (7, 8)], "offsets without a record lie inside"
        await until(lambda: b.report().staged_rows == 4)


async def test_a_backlog_is_staged_in_large_files() -> None:
    """Each takes half of the buffer, which needs 1.7 s here; what is live is staged each second."""
    years_later = replace(CONFIG.batch, wall_s=1e9)
    async with harness({"orders": 1}, replace(CONFIG, batch=years_later)) as b:
        b.topics.produce(P, *[bytes(1_000)] * 3_000)
        b.reader.pace = FakePace(300_000)
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) >= 2_000)
        half = CONFIG.batch.cap_bytes // 2 // (1_000 + RECORD_BYTES)
        assert min(end - first for first, end in b.ranges(P)) >= half
        await until(lambda: b.staged_end(P) == 3_000)
        b.topics.produce(P, bytes(1_000))
        await until(lambda: b.staged_end(P) == 3_001, 2 * CONFIG.batch.wait_s)


async def test_a_stop_during_a_write_counts_the_rows_being_staged() -> None:
    async with harness({"orders": 1}) as b:
        b.staging.latency_s = 5.0
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await asyncio.sleep(3)
        stopped = await b.stop(P)
        assert stopped.next == {P: 5}
        assert not b.staged()
        await until(lambda: b.ranges(P) == [(0, 5)])


async def test_a_long_outage_of_the_staging_location_loses_nothing() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.grow(P, 20_000)
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) > 0)
        b.staging.write_error = "disk full"
        await asyncio.sleep(300)
        buffered = b.reader.positions[P] - b.staged_end(P)
        assert buffered * 1_000 <= 1.2 * CONFIG.batch.cap_bytes, "fetching pauses"
        assert b.report().busy > 0.5
        b.staging.write_error = ""
        b.topics.grow(P, 0)
        await until(lambda: b.staged_end(P) == b.topics.bounds(P)[1], 300)
        ranges = b.ranges(P)
        assert all(a[1] == following[0] for a, following in pairwise(ranges))


async def test_announcements_survive_an_outage_of_kafka() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 5)
        await b.bus.go_down()
        b.topics.produce(P, *numbered(5, 5))
        await asyncio.sleep(200)
        await b.bus.come_up()
        await until(lambda: b.staged_end(P) == 10)
        assert b.values(P) == numbered(10)


async def test_a_deleted_landing_topic_is_recreated() -> None:
    async with harness({"orders": 1}) as b:
        b.bus.delete("g.landing")
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: "g.landing" in b.bus.configs)
        await until(lambda: b.staged_end(P) == 5)


async def test_fetching_pauses_while_too_much_is_staged_and_not_landed() -> None:
    async with harness({"orders": 1}, replace(CONFIG, staged_bytes=500_000)) as b:
        b.topics.grow(P, 50_000)
        await b.read({P: 0})
        await asyncio.sleep(60)
        before = b.staged_end(P)
        assert 500_000 <= b.staging.bytes < 700_000
        await asyncio.sleep(60)
        assert b.staged_end(P) == before
        await b.staging.delete("orders", list(b.staging.files["orders"])[:-1])
        await until(lambda: b.staged_end(P) > before, 10)


async def land(b: ConsumerHarness, topic: str) -> None:
    """Delete the topic's files as they come, as its table's writer does."""
    while True:
        await b.staging.delete(topic, list(b.staging.files.get(topic, ())))
        await asyncio.sleep(0.2)


async def test_a_table_that_does_not_land_stops_its_own_topic_only() -> None:
    async with harness({"orders": 1, "clicks": 1}, replace(CONFIG, staged_bytes=50_000)) as b:
        await b.read({P: 0, C: 0})
        async with background_tasks(land(b, "clicks")):
            b.topics.grow(P, 500, 100)
            b.topics.grow(C, 400, 100)
            await asyncio.sleep(900)

            assert b.topics.bounds(C)[1] - b.staged_end(C) < 10
            assert b.topics.bounds(P)[1] - b.staged_end(P) > 1000
            assert 24_000 <= b.staging.bytes < 30_000, "it takes half of the limit"
            b.topics.grow(P, 0)
            async with background_tasks(land(b, "orders")):
                await until(lambda: b.staged_end(P) == b.topics.bounds(P)[1], 300)


async def test_more_files_than_a_table_lands_hide_no_files_that_landed() -> None:
    """Files of a refused table are the oldest: those of others are looked at all the same."""
    async with harness({"orders": 1, "clicks": 1}, replace(CONFIG, staged_bytes=300_000)) as b:
        await b.read({P: 0, C: 0})
        async with background_tasks(land(b, "clicks")):
            for _ in range(2000):
                b.topics.produce(P, b"x")
                b.topics.produce(C, b"y" * 400)
                await asyncio.sleep(1)
            await until(lambda: b.report().staged_bytes < 1.2 * b.staging.bytes)
            assert b.staged_end(C) > 1990
            assert b.staged_end(P) > 1990


async def test_the_counted_bytes_follow_many_topics() -> None:
    """50 topics at a record a second: more files than checks of a few hundred can follow."""
    names = [f"t{n}" for n in range(50)]
    async with harness(dict.fromkeys(names, 1)) as b:
        await b.read({TopicPartition(name, 0): 0 for name in names})
        async with background_tasks(*(land(b, name) for name in names)):
            for name in names:
                b.topics.grow(TopicPartition(name, 0), 100, 100)
            await asyncio.sleep(300)
            landed_s = 40  # since when: a check comes every 30 s
            assert b.report().staged_bytes < landed_s * 50 * (100 + ROW_OVERHEAD)


async def test_a_file_is_announced_only_after_it_is_written() -> None:
    async with harness({"orders": 1}) as b:
        b.staging.write_error = "disk full"
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await asyncio.sleep(60)
        assert not b.staged()
        b.staging.write_error, b.staging.latency_s = "", 30.0
        await until(b.staged)
        assert b.staging.rows("orders", b.staged()[0].file) is not None
        assert b.values(P) == numbered(5)


async def test_a_file_has_what_its_announcement_has() -> None:
    async with harness({"orders": 2}) as b:
        b.topics.produce(P, *numbered(3))
        b.topics.skip(P, 4)
        b.topics.produce(P, *numbered(1))
        await b.read({P: 1, Q: 0})
        await until(b.staged)
        (staged,) = b.staged()
        footers = await b.staging.footers("orders", [staged.file])
        ranges = {p.partition: (found.first, found.next) for p, found in staged.ranges.items()}
        footer = Footer(
            staged.topic_id, staged.rows, ranges, newest_ms=0, topic="orders", cut=frozenset()
        )
        assert footers == {staged.file: footer}
        assert ranges == {0: (1, 8)}


async def test_an_unexpected_error_stops_one_topic_which_is_reported_and_tried_again() -> None:
    """Else each consumer that gets the partition would end, one after the other."""
    async with harness({"orders": 1, "clicks": 1}) as b:
        write = b.staging.write

        async def refuse_orders(
            directory: str, name: str, rows: Any, footer: Footer, *others: Any, **named: Any
        ) -> int:
            if directory == "orders":
                raise TypeError("'<=' not supported")
            return await write(directory, name, rows, footer, *others, **named)

        b.staging.write = refuse_orders  # type: ignore[method-assign]
        b.topics.produce(P, *numbered(5))
        b.topics.produce(C, *numbered(5))
        await b.read({P: 0, C: 0})
        await until(lambda: b.staged("clicks"))
        await until(lambda: "'<=' not supported" in b.report().faults.get("orders", ""))
        await asyncio.sleep(300)
        assert not b.running.done()
        b.staging.write = write  # type: ignore[method-assign]
        await until(lambda: b.staged_end(P) == 5)
        assert b.values(P) == numbered(5)
        await until(lambda: not b.report().faults)


async def test_an_announcement_that_is_too_large_stops_one_topic_which_is_reported() -> None:
    async with harness({"orders": 1}) as b:
        publish, limited = b.bus.publish, True

        async def refuse(topic: str, partition: int, key: bytes, value: bytes) -> int:
            if limited and topic == LANDING:
                raise RecordTooLarge("it takes records of 100 bytes at most")
            return await publish(topic, partition, key, value)

        b.bus.publish = refuse  # type: ignore[method-assign]
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.sent(Report))
        await until(lambda: "100 bytes at most" in b.report().faults.get("orders", ""))
        await asyncio.sleep(60)
        limited = False
        await until(lambda: b.ranges(P) == [(0, 5)])
        await until(lambda: not b.report().faults)
