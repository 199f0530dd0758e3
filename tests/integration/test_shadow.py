"""`binwright shadow` on a real broker: groups of several kinds, and one of binwright's own."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import structlog
import yaml
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from tests.builders import measurement
from tests.integration.assignor.broker_assignor import librdkafka_members
from tests.integration.command_line import binwright
from tests.integration.test_scaler import producer_to
from tests.integration.test_status import A, B, P, Q, playing
from tests.integration.topics import create_topic
from tests.waiting import until

from binwright.kafka.control_records import METRICS_CONFIG, ORDERS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.commands.shadow_record import open_recorder
from binwright.lab.shadow.past import GroupPast, NotComparable, read_pasts
from binwright.lab.shadow.samples import GroupSample, decode_recorded
from binwright.local.kafka import run_broker
from binwright.local.server import reserve_port
from binwright.protocol import wire
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond
from binwright.protocol.selection import ORDERS_SUFFIX
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.recording import FileRecordingWriter, RecordingReader

pytestmark = pytest.mark.integration

BINWRIGHT = (sys.executable, "-m", "binwright.cli")
GROUP, METRICS, DEADLINE_S = "saved", "saved.metrics", 120.0
MINUTES, EVERY_S = 20, 10
QUIET, BUSY = 100_000, 1_500_000


@pytest.fixture
async def kafka(broker: str) -> AsyncIterator[str]:
    """A broker with a group, and twenty minutes of measurements, of which five are busy."""
    async with KafkaControlTopics(KafkaSettings(bootstrap_servers=broker)) as bus:
        await bus.ensure(METRICS, 1, METRICS_CONFIG)
        await bus.ensure(f"{GROUP}{ORDERS_SUFFIX}", 1, ORDERS_CONFIG)
        now_ms, size = round(time.time() * 1000), 0
        for at_s in range(0, 60 * MINUTES, EVERY_S):
            rate = BUSY if 300 <= at_s < 600 else QUIET
            parts = [
                PartitionRate(n, BytesPerSecond(float(rate)), 30, size // 100, size, 100.0)
                for n in range(2)
            ]
            size += EVERY_S * rate
            at_ms = now_ms - 1000 * (60 * MINUTES - at_s)
            message = measurement(P.topic, parts, at_ms=at_ms, number=at_s // EVERY_S)
            await bus.publish(METRICS, 0, wire.key(message), wire.encode(message))
        async with playing(bus, GROUP, {P: A, Q: B}):
            yield broker


async def asked(kafka: str, *arguments: str, topic: str = P.topic) -> str:
    done = await asyncio.to_thread(
        subprocess.run,
        (*BINWRIGHT, *arguments, "--bootstrap-servers", kafka),
        env={
            **os.environ,
            "BINWRIGHT_GROUP": GROUP,
            "BINWRIGHT_TOPICS": json.dumps([topic]),
            "BINWRIGHT_MONITOR__TOPIC": METRICS,
            "BINWRIGHT_CONTROLLER__LIMIT_BYTES_PER_S": "2000000",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
async def test_the_load_of_a_past_time_is_simulated_and_published(kafka: str) -> None:
    planned = ("shadow", "own", "--group", GROUP, "--hours", "1", "--publish", "--json")
    found = json.loads(await asked(kafka, *planned))
    peak = next(each for each in found["others"] if each["rule"] == "peak")
    assert peak["replica_minutes"] == pytest.approx(2 * MINUTES, rel=0.05)
    assert 0.4 < found["own"]["replica_minutes"] / peak["replica_minutes"] < 0.9
    assert found["until_ms"] - found["from_ms"] == 1000 * (60 * MINUTES - EVERY_S)

    (group,) = json.loads(await asked(kafka, "status", "--group", GROUP, "--json"))
    assert group["savings"]["own"] == found["own"]
    for command in (("status", "--group", GROUP), ("explain", "--group", GROUP)):
        shown = " ".join((await asked(kafka, *command)).split())
        assert "fewer replica-minutes than at peak" in shown


# --- groups of a cluster -------------------------------------------------------------------------

ORDERS, CLICKS = "shadow-orders", "shadow-clicks"
CLASSIC, BY_BROKER, MEMBERLESS = "shadow-classic", "shadow-by-broker", "shadow-memberless"
RECORDED_S, PASS_S = 24, 1
RECORDS_PER_S = 200
BATCH_S = 0.1


@asynccontextmanager
async def members(broker: str, group: str, topic: str, count: int) -> AsyncIterator[None]:
    """Run members of a classic group that read, and commit each 200 ms."""

    async def read(consumer: AIOKafkaConsumer) -> None:
        async for _ in consumer:
            pass

    async with AsyncExitStack() as stack:
        reading = []
        for number in range(count):
            consumer = AIOKafkaConsumer(
                topic,
                bootstrap_servers=broker,
                group_id=group,
                client_id=f"billing-{number}",
                auto_offset_reset="earliest",
                auto_commit_interval_ms=200,
            )
            await consumer.start()
            stack.push_async_callback(consumer.stop)
            reading.append(must_not_end(read(consumer)))
        await stack.enter_async_context(background_tasks(*reading))
        yield


async def produce(broker: str, *topics: str) -> None:
    """Write records to topics, for ever."""
    async with producer_to(broker) as producer:
        while True:
            for topic in topics:
                for _ in range(round(RECORDS_PER_S * BATCH_S)):
                    await producer.send(topic, b"record")
            await producer.flush()
            await asyncio.sleep(BATCH_S)


async def recorded(file: Path, broker: str, seconds: float) -> str:
    """Record the groups of these tests; return what was logged."""
    hours = str(seconds / 3_600)
    options = ("--groups", "shadow-.*", "--interval", str(PASS_S), "--bootstrap-servers", broker)
    code, out, errors = await binwright(
        *("shadow", "record", "--to", str(file), "--hours", hours, *options)
    )
    assert code == 0, out + errors
    return out + errors


@pytest.mark.nightly
async def test_groups_of_a_cluster_are_recorded_ranked_and_written_as_objects(
    broker: str, tmp_path: Path
) -> None:
    kafka, file = KafkaSettings(bootstrap_servers=broker), tmp_path / "groups.jsonl"
    for topic in (ORDERS, CLICKS):
        await create_topic(kafka, topic, 4)
    async with (
        background_tasks(must_not_end(produce(broker, ORDERS, CLICKS))),
        members(broker, CLASSIC, ORDERS, 2),
        members(broker, f"{CLASSIC}-gone", CLICKS, 1),
    ):
        with librdkafka_members(
            *(broker, BY_BROKER, [CLICKS], 2),
            group_remote_assignor="uniform",
            enable_auto_commit="true",
            auto_commit_interval_ms="200",
        ):
            reader = AIOKafkaConsumer(bootstrap_servers=broker, group_id=MEMBERLESS)
            await reader.start()
            reader.assign([KafkaPartition(ORDERS, 0)])
            await reader.commit({KafkaPartition(ORDERS, 0): 7})
            await reader.stop()
            logged = await recorded(file, broker, RECORDED_S)
            assert "group=shadow-classic" in logged
            await recorded(file, broker, 4 * PASS_S)  # continued

    with file.open("rb") as lines:
        pasts = {
            one.group: one
            for one in read_pasts(RecordingReader(lines).messages(decode_recorded), 5.0)
        }
    classic, by_broker = pasts[CLASSIC], pasts[BY_BROKER]
    assert isinstance(classic, GroupPast)
    assert isinstance(by_broker, GroupPast)
    assert (classic.type, by_broker.type) == ("classic", "consumer")
    assert (classic.members.values[-1], by_broker.members.values[-1]) == (2, 2)
    assert classic.clients == ("billing-0", "billing-1")
    assert pasts[MEMBERLESS] == NotComparable(MEMBERLESS, "no member of it was seen")
    for past in (classic, by_broker):
        assert past.within == 1.0
        assert past.capacity is not None
        assert past.capacity.records_per_s > RECORDS_PER_S / 4
        written = past.recorded.written[-1].sum() / past.members.end
        assert written == pytest.approx(RECORDS_PER_S, rel=0.3)  # its pauses are not exact

    out = tmp_path / "objects"
    options = ("--sla", "5", "--capacity", "1000", "--write", str(out), "--json")
    code, shown, errors = await binwright("shadow", "rank", str(file), *options)
    assert code == 0, errors
    ranking = {one["group"]: one for one in json.loads(shown)["groups"]}
    assert ranking.keys() == {CLASSIC, BY_BROKER}
    assert ranking[CLASSIC]["costs"]["scaled_group"]["replica_minutes"] < (
        0.7 * ranking[CLASSIC]["costs"]["as_is"]["replica_minutes"]
    )
    written_object = yaml.safe_load((out / f"{CLASSIC}.yaml").read_text())
    assert written_object["spec"]["workload"] == {"kind": "StatefulSet", "name": "billing"}
    code, shown, errors = await binwright("lab", "packing", "--stream", str(file))
    assert code == 0, errors  # a recording as any other


@pytest.mark.nightly
async def test_a_broker_that_is_away_and_what_vanishes_end_no_recording(tmp_path: Path) -> None:
    file, topics = tmp_path / "groups.jsonl", (ORDERS, CLICKS)
    writer = FileRecordingWriter(file, BytesPerSecond(1.0))

    def passes(kind: type[GroupSample | Measurement], name: str) -> int:
        with file.open("rb") as lines:
            messages = RecordingReader(lines).messages(decode_recorded)
            named = [
                getattr(m, "group", getattr(m, "topic", ""))
                for m in messages
                if isinstance(m, kind)
            ]
        return named.count(name)

    async def until_more(kind: type[GroupSample | Measurement], name: str) -> None:
        before = passes(kind, name)
        await until(lambda: passes(kind, name) > before + 1)

    with reserve_port() as port:
        pass
    with structlog.testing.capture_logs() as logged:
        async with AsyncExitStack() as stack:
            async with run_broker(tmp_path / "broker", port=port) as running:
                kafka = KafkaSettings(bootstrap_servers=running.bootstrap_servers)
                for topic in topics:
                    await create_topic(kafka, topic, 1)
                    reader = AIOKafkaConsumer(
                        bootstrap_servers=running.bootstrap_servers, group_id=topic
                    )
                    await reader.start()
                    reader.assign([KafkaPartition(topic, 0)])
                    await reader.commit({KafkaPartition(topic, 0): 0})
                    await reader.stop()
                recorder = await stack.enter_async_context(open_recorder(kafka, writer, 0.2))
                recorder.list_s = 1.0
                await stack.enter_async_context(background_tasks(must_not_end(recorder.run())))
                await until_more(Measurement, ORDERS)
            await until(lambda: any(one["event"] == "sample.failed" for one in logged))
            async with run_broker(tmp_path / "broker", port=port):
                await until_more(GroupSample, ORDERS)
                await until_more(Measurement, ORDERS)
                admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
                for deleted in (
                    *admin.delete_consumer_groups([CLICKS]).values(),
                    *admin.delete_topics([CLICKS]).values(),
                ):
                    await asyncio.wrap_future(deleted)
                await until(lambda: CLICKS not in recorder.recorded)
                await until_more(GroupSample, ORDERS)
                await until_more(Measurement, ORDERS)
    events = {one["event"] for one in logged}
    assert {"sample.failed", "sample.recovered", "group.vanished"} <= events
