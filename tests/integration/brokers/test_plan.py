"""`binwright brokers plan`, `drain` and `status` on three real brokers."""

import asyncio
import json
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from binwright.balancer import plan_file
from binwright.balancer.admin_client import AdminClient
from binwright.balancer.cluster_model import cluster_model
from binwright.balancer.decide.forecast import forecast
from binwright.balancer.description import ClusterDescription
from binwright.balancer.ports import ConfigResource
from binwright.balancer.settings import BalancerProgramSettings
from binwright.balancer.snapshot import ClusterReader, take_snapshot
from binwright.kafka.client import client_options
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.protocol import wire
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.monitor import MonitorSettings

from .helpers import Load, fill, make_topic, placement, run, throttles
from .kafka_tool import verify

pytestmark = pytest.mark.integration

MB = 1_000_000
LONGEST_READ_S = 30.0


async def uneven(kafka: KafkaSettings, topic: str, sizes: list[int]) -> None:
    """Make a topic of two replicas, all led by broker 1, that will hold what it holds today."""
    unlimited = {"retention.ms": "-1"}
    await make_topic(kafka, topic, dict.fromkeys(range(len(sizes)), (1, 2)), unlimited)
    await fill(kafka, {TopicPartition(topic, n): size for n, size in enumerate(sizes)})


