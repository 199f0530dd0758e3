"""The monitor's loop on virtual time: from logs that grow to measurements that are read back."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from binwright.core.messages import Measurement, PartitionRate
from binwright.core.model import BytesPerSecond, TopicPartition
from binwright.core.selection import Selection
from binwright.core.wire import decode_measurement, encode
from binwright.monitor.watch import GONE_SAID_S, LARGEST_PART, Watch
from binwright.shell.letters import METRICS_CONFIG
from binwright.shell.settings import MonitorSettings
from binwright.testing.bus import FakeBus
from binwright.testing.intake import FakeTopics
from binwright.testing.logs import FakeLogs

pytestmark = pytest.mark.looptime

HOW = MonitorSettings(interval_s=1, window_s=30, topic="metrics")
ORDERS = TopicPartition("orders", 0)
RATE = 10_000.0


class Stage:
    """A monitor and its world."""

    def __init__(self, **latency: float) -> None:
        self.topics = FakeTopics({"orders": 1})
        self.logs = FakeLogs(self.topics, **latency)
        self.bus = FakeBus(patience_s=5)
        self.topics.grow(ORDERS, RATE, record_bytes=100)

    def said(self, topic: str = "orders") -> list[Measurement]:
        found = [decode_measurement(r.value) for r in self.bus.records(HOW.topic)]
        return [measurement for measurement in found if measurement.topic == topic]

    def rates(self) -> list[float | None]:
        return [m.rates().get(ORDERS) for m in self.said()]


@asynccontextmanager
async def watching(stage: Stage, *topics: str, pattern: str = "") -> AsyncIterator[None]:
    names = frozenset(topics or ("orders",))
    patterns = (re.compile(pattern),) if pattern else ()
    watch = Watch(stage.logs, stage.bus, Selection(names, patterns, frozenset({HOW.topic})), HOW)
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError)


async def test_each_pass_says_one_measurement_of_each_topic() -> None:
    stage = Stage()
    stage.topics.create("clicks", 3)
    async with watching(stage, "orders", "clicks"):
        await asyncio.sleep(9.5)
    assert len(stage.said("orders")) == len(stage.said("clicks")) == 10
    assert [p.partition for p in stage.said("clicks")[0].partitions] == [0, 1, 2]
    assert {r.key for r in stage.bus.records(HOW.topic)} == {b"orders", b"clicks"}


async def test_the_rate_is_silent_once_and_right_from_then_on() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(40.5)
    first, *others = stage.rates()
    assert first is None
    assert others == [pytest.approx(RATE)] * 40
    windows = [m.partitions[0].window_s for m in stage.said()]
    assert windows == pytest.approx([min(second, 30) for second in range(41)])


async def test_the_metrics_topic_is_made_to_be_kept_a_week() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(0.5)
    assert stage.bus.configs == {"metrics": METRICS_CONFIG}
    assert await stage.bus.partitions("metrics") == 1


async def test_slow_passes_neither_drift_nor_bend_the_rate() -> None:
    stage = Stage(latency_s=0.7)
    async with watching(stage):
        await asyncio.sleep(100.9)
    assert stage.logs.passes == 101
    assert stage.rates()[1:] == [pytest.approx(RATE, rel=0.01)] * 100


async def test_a_pass_longer_than_the_beat_skips_what_it_runs_into() -> None:
    stage = Stage(latency_s=1.2)
    async with watching(stage):
        await asyncio.sleep(99.9)
    assert stage.logs.passes == 50
    assert stage.rates()[-1] == pytest.approx(RATE, rel=0.01)


async def test_an_outage_is_survived_and_bridged() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(10.5)
        stage.logs.fail_next(3)
        await asyncio.sleep(40)
    assert stage.rates()[1:] == [pytest.approx(RATE)] * (len(stage.rates()) - 1)
    assert stage.logs.passes < 41 + 10  # it rested meanwhile


async def test_a_bus_that_is_down_costs_its_measurements_only() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(10.5)
        await stage.bus.go_down()
        await asyncio.sleep(60)
        await stage.bus.come_up()
        await asyncio.sleep(70)
    assert stage.rates()[1:] == [pytest.approx(RATE)] * (len(stage.rates()) - 1)
    assert len(stage.said()) > 10 + 30


async def test_rests_grow_but_not_for_ever() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(0.5)
        stage.logs.fail_next(1100)  # 2 to their number is too large for a float
        await asyncio.sleep(30 * 1090)
        assert stage.rates() == [None]
        await asyncio.sleep(30 * 10 + 10)
    assert len(stage.said()) > 10


async def test_a_metrics_topic_that_was_deleted_is_made_again() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(10.5)
        stage.bus.delete("metrics")
        await asyncio.sleep(20)
    assert stage.rates()[-1] == pytest.approx(RATE)


async def test_a_missing_topic_is_passed_over_until_it_is_there() -> None:
    stage = Stage()
    async with watching(stage, "orders", "clicks"):
        await asyncio.sleep(5.5)
        assert [m.count for m in stage.said("clicks")] == [0] * 4  # not said of a first glance
        stage.topics.create("clicks", 1)
        await asyncio.sleep(5)
    there = [m for m in stage.said("clicks") if m.count]
    assert [m.partitions[0].rate for m in there] == [None, *[0.0] * 4]


async def test_a_topic_that_is_gone_is_said_to_be_gone_until_it_is_back() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(5.5)
        stage.topics.delete("orders")
        await asyncio.sleep(6)
        stage.topics.create("orders", 1)
        await asyncio.sleep(2)
    assert [m.count for m in stage.said()] == [1] * 6 + [0] * 4 + [1] * 2


async def test_a_topic_of_which_nobody_tells_anything_is_stale_not_gone() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(20.5)
        stage.logs.refused.add("orders")
        await asyncio.sleep(3)
    last = stage.said()[-1]
    assert last.count == 1
    assert (last.partitions[0].quality, last.partitions[0].age_s) == ("stale", 3)
    assert last.rates()[ORDERS] == pytest.approx(RATE)


CLICKS = "cl.*"


async def test_topics_that_fit_the_pattern_come_and_go() -> None:
    stage = Stage()
    stage.topics.create("clicks", 1)
    async with watching(stage, pattern=CLICKS):
        await asyncio.sleep(3.5)
        stage.topics.create("clocks", 2)
        await asyncio.sleep(2)
        stage.topics.delete("clicks")
        await asyncio.sleep(GONE_SAID_S + 10)
    assert len(stage.said("clocks")[0].partitions) == 2
    gone = [m.count for m in stage.said("clicks")]
    assert gone[:6] == [1] * 6
    assert gone[6:] == [0] * round(GONE_SAID_S + 1)  # nobody named it: not for ever
    assert len(stage.said("orders")) == len(stage.said("clocks")) + 4


@pytest.mark.parametrize("topic", ["__consumer_offsets", "metrics"])
async def test_a_pattern_takes_neither_kafkas_own_topics_nor_ours(topic: str) -> None:
    stage = Stage()
    stage.topics.create(topic, 1)
    async with watching(stage, pattern=".*"):
        await asyncio.sleep(3.5)
    assert stage.said(topic) == []
    assert stage.said("orders")


async def test_a_large_topic_is_said_in_parts_that_fit_a_message() -> None:
    stage = Stage()
    stage.topics.create("clicks", 10_000)
    async with watching(stage, "clicks"):
        await asyncio.sleep(0.5)
    parts = stage.said("clicks")
    assert [p.partition for m in parts for p in m.partitions] == list(range(10_000))
    assert {(m.count, m.number, m.monitor) for m in parts} == {(10_000, 1, parts[0].monitor)}
    largest = max(len(r.value or b"") for r in stage.bus.records(HOW.topic))
    assert largest < 700_000


def test_the_longest_measurement_stays_below_the_brokers_limit() -> None:
    row = PartitionRate(
        partition=2**31,
        rate=BytesPerSecond(123456789012.1),
        window_s=3599.123,
        end=2**63 - 1,
        start=2**63 - 1,
        bytes_per_record=1234567.123,
        records_per_s=123456789.123,
        size=2**63 - 1,
        quality="estimated",
        age_s=86400.123,
        leader=2**31,
    )
    message = Measurement(
        topic="t" * 249,
        at_ms=2**63 - 1,
        monitor="m" * 36,
        number=2**63 - 1,
        interval_s=3600.123,
        count=2**31,
        partitions=(row,) * LARGEST_PART,
    )
    assert len(encode(message)) < 1_000_000


async def test_two_monitors_have_two_names() -> None:
    stage = Stage()
    async with watching(stage), watching(stage):
        await asyncio.sleep(1.5)
    assert len({m.monitor for m in stage.said()}) == 2


async def test_a_topic_made_anew_has_no_past() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(10.5)
        stage.topics.delete("orders")
        await asyncio.sleep(2)
        stage.topics.create("orders", 1)
        stage.topics.grow(ORDERS, 5 * RATE, record_bytes=100)
        await asyncio.sleep(5)
    assert stage.rates()[-5:] == [None, *[pytest.approx(5 * RATE)] * 4]
    assert stage.said()[-1].partitions[0].window_s == pytest.approx(4)


async def test_new_partitions_show_in_the_next_pass() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(5.5)
        stage.topics.create("orders", 2)
        await asyncio.sleep(1)
    assert [len(m.partitions) for m in stage.said()] == [1] * 6 + [2]


async def test_retention_late_brokers_and_leader_moves_are_ordinary() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(20.5)
        stage.topics.delete_records(ORDERS, before=1500)
        await asyncio.sleep(2)
        stage.logs.late.add(ORDERS)
        await asyncio.sleep(2)
        stage.logs.late.clear()
        stage.topics.log(ORDERS).leader = 2
        await asyncio.sleep(2)
    assert stage.rates()[1:] == [pytest.approx(RATE)] * 26


async def test_without_the_right_to_know_sizes_batches_are_weighed() -> None:
    stage = Stage()
    stage.logs.tells_sizes = False
    async with watching(stage):
        await asyncio.sleep(40.5)
    assert stage.rates()[:2] == [None, None]
    assert stage.rates()[2:] == [pytest.approx(RATE)] * 39
    assert {m.partitions[0].quality for m in stage.said()[20:]} == {"estimated"}


async def test_measurements_are_stamped_with_the_wall_clock() -> None:
    stage = Stage()
    async with watching(stage):
        await asyncio.sleep(0.5)
    year_2020_ms = 1_577_836_800_000
    assert stage.said()[0].at_ms > year_2020_ms
