"""`binwright init` on a real broker: `doctor` finds no fault in what it writes, and it lands."""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from tests.inspect.init.terminal import answered, init
from tests.integration.command_line import binwright
from tests.integration.landing import in_order, produce, rows, until
from tests.integration.topics import create_topic

from binwright.inspect.init.command import SHOWN
from binwright.inspect.init.topics import MOST_SAMPLED
from binwright.local.kafka import run_broker
from binwright.local.stack import services
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.programs import FILE_VARIABLE

from .authorization import PASSWORD, TOPIC, acl, guarded_broker

pytestmark = pytest.mark.integration

AVRO = b"\x00\x00\x00\x00\x07\x02a"
MANY = 1_000
DEADLINE_S = 120.0


async def wrote(home: Path, *arguments: str, measure_s: float = 0) -> tuple[str, str]:
    """Run the command without a terminal; return what it prints and the file."""
    measured = ("--measure-s", str(measure_s), "--lake", str(home / "lake"))
    done = await asyncio.to_thread(init, [*arguments, *measured], home, subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout, (home / "binwright.toml").read_text()


def settings_in(home: Path) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FILE_VARIABLE, str(home / "binwright.toml"))
        return load_settings()


async def make(broker: str, topic: str, values: Sequence[bytes | None], **config: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker)
    named = {name.replace("_", "."): value for name, value in config.items()}
    await create_topic(kafka, topic, 2, config=named)
    await produce(broker, topic, values)


