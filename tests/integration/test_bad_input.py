"""Bad input is reported in one sentence that says what to do; the exit code is 2 or 1."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.topics import create_topic

from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import run_broker
from binwright.local.server import reserve_port
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

UNUSED = "127.0.0.1:1"  # nothing listens there


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-m", "binwright.cli", *arguments),
        env={**os.environ, "PYTHONWARNINGS": "ignore", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("service", ["monitor", "controller"])
def test_a_broker_that_does_not_answer_is_reported(service: str) -> None:
    done = run(service, BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS=UNUSED, BINWRIGHT_TOPICS='["orders"]')
    assert done.returncode == 1
    assert UNUSED in done.stderr
    assert "kafka.bootstrap_servers" in done.stderr


def test_a_consumer_without_a_broker_is_reported() -> None:
    done = run(
        "consumer",
        "--slot=0",
        BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS=UNUSED,
        BINWRIGHT_TOPICS='["orders"]',
    )
    assert done.returncode == 1
    assert "kafka.bootstrap_servers" in done.stderr


@pytest.mark.parametrize("command", [("monitor",), ("up",)])
def test_no_topics_are_reported(command: tuple[str, ...]) -> None:
    done = run(*command, BINWRIGHT_MONITOR__GROUPS="false")  # no group may tell either
    assert done.returncode == 2
    assert "no topics" in done.stderr


def test_an_invalid_slot_is_reported() -> None:
    done = run("consumer", "--slot=100", BINWRIGHT_TOPICS='["orders"]')
    assert (done.returncode, done.stderr) == (2, "binwright: --slot must be 0 to 99\n")


def test_a_topic_that_does_not_exist_is_reported(broker: str, spark_url: str, lake: Path) -> None:
    where = ("--bootstrap-servers", broker, "--spark", spark_url, "--lake", str(lake))
    done = run("up", "--topics", "no-such-topic", *where)
    assert done.returncode == 2
    assert f"no such topic at {broker}: no-such-topic; create it first" in done.stderr


async def prepared(broker: str, group: str) -> dict[str, str]:
    """Make what a consumer of slot 0 needs; return its settings as variables."""
    kafka = load_settings(kafka={"bootstrap_servers": broker}).kafka
    async with KafkaControlTopics(kafka) as bus:
        await bus.ensure(f"{group}.metadata", 1, {})
        await bus.ensure(f"{group}.commands", 1, {})
        await bus.ensure(f"{group}-data", 1, {})
    return {
        "BINWRIGHT_GROUP": group,
        "BINWRIGHT_TOPICS": f'["{group}-data"]',
        "BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS": broker,
    }


async def test_a_staging_place_that_cannot_be_written_is_reported_and_waited_for(
    broker: str, tmp_path: Path
) -> None:
    """It may be mended: the consumer stays, says so, and is not ready."""
    variables = await prepared(broker, "unwritable")
    file = tmp_path / "file"
    file.write_text("not a directory")
    result = first_error("staging.unavailable", **variables, BINWRIGHT_STAGING__PATH=str(file))
    assert str(file) in result


async def test_a_consumer_needs_no_spark_to_be_ready(broker: str, tmp_path: Path) -> None:
    variables = await prepared(broker, "sparkless")
    result = first_error(
        "consumer.ready",
        **variables,
        BINWRIGHT_LAKE__SPARK=f"sc://{UNUSED}",
        BINWRIGHT_LAKE__PATH=str(tmp_path),
    )
    assert result


def first_error(words: str, **variables: str) -> str:
    """Return the first line of a consumer's log with these words; then end the consumer."""
    command = (sys.executable, "-m", "binwright.cli", "consumer", "--slot=0")
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONWARNINGS": "ignore", **variables},
        stderr=subprocess.PIPE,
        text=True,
    ) as consumer:
        assert consumer.stderr is not None
        result = next((line for line in consumer.stderr if words in line), "")
        consumer.terminate()
        consumer.communicate(timeout=60)
    assert consumer.returncode == 0
    return result


