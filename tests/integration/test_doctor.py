"""`binwright doctor` on a real broker and a real Spark: faults made on purpose are named."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.integration.examination import Report, examined
from tests.integration.topics import create_topic

from binwright.kafka.client import ClusterClient
from binwright.local.kafka import run_broker
from binwright.local.server import HOST, reserve_port
from binwright.local.spark import run_spark
from binwright.runtime.settings.kafka import KafkaSettings

from .authorization import OPERATIONS, Acl, guarded_broker, parse_command
from .test_acls import COMMANDS

pytestmark = pytest.mark.integration

DEADLINE_S = 240.0
AWAY = "127.0.0.1:9"  # nobody listens there
CREATE = OPERATIONS["Create"]
DATA = ("orders", "clicks")


def files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*"))


async def test_nothing_is_wrong_and_nothing_is_left_behind(
    broker: str, spark_url: str, lake: Path
) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker)
    await create_topic(kafka, "doctor-fine", 3)
    async with ClusterClient(kafka) as cluster:
        before = (await cluster.topics(None)).leaders.keys()
        report = await examined(broker, lake, spark_url, topics=["doctor-fine"], group="doctor-1")
        after = (await cluster.topics(None)).leaders.keys()
    assert (report.code, report.ok, report.of("fault"), report.of("warning")) == (0, True, {}, {})
    fine = report.of("ok")
    assert "3 partitions" in fine["topic doctor-fine"]
    assert {f"rights of the {name}" for name in ("controller", "consumer")} <= report.of(
        "skipped"
    ).keys() | fine.keys()
    assert f"spark {spark_url} reads staging" in fine
    assert files(lake) == []
    assert after - before <= {"__consumer_offsets"}


@pytest.mark.nightly
async def test_an_address_without_a_broker_is_named_and_what_needs_it_is_skipped(
    spark_url: str, lake: Path
) -> None:
    report = await examined(AWAY, lake, spark_url, topics=["orders"])
    assert report.code == 1
    (fault,) = report.of("fault").items()
    assert fault[0] == f"kafka {AWAY}"
    assert "Connection refused" in fault[1]
    assert "kafka.bootstrap_servers" in fault[1]
    assert {"topics", "rights"} <= report.of("skipped").keys()
    assert f"spark {spark_url} reads staging" in report.of("ok")


@pytest.mark.nightly
async def test_of_two_servers_one_is_enough(broker: str, spark_url: str, lake: Path) -> None:
    await create_topic(KafkaSettings(bootstrap_servers=broker), "doctor-two", 1)
    report = await examined(f"{AWAY},{broker}", lake, spark_url, topics=["doctor-two"])
    assert report.code == 0
    assert "Connection refused" in report.of("warning")[f"kafka {AWAY}"]


async def test_a_broker_that_advertises_another_address_is_named(
    tmp_path: Path, lake: Path
) -> None:
    """As behind a load balancer or in a container: the first connection works, and no other."""
    with reserve_port() as plain, reserve_port() as controller, reserve_port() as outside:
        settings = {
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listeners": f"PLAINTEXT://{HOST}:{plain},CONTROLLER://{HOST}:{controller},"
            f"OUTSIDE://{HOST}:{outside}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{plain},OUTSIDE://{AWAY}",
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT"
            ),
        }
    async with run_broker(tmp_path / "kafka", port=plain, settings=settings):
        report = await examined(f"{HOST}:{outside}", lake, f"sc://{AWAY}", topics=["orders"])
    assert f"kafka {HOST}:{outside}" in report.of("ok")
    fault = report.of("fault")["broker 1"]
    assert fault.startswith(f"advertises {AWAY}, which cannot be used from here")
    assert "advertised.listeners" in fault
    assert "advertises" in report.of("skipped")["topics"]


async def test_topics_that_are_missing_compacted_or_short_lived_are_named(
    broker: str, spark_url: str, lake: Path
) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker)
    await create_topic(kafka, "doctor-keys", 1, config={"cleanup.policy": "compact"})
    await create_topic(kafka, "doctor-short", 1, config={"retention.ms": "600000"})
    await create_topic(kafka, "doctor-large", 1, config={"max.message.bytes": "200000000"})
    await create_topic(kafka, "doctor-4.metadata", 1)  # deletes by age, as Kafka's default is
    await create_topic(
        kafka, "doctor-4.landing", 8, config={"retention.ms": "60000", "max.message.bytes": "100"}
    )
    report = await examined(
        broker,
        lake,
        spark_url,
        topics=["doctor-absent"],
        topic_patterns=["doctor-(keys|short|large)"],
        group="doctor-4",
    )
    assert report.code == 1
    faults, warnings = report.of("fault"), report.of("warning")
    assert "no such topic" in faults["topic doctor-absent"]
    assert "cleanup.policy=delete" in faults["topic doctor-4.metadata"]
    assert "max.message.bytes=100" in faults["topic doctor-4.landing"]
    assert faults.keys() == {
        "topic doctor-absent", "topic doctor-4.metadata", "topic doctor-4.landing"
    }  # fmt: skip
    assert "cleanup.policy=compact" in warnings["topic doctor-keys"]
    assert "an outage of 10 minutes" in warnings["topic doctor-short"]
    assert "consumer.batch_inflated_bytes" in warnings["topic doctor-large"]
    assert "staged files are kept for 4 days" in warnings["topic doctor-4.landing"]


async def test_a_staging_location_that_cannot_be_written_is_named(
    broker: str, spark_url: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a directory")
    report = await examined(broker, tmp_path / "file", spark_url, topic_patterns=["doctor-.*"])
    assert report.code == 1
    assert f"{tmp_path}/file/_staging/binwright cannot be written" in report.of("fault")["staging"]
    assert f"spark {spark_url} reads staging" in report.of("skipped")


@pytest.mark.nightly
async def test_a_spark_that_sees_another_file_system_is_named(
    broker: str, spark_url: str, lake: Path
) -> None:
    """`/proc/self/cwd` of the command is not that of Spark: one path, two places."""
    report = await examined_elsewhere(broker, spark_url, lake)
    assert report.code == 1
    fault = report.of("fault")[f"spark {spark_url} reads staging"]
    assert "which was just written here" in fault
    assert "the same directory or object store at the same path" in fault
    assert files(lake) == []


async def examined_elsewhere(broker: str, spark_url: str, lake: Path) -> Report:
    """Run with a path that leads to the lake for this command only: `/proc/self/cwd`."""
    previous = Path.cwd()
    os.chdir(lake)
    try:
        return await examined(
            broker, Path("/proc/self/cwd"), spark_url, topic_patterns=["doctor-.*"]
        )
    finally:
        os.chdir(previous)


async def test_a_spark_that_is_away_is_named(broker: str, lake: Path) -> None:
    report = await examined(broker, lake, f"sc://{AWAY}", topic_patterns=["doctor-.*"])
    assert report.code == 1
    (fault,) = report.of("fault").items()
    assert fault[0] == f"spark sc://{AWAY}"
    assert "lake.spark" in fault[1]


@pytest.mark.nightly
async def test_a_wrong_token_and_a_spark_that_is_not_set_up_for_delta_are_named(
    broker: str, tmp_path: Path, lake: Path
) -> None:
    bare = {"spark.sql.extensions": ""}
    async with asyncio.timeout(DEADLINE_S), run_spark(tmp_path / "own", settings=bare) as server:
        address = server.address
        right = await examined(broker, lake, server.url, topic_patterns=["doctor-.*"])
        wrong = await examined(broker, lake, f"{address}/;token=x", topic_patterns=["doctor-.*"])
    assert wrong.of("fault").keys() == {f"spark {address}"}
    assert "refuses this client" in wrong.of("fault")[f"spark {address}"]
    assert "lake.token_file" in wrong.of("fault")[f"spark {address}"]
    assert "spark.sql.extensions=" in right.of("fault")[f"spark {address}"]
    assert f"spark {address} reads staging" in right.of("ok")


SERVICES = ("monitor", "controller", "consumer")


def documented(user: str, *services: str) -> list[Acl]:
    """Return the rules of services as docs/operations.md has them, for one user."""
    every = (rule for line in COMMANDS for rule in parse_command(line))
    mine = [rule for rule in every if rule.principal in {f"User:{name}" for name in services}]
    return list({rule._replace(principal=f"User:{user}") for rule in mine})


def without_some(rules: list[Acl], user: str) -> list[Acl]:
    """Return rules of another user, without those on three things and one operation."""
    read = OPERATIONS["Read"]
    return [
        rule._replace(principal=f"User:{user}")
        for rule in rules
        if rule.name
        not in {"kafka-cluster", "binwright.metadata", "binwright.commands", "binwright"}
        and (rule.name, rule.operation) != ("clicks", read)
    ]


async def create_own_topics(owner: KafkaSettings) -> None:
    compact = {"cleanup.policy": "compact"}
    await create_topic(owner, "binwright.metadata", 1, config=compact)
    await create_topic(owner, "binwright.group-orders", 1, config=compact)
    await create_topic(owner, "binwright.commands", 100, config=compact)
    await create_topic(owner, "binwright.landing", 8)
    await create_topic(owner, "binwright.metrics", 1)
    await create_topic(owner, "binwright.metrics.needs", 1)


@pytest.mark.nightly
async def test_the_documented_rights_are_enough_and_each_that_lacks_is_named(
    tmp_path: Path, spark_url: str, lake: Path
) -> None:
    every = documented("all", *SERVICES)
    rules = [
        *every,
        *without_some(every, "lacking"),
        *documented("monitor", "monitor"),
        *(rule for rule in documented("reader", *SERVICES) if rule.operation != CREATE),
    ]
    users = ("all", "lacking", "monitor", "reader")
    async with (
        asyncio.timeout(DEADLINE_S),
        guarded_broker(tmp_path / "kafka", users, rules, denies=True) as (owner, as_user),
    ):
        for topic in DATA:
            await create_topic(owner, topic, 2)
        fresh = await examined(as_user["all"], lake, spark_url, topics=DATA)
        uncreated = await examined(as_user["reader"], lake, spark_url, topics=DATA)
        await create_own_topics(owner)
        complete = await examined(as_user["all"], lake, spark_url, topics=DATA)
        alone = await examined(
            as_user["monitor"], lake, spark_url, "--service=monitor", topics=DATA
        )
        lacking = await examined(as_user["lacking"], lake, spark_url, topics=DATA)
    assert (fresh.code, fresh.of("warning"), fresh.of("fault")) == (0, {}, {})
    unknown = fresh.of("skipped")["rights of the consumer"]
    assert unknown.startswith(
        "topic binwright.commands, topic binwright.metadata, topic binwright.landing"
    )
    assert rights_lacking(uncreated) == {
        "fault monitor: Create on topic binwright.metrics",
        "fault monitor: Create on topic binwright.metrics.needs",
        "fault controller: Create on topic binwright.metrics",
        "fault controller: Create on topic binwright.metrics.needs",
        "fault controller: Create on topic binwright.metadata",
        "fault controller: Create on topic binwright.commands",
        "fault controller: Create on topic binwright.group-orders",
        "fault controller: Create on topic binwright.landing",
    }
    assert (complete.code, complete.of("fault")) == (0, {})
    assert {f"rights of the {name}" for name in SERVICES} <= complete.of("ok").keys()
    assert (alone.code, alone.of("fault")) == (0, {})
    assert rights_lacking(lacking) == {
        "warning monitor: Describe on the cluster",
        "fault controller: Read and Write on topic binwright.metadata",
        "warning controller: DescribeConfigs on topic binwright.metadata",
        "fault controller: Write on topic binwright.commands",
        "warning controller: Alter on topic binwright.commands",
        "warning controller: DescribeConfigs on topic binwright.commands",
        "warning controller: Read on topic binwright.commands",
        "fault consumer: Read on topic clicks",
        "fault consumer: Read on topic binwright.commands",
        "fault consumer: Write on topic binwright.metadata",
        "warning consumer: Read on topic binwright.metadata",
        "fault consumer: Read on group binwright",
    }
    assert lacking.code == 1


def rights_lacking(report: Report) -> set[str]:
    """Return each right that lacks, without what follows from it."""
    found = set()
    for each in report.findings:
        if each["check"].startswith("rights") and each["status"] in {"fault", "warning"}:
            service = each["check"].removeprefix("rights of the ")
            lacks = each["what"].removeprefix("this user lacks ").partition(": ")[0]
            found.add(f"{each['status']} {service}: {lacks}")
    return found