async def test_each_kind_of_topic_is_recognised_and_the_file_lands_them(
    broker: str, spark_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = [json.dumps({"id": n, "item": "tea", "odd": n or "x"}).encode() for n in range(3)]
    await make(broker, "init-orders", orders)
    await make(broker, "init-payments", [AVRO])
    await make(broker, "init-empty", [])
    await make(broker, "init-bytes", [b"\xff\x00", None], cleanup_policy="compact")

    where = ("--brokers", broker, "--topics", "init-.*", "--group", "init")
    shown, text = await wrote(tmp_path, *where)
    lines = {line.split()[0]: " ".join(line.split()) for line in shown.splitlines()}
    assert lines["init-orders"].endswith("7 days JSON, 2 columns")
    assert lines["init-payments"].endswith("Avro or Protobuf, schema 7")
    assert lines["init-empty"].endswith("no records")
    assert lines["init-bytes"].endswith("compacted binary")
    assert lines["check:"].endswith("doctor --settings binwright.toml")
    assert "# init-payments: 2 partitions, " in text

    code, checked, errors = await binwright(
        "doctor", "--settings", str(tmp_path / "binwright.toml")
    )
    assert (code, errors) == (0, ""), checked
    assert "fault" not in checked

    monkeypatch.setenv("BINWRIGHT_LAKE__SPARK", spark_url)
    monkeypatch.setenv("BINWRIGHT_LAKE__FRESHNESS_S", "1.0")
    async with services(settings_in(tmp_path), tmp_path / "logs"):
        await until(lambda: len(rows(tmp_path / "lake", "init-orders")) == len(orders))
        await until(lambda: len(rows(tmp_path / "lake", "init-bytes")) == 2)
    found = in_order(rows(tmp_path / "lake", "init-orders"))
    assert [(row["id"], row["item"], set(row)) for row in found] == [
        (n, "tea", {"_kafka", "id", "item"}) for n in range(3)
    ]
    assert {row["value"] for row in rows(tmp_path / "lake", "init-bytes")} == {b"\xff\x00", None}


async def test_the_rate_is_that_of_the_measured_time(broker: str, tmp_path: Path) -> None:
    await make(broker, "init-rate", [b"{}"])
    ended = asyncio.Event()

    async def write() -> int:
        sent = 0
        async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
            while not ended.is_set():
                await producer.send_and_wait("init-rate", b'{"id": 1}', partition=0)
                sent += 1
        return sent

    writing = asyncio.create_task(write())
    _, text = await wrote(tmp_path, "--brokers", broker, "--topics", "init-rate", measure_s=2)
    ended.set()
    (line,) = [line for line in text.splitlines() if line.startswith("# init-rate: ")]
    per_s = float(line.partition(" records/s")[0].split()[-1].replace(",", ""))
    assert 0 < per_s <= await writing / 2
    assert "B/s" in line


async def test_in_a_terminal_topics_are_chosen_among_a_thousand(tmp_path: Path) -> None:
    """Few are shown, a sample of some is read, and the file lands all that the pattern matches."""
    async with asyncio.timeout(DEADLINE_S), run_broker(tmp_path / "broker") as running:
        broker = running.bootstrap_servers
        nothing = answered(tmp_path, [], "--brokers", broker, "--lake", "lake")
        assert nothing.returncode == 2
        assert f"there is no topic to land at {broker}" in nothing.stderr

        admin = AIOKafkaAdminClient(bootstrap_servers=broker)
        await admin.start()
        await admin.create_topics([NewTopic(f"many-{n:03}", 1, 1) for n in range(MANY)])
        await admin.close()
        await make(broker, "many-full", [b'{"id": 1}'])
        answers = ["nope", "many-.*"]
        where = ("--brokers", broker, "--lake", "lake", "--measure-s", "0")
        done = await asyncio.to_thread(answered, tmp_path, answers, *where)
    assert done.returncode == 0, done.stderr
    assert "no such topic: nope" in done.stderr
    assert done.stdout.count(f"and {MANY + 1 - SHOWN} more\n") == 2
    read = settings_in(tmp_path)
    assert (read.topics, read.topic_patterns) == ((), ("many-.*",))
    assert [table.topics for table in read.tables] == [("many-full",)]
    text = (tmp_path / "binwright.toml").read_text()
    assert f"# {MANY + 1 - MOST_SAMPLED} topics not looked at land as bytes: many-" in text


RULES = [
    *(acl("ann", "Read", TOPIC, topic) for topic in ("open", "unsized")),
    acl("ann", "Describe", TOPIC, "closed"),
    *(acl("ann", "DescribeConfigs", TOPIC, topic) for topic in ("open", "closed")),
]


async def test_what_a_user_may_not_see_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the right to describe there is no file; all else is left open in it."""
    async with (
        asyncio.timeout(DEADLINE_S),
        guarded_broker(tmp_path / "broker", ["ann"], RULES, denies=True) as (owner, users),
    ):
        for topic in ("open", "unsized", "closed", "hidden"):
            await make(owner.bootstrap_servers, topic, [b'{"id": 1}'])
        (password := tmp_path / "password").write_text(PASSWORD)
        secure = (
            *("--brokers", users["ann"].bootstrap_servers, "--sasl-username", "ann"),
            *("--security-protocol", "SASL_PLAINTEXT", "--sasl-password-file", str(password)),
        )
        lake = ("--lake", "lake", "--topics", "open,hidden")
        done = await asyncio.to_thread(init, [*secure, *lake], tmp_path, subprocess.DEVNULL)
        assert done.returncode == 2
        assert "Kafka does not describe hidden: TopicAuthorizationFailed" in done.stderr
        assert "the right Describe" in done.stderr

        shown, text = await wrote(tmp_path, *secure, "--topics", ".*")
        assert "# closed: 2 partitions, 1 offsets, kept 7 days\n" in text
        assert "# Its newest values: not read: " in text
        assert "TopicAuthorizationFailedError" in text
        assert "# unsized: 2 partitions, 1 offsets\n" in text
        assert "hidden" not in shown + text
        read = settings_in(tmp_path)
        assert {table.topics for table in read.tables} == {("open",), ("unsized",)}
        assert read.kafka.sasl_password_file == password

        monkeypatch.setenv("BINWRIGHT_KAFKA__SASL_PASSWORD", "wrong")
        wrong = ("--brokers", users["ann"].bootstrap_servers, *secure[2:6], *lake, "--force")
        refused = await asyncio.to_thread(init, wrong, tmp_path, subprocess.DEVNULL)
        assert refused.returncode == 1
        assert "that the broker knows ann by PLAIN and this password" in refused.stderr
        assert "wrong" not in refused.stderr + refused.stdout