@pytest.mark.nightly
async def test_an_audit_without_spark_is_reported(broker: str, tmp_path: Path) -> None:
    await create_topic(KafkaSettings(bootstrap_servers=broker), "audit.no-spark", 1)
    where = ("--bootstrap-servers", broker, "--spark", f"sc://{UNUSED}", "--lake", str(tmp_path))
    done = await asyncio.to_thread(run, "audit", "--topics", "audit.no-spark", *where)
    assert done.returncode == 1
    assert UNUSED in done.stderr


def check_one_sentence(done: subprocess.CompletedProcess[str], words: str) -> None:
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert words in line


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs a command as another user")
def test_a_user_without_a_name_is_reported_what_spark_needs(tmp_path: Path) -> None:
    """It reads as root does: this Python may lie where nobody else looks."""
    rights = "+dac_override"
    done = subprocess.run(
        (
            *("setpriv", "--reuid", "1000660000", "--regid", "0", "--clear-groups"),
            *("--inh-caps", rights, "--ambient-caps", rights),
            *(sys.executable, "-m", "binwright.cli", "up"),
            *("--topics", "orders", "--lake", str(tmp_path / "lake")),
        ),
        env={name: value for name, value in os.environ.items() if name not in {"USER", "LOGNAME"}},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    check_one_sentence(done, "user id 1000660000 has no name, and Spark does not start without")


@pytest.mark.nightly
@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_home_that_cannot_be_written_is_reported_with_the_variable_of_the_cache(
    command: str, tmp_path: Path
) -> None:
    options = ("--topics", "orders", "--lake", str(tmp_path / "lake")) if command == "up" else ()
    elsewhere = {"HOME": "/proc", "XDG_CACHE_HOME": "", "BINWRIGHT_CACHE": ""}
    done = run(command, *options, **elsewhere)
    check_one_sentence(done, "nothing can be kept in /proc/.cache/binwright")
    assert "BINWRIGHT_CACHE" in done.stderr


@pytest.mark.nightly
def test_too_few_files_that_a_process_may_open_are_reported(tmp_path: Path) -> None:
    command = f"ulimit -n 256; exec {sys.executable} -m binwright.cli up --topics a --lake lake"
    done = subprocess.run(
        ("bash", "-c", command),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    check_one_sentence(done, "a process may open 256 files here")


@pytest.mark.nightly
async def test_a_broker_that_advertises_what_does_not_resolve_is_named_by_every_command(
    tmp_path: Path,
) -> None:
    """Not only by `doctor`: aiokafka and librdkafka would go on trying, without a word."""
    with reserve_port() as port, reserve_port() as controller:
        pass
    elsewhere = f"broker-1.nowhere.invalid:{port}"
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"
    settings = {
        "listeners": listeners,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://{elsewhere}",
    }
    address = f"127.0.0.1:{port}"
    commands = [
        ("load", "--topics", "orders", "--minutes", "0.1"),
        (
            "init",
            "--topics",
            "orders",
            "--lake",
            str(tmp_path / "lake"),
            "--output",
            str(tmp_path / "a.toml"),
        ),
        ("brokers", "status"),
        ("status",),
        ("monitor",),
        ("consumer", "--slot", "0"),
        ("up", "--topics", "orders", "--lake", str(tmp_path / "lake")),
    ]
    variables = {"BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS": address, "BINWRIGHT_TOPICS": '["orders"]'}
    async with run_broker(tmp_path / "broker", port=port, settings=settings):
        ran = await asyncio.gather(
            *(asyncio.to_thread(run, *command, **variables) for command in commands)
        )
    for command, done in zip(commands, ran, strict=True):
        assert done.returncode == 1, (command, done.stderr)
        line, *more = done.stderr.splitlines()
        assert not more, (command, more)
        assert f"broker 1 advertises {elsewhere}, which cannot be used from here" in line, command