async def test_a_plan_of_measured_rates_is_applied_under_load_and_the_brokers_are_more_even(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    await uneven(kafka, "skewed", [6 * MB, 3 * MB, 2 * MB, 2 * MB, MB, MB])
    partitions = [TopicPartition("skewed", number) for number in range(6)]
    plan, chart = tmp_path / "plan.json", tmp_path / "chart.svg"
    _, out, _ = await run(kafka, "status", "--json")
    before = json.loads(out)["imbalance"]["disk"]
    async with Load(kafka, partitions).running(0.02):
        code, out, errors = await run(
            kafka, "plan", "--measure", "3", "--output", str(plan), "--chart", str(chart)
        )
        assert code == 0, out + errors
        assert "balance: " in out
        code, out, errors = await run(kafka, "apply", str(plan), "--throttle", str(20 * MB))
        assert code == 0, out + errors
    assert await verify(kafka.bootstrap_servers, plan) == []
    code, out, _ = await run(kafka, "status", "--json")
    found = json.loads(out)
    assert found["throttles"] == {"ours": [], "foreign": [], "limits": []}
    # The plan evens out what partitions will hold by their rates, not what they hold today.
    assert found["imbalance"]["disk"] < before
    assert chart.read_text().startswith("<?xml")


async def test_a_plan_can_be_taken_back_by_its_rollback_file(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    await uneven(kafka, "returned", [2 * MB, 2 * MB, 2 * MB])
    before = placement(await admin.state(), "returned")
    plan = tmp_path / "plan.json"
    code, _, errors = await run(kafka, "plan", "--measure", "0", "--output", str(plan))
    assert code == 0, errors
    back = tmp_path / "plan.rollback.json"
    assert plan_file.read(back).keys() == plan_file.read(plan).keys()
    for file in (plan, back):
        code, _, errors = await run(kafka, "apply", str(file), "--no-probe", "--leaders", "100")
        assert code == 0, errors
    assert placement(await admin.state(), "returned") == before


async def test_a_longer_retention_counts_before_the_disk_has_filled(
    kafka: KafkaSettings, admin: AdminClient
) -> None:
    """The topic that is written is small today; what it will hold is its rate x its retention."""
    await make_topic(kafka, "grows", {0: (1, 2), 1: (1, 2)}, {"retention.ms": "3600000"})
    partitions = [TopicPartition("grows", number) for number in range(2)]
    day = {ConfigResource("topic", "grows"): {"retention.ms": "86400000"}}
    disks = []
    async with Load(kafka, partitions).running(0.02):
        for changes in ({}, day):
            await admin.set_configs(changes)
            await asyncio.sleep(0.5)
            code, out, errors = await run(kafka, "status", "--json", "--measure", "3")
            assert code == 0, errors
            brokers = json.loads(out)["brokers"].values()
            disks.append(sum(each["disk"] for each in brokers))
    assert disks[1] > disks[0]


async def test_a_plan_in_a_peak_hour_counts_with_the_hours_of_the_metrics_topic(
    kafka: KafkaSettings,
) -> None:
    """Three days of 1 MB/s but for two hours of 3 MB/s each noon; it is noon now."""
    day = {"retention.ms": "86400000"}
    await make_topic(kafka, "peaks", {0: (1, 2)}, day)
    await make_topic(kafka, "peaks.metrics", {0: (1,)}, METRICS_CONFIG)
    now_ms = wall_ms()
    async with AIOKafkaProducer(**client_options(kafka), acks="all") as producer:
        for hour in range(72, -1, -1):
            rate = 3.0 * MB if hour % 24 in {0, 1} else 1.0 * MB
            for second in range(5):
                begin_ms = now_ms - 3_600_000 * hour + 300_000 if hour else now_ms - 10_000
                at_ms = begin_ms + 1_000 * second
                await producer.send(
                    "peaks.metrics",
                    wire.encode(_measured("peaks", at_ms, second, rate)),
                    b"peaks",
                    partition=0,
                    timestamp_ms=at_ms,
                )
    monitor = MonitorSettings(topic="peaks.metrics")
    began = loop_s()
    seen = await ClusterReader(
        BalancerProgramSettings(kafka=kafka, monitor=monitor), measure_s=0
    ).read()
    assert loop_s() - began < LONGEST_READ_S
    partition = TopicPartition("peaks", 0)
    assert len(seen.history.of(partition)) == 73
    assert seen.rates[partition] == 3.0 * MB
    cluster = cluster_model(seen, ClusterDescription())
    (planned,) = (each for each in cluster.partitions if each.id == partition)
    assert planned.rate == 3.0 * MB
    of_a_day = planned.disk_bytes(cluster.topics["peaks"])
    assert of_a_day == pytest.approx(86_400 * MB * (2 * 3 + 22) / 24)


def _measured(topic: str, at_ms: int, number: int, rate: float) -> Measurement:
    partition = PartitionRate(0, BytesPerSecond(rate), 30.0, 0, 0, None)
    return Measurement(
        topic=topic,
        at_ms=at_ms,
        monitor="m",
        number=at_ms // 1000 + number,
        interval_s=1.0,
        count=1,
        partitions=(partition,),
    )


async def test_a_compacted_topic_under_load_is_not_forecast_to_fill_a_disk(
    kafka: KafkaSettings, admin: AdminClient
) -> None:
    unlimited = {"retention.ms": "-1"}
    shortages = {}
    for topic, policy in (("accounts", "compact"), ("archive", "delete")):
        config = {**unlimited, "cleanup.policy": policy}
        await make_topic(kafka, topic, {0: (1, 2)}, config)
        async with Load(kafka, [TopicPartition(topic, 0)]).running(0.02):
            seen = await take_snapshot(admin, {}, 3.0)
        found = forecast(cluster_model(seen, ClusterDescription()), {}, 1e9)
        shortages[topic] = {each.broker for each in found if each.resource == "disk"}
    assert shortages == {"accounts": set(), "archive": {1, 2}}


async def test_a_drained_broker_holds_nothing_of_the_cluster(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    """Racks of two brokers are left: topics of three replicas are said to have no placement."""
    await make_topic(kafka, "drained", {0: (3, 1), 1: (2, 3), 2: (1, 2)})
    await fill(kafka, {TopicPartition("drained", number): MB for number in range(3)})
    plan = tmp_path / "plan.json"
    code, _, errors = await run(kafka, "drain", "3", "--measure", "0", "--output", str(plan))
    assert code == 0, errors
    code, _, errors = await run(kafka, "apply", str(plan), "--no-probe", "--leaders", "100")
    assert code == 0, errors
    state = await admin.state()
    assert not [str(p) for p, each in state.partitions.items() if 3 in each.replicas]
    assert not (await throttles(admin)).ours


async def test_a_drain_without_room_names_the_constraint(
    kafka: KafkaSettings,
) -> None:
    await make_topic(kafka, "wide", {0: (1, 2, 3)})
    code, _, errors = await run(kafka, "drain", "3", "--measure", "0")
    assert code == 2
    assert "distinct brokers" in errors or "replication" in errors


async def test_a_simulation_answers_for_the_cluster_and_for_a_changed_one(
    kafka: KafkaSettings,
) -> None:
    options = ("--measure", "0", "--add", "1", "--growth", "2", "--json")
    code, out, errors = await run(kafka, "simulate", *options)
    assert code == 0, errors
    answers = json.loads(out)
    assert [(each["case"], each["brokers"]) for each in answers] == [("now", 3), ("changed", 4)]
    assert all(1 <= each["needed"] <= 4 for each in answers)
