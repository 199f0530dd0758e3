"""The monitor's loop on virtual time: from growing logs to published measurements."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from binwright.kafka.control_records import METRICS_CONFIG
from binwright.monitor.passes import GONE_REPORTED_S, MESSAGE_PARTITIONS, Monitor
from binwright.protocol.metrics import Measurement, PartitionRate, decode_measurement
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.protocol.wire import encode
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.testing.control_topics import FakeControlTopics
from binwright.testing.data_topics import FakeTopics
from binwright.testing.log_sampler import FakeLogSampler

pytestmark = pytest.mark.looptime

CONFIG = MonitorSettings(interval_s=1, window_s=30, topic="metrics")
ORDERS = TopicPartition("orders", 0)
RATE = 10_000.0


class MonitorScene:
    """The fakes around one or more monitors."""

    def __init__(self, **latency: float) -> None:
        self.topics = FakeTopics({"orders": 1})
        self.logs = FakeLogSampler(self.topics, **latency)
        self.bus = FakeControlTopics(patience_s=5)
        self.topics.grow(ORDERS, RATE, record_bytes=100)

    def measurements(self, topic: str = "orders") -> list[Measurement]:
        found = [decode_measurement(r.value) for r in self.bus.records(CONFIG.topic)]
        return [measurement for measurement in found if measurement.topic == topic]

    def rates(self) -> list[float | None]:
        return [m.rates().get(ORDERS) for m in self.measurements()]


@asynccontextmanager
async def monitoring(scene: MonitorScene, *topics: str, pattern: str = "") -> AsyncIterator[None]:
    names = frozenset(topics or ("orders",))
    patterns = (compile_pattern(pattern),) if pattern else ()
    monitor = Monitor(
        scene.logs, scene.bus, Selection(names, patterns, frozenset({CONFIG.topic})), CONFIG
    )
    task = asyncio.create_task(monitor.run())
    try:
        yield
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError)


async def test_each_pass_publishes_one_measurement_per_topic() -> None:
    scene = MonitorScene()
    scene.topics.create("clicks", 3)
    async with monitoring(scene, "orders", "clicks"):
        await asyncio.sleep(9.5)
    assert len(scene.measurements("orders")) == len(scene.measurements("clicks")) == 10
    assert [p.partition for p in scene.measurements("clicks")[0].partitions] == [0, 1, 2]
    assert {r.key for r in scene.bus.records(CONFIG.topic)} == {b"orders", b"clicks"}


async def test_only_the_first_pass_has_no_rate() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(40.5)
    first, *others = scene.rates()
    assert first is None
    assert others == [pytest.approx(RATE)] * 40
    windows = [m.partitions[0].window_s for m in scene.measurements()]
    assert windows == pytest.approx([min(second, 30) for second in range(41)])


async def test_the_metrics_topic_is_created_with_its_settings() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(0.5)
    assert scene.bus.configs == {"metrics": METRICS_CONFIG}
    assert await scene.bus.partitions("metrics") == 1


async def test_slow_passes_neither_shift_nor_bias_the_rate() -> None:
    scene = MonitorScene(latency_s=0.7)
    async with monitoring(scene):
        await asyncio.sleep(100.9)
    assert scene.logs.passes == 101
    assert scene.rates()[1:] == [pytest.approx(RATE, rel=0.01)] * 100


async def test_a_pass_longer_than_the_interval_skips_the_passes_it_overlaps() -> None:
    scene = MonitorScene(latency_s=1.2)
    async with monitoring(scene):
        await asyncio.sleep(99.9)
    assert scene.logs.passes == 50
    assert scene.rates()[-1] == pytest.approx(RATE, rel=0.01)


async def test_rates_are_right_after_an_outage_of_the_brokers() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(10.5)
        scene.logs.fail_next(3)
        await asyncio.sleep(40)
    assert scene.rates()[1:] == [pytest.approx(RATE)] * (len(scene.rates()) - 1)
    assert scene.logs.passes < 41 + 10  # it paused meanwhile


async def test_an_outage_of_the_metrics_topic_costs_only_its_measurements() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(10.5)
        await scene.bus.go_down()
        await asyncio.sleep(60)
        await scene.bus.come_up()
        await asyncio.sleep(70)
    assert scene.rates()[1:] == [pytest.approx(RATE)] * (len(scene.rates()) - 1)
    assert len(scene.measurements()) > 10 + 30


async def test_pauses_between_failing_passes_grow_up_to_a_limit() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(0.5)
        scene.logs.fail_next(1100)  # 2 to this power is too large for a float
        await asyncio.sleep(30 * 1090)
        assert scene.rates() == [None]
        await asyncio.sleep(30 * 10 + 10)
    assert len(scene.measurements()) > 10


async def test_a_deleted_metrics_topic_is_recreated() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(10.5)
        scene.bus.delete("metrics")
        await asyncio.sleep(20)
    assert scene.rates()[-1] == pytest.approx(RATE)


async def test_a_missing_topic_is_measured_once_it_exists() -> None:
    scene = MonitorScene()
    async with monitoring(scene, "orders", "clicks"):
        await asyncio.sleep(5.5)
        assert [m.count for m in scene.measurements("clicks")] == [
            0
        ] * 4  # not reported after the first passes
        scene.topics.create("clicks", 1)
        await asyncio.sleep(5)
    there = [m for m in scene.measurements("clicks") if m.count]
    assert [m.partitions[0].rate for m in there] == [None, *[0.0] * 4]


async def test_a_deleted_topic_is_reported_as_gone_until_it_reappears() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(5.5)
        scene.topics.delete("orders")
        await asyncio.sleep(6)
        scene.topics.create("orders", 1)
        await asyncio.sleep(2)
    assert [m.count for m in scene.measurements()] == [1] * 6 + [0] * 4 + [1] * 2


async def test_a_topic_that_kafka_does_not_describe_is_stale_not_gone() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(20.5)
        scene.logs.refused.add("orders")
        await asyncio.sleep(3)
    last = scene.measurements()[-1]
    assert last.count == 1
    assert (last.partitions[0].quality, last.partitions[0].age_s) == ("stale", 3)
    assert last.rates()[ORDERS] == pytest.approx(RATE)


CLICKS = "cl.*"


async def test_topics_that_match_the_pattern_are_followed() -> None:
    scene = MonitorScene()
    scene.topics.create("clicks", 1)
    async with monitoring(scene, pattern=CLICKS):
        await asyncio.sleep(3.5)
        scene.topics.create("clocks", 2)
        await asyncio.sleep(2)
        scene.topics.delete("clicks")
        await asyncio.sleep(GONE_REPORTED_S + 10)
    assert len(scene.measurements("clocks")[0].partitions) == 2
    gone = [m.count for m in scene.measurements("clicks")]
    assert gone[:6] == [1] * 6
    assert gone[6:] == [0] * round(
        GONE_REPORTED_S + 1
    )  # not named in the settings: for a limited time
    assert len(scene.measurements("orders")) == len(scene.measurements("clocks")) + 4


@pytest.mark.parametrize("topic", ["__consumer_offsets", "metrics"])
async def test_a_pattern_matches_neither_internal_topics_nor_the_metrics_topic(topic: str) -> None:
    scene = MonitorScene()
    scene.topics.create(topic, 1)
    async with monitoring(scene, pattern=".*"):
        await asyncio.sleep(3.5)
    assert scene.measurements(topic) == []
    assert scene.measurements("orders")


async def test_a_large_topic_is_published_in_parts_that_fit_a_message() -> None:
    scene = MonitorScene()
    scene.topics.create("clicks", 10_000)
    async with monitoring(scene, "clicks"):
        await asyncio.sleep(0.5)
    parts = scene.measurements("clicks")
    assert [p.partition for m in parts for p in m.partitions] == list(range(10_000))
    assert {(m.count, m.number, m.monitor) for m in parts} == {(10_000, 1, parts[0].monitor)}
    largest = max(len(r.value or b"") for r in scene.bus.records(CONFIG.topic))
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
        partitions=(row,) * MESSAGE_PARTITIONS,
    )
    assert len(encode(message)) < 1_000_000


async def test_two_monitors_have_different_names() -> None:
    scene = MonitorScene()
    async with monitoring(scene), monitoring(scene):
        await asyncio.sleep(1.5)
    assert len({m.monitor for m in scene.measurements()}) == 2


async def test_a_recreated_topic_starts_without_a_history() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(10.5)
        scene.topics.delete("orders")
        await asyncio.sleep(2)
        scene.topics.create("orders", 1)
        scene.topics.grow(ORDERS, 5 * RATE, record_bytes=100)
        await asyncio.sleep(5)
    assert scene.rates()[-5:] == [None, *[pytest.approx(5 * RATE)] * 4]
    assert scene.measurements()[-1].partitions[0].window_s == pytest.approx(4)


async def test_new_partitions_are_measured_in_the_next_pass() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(5.5)
        scene.topics.create("orders", 2)
        await asyncio.sleep(1)
    assert [len(m.partitions) for m in scene.measurements()] == [1] * 6 + [2]


async def test_retention_late_brokers_and_leader_moves_do_not_change_the_rate() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(20.5)
        scene.topics.delete_records(ORDERS, before=1500)
        await asyncio.sleep(2)
        scene.logs.late.add(ORDERS)
        await asyncio.sleep(2)
        scene.logs.late.clear()
        scene.topics.log(ORDERS).leader = 2
        await asyncio.sleep(2)
    assert scene.rates()[1:] == [pytest.approx(RATE)] * 26


async def test_without_permission_for_sizes_rates_are_estimated_from_batches() -> None:
    scene = MonitorScene()
    scene.logs.reports_sizes = False
    async with monitoring(scene):
        await asyncio.sleep(40.5)
    assert scene.rates()[:2] == [None, None]
    assert scene.rates()[2:] == [pytest.approx(RATE)] * 39
    assert {m.partitions[0].quality for m in scene.measurements()[20:]} == {"estimated"}


async def test_measurements_are_stamped_with_the_wall_clock() -> None:
    scene = MonitorScene()
    async with monitoring(scene):
        await asyncio.sleep(0.5)
    year_2020_ms = 1_577_836_800_000
    assert scene.measurements()[0].at_ms > year_2020_ms


async def test_measurements_have_the_zones_in_which_partitions_can_be_read() -> None:
    scene = MonitorScene()
    scene.topics.create("clicks", MESSAGE_PARTITIONS + 2)
    last = MESSAGE_PARTITIONS + 1
    for number, zones in ((0, ("a", "b")), (1, ("b",)), (last, ("b",))):
        scene.topics.in_zones[TopicPartition("clicks", number)] = zones
    async with monitoring(scene, "orders", "clicks"):
        await asyncio.sleep(0.5)
    first, second = scene.measurements("clicks")
    assert first.zones == {"a": (0,), "b": (0, 1)}
    assert second.zones == {"b": (last,)}
    assert scene.measurements("orders")[0].zones == {}
