"""Secrets of their own in every field, the whole system up: none of them is anywhere to be seen."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.ports import reserve_ports
from tests.integration.security.commands import BINWRIGHT, DEADLINE_S
from tests.integration.security.secured_broker import PASSWORD, SecuredBroker
from tests.integration.topics import create_topic

from binwright.kafka.client import client_options
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.server import HOST
from binwright.local.stack import Stack, services
from binwright.runtime.environment import clean_environment
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.health import HealthSettings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

LANDED, WAITING = "canary-landed", "canary-waiting"
LANDED_S = 180.0
RECORDS = 50


@dataclass(frozen=True, slots=True)
class Canaries:
    """Secrets that stand nowhere else."""

    kafka: str = PASSWORD
    registry: str = "canary-of-the-registry"
    metrics: str = "canary-of-the-metrics"
    store: str = "canary-of-the-store"

    def found_in(self, text: str) -> list[str]:
        """Return those that a text has."""
        every = self.kafka, self.registry, self.metrics, self.store
        return [secret for secret in every if secret in text]


CANARIES = Canaries()


@pytest.fixture
def ports() -> Iterator[range]:
    """Give ports of the controller, of its consumer, and one where no registry listens."""
    with reserve_ports(3) as found:
        yield found


def settings(secured: SecuredBroker, spark: str, directory: Path, ports: range) -> Settings:
    """Return the settings of a group with two tables; the registry of one cannot be reached."""
    health, _, unused = ports
    secrets = directory / "secrets"
    secrets.mkdir()
    for name, secret in (("registry", CANARIES.registry), ("metrics", CANARIES.metrics)):
        (secrets / name).write_text(secret)
    return load_settings(
        group="canary",
        topics=(LANDED, WAITING),
        log_level="debug",
        kafka=secured.settings("SCRAM-SHA-512"),
        lake={"path": str(directory / "lake"), "spark": spark, "freshness_s": 2.0},
        tables=[{"topics": [WAITING], "format": "avro"}],
        registry={
            "url": f"https://{HOST}:{unused}",
            "username": "ann",
            "password_file": secrets / "registry",
        },
        monitor={"window_s": 8.0, "topic": "canary.metrics"},
        controller={"process_logs": directory / "logs", "max_slots": 1},
        consumer={"drain_timeout_s": 5.0},
        health={"port": health, "token_file": secrets / "metrics"},
    )


@asynccontextmanager
async def running(chosen: Settings, directory: Path) -> AsyncIterator[Stack]:
    """Run the group, with records in both topics."""
    for topic in (LANDED, WAITING):
        await create_topic(chosen.kafka, topic, 2)
    async with AIOKafkaProducer(**client_options(chosen.kafka)) as producer:
        for number in range(RECORDS):
            value = b'{"id": %d}' % number
            await producer.send(LANDED, value, partition=number % 2)
            await producer.send(WAITING, b"\0\0\0\0\7" + value, partition=number % 2)
    async with KafkaControlTopics(chosen.kafka) as bus:
        await bus.ensure(chosen.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(chosen.monitor.topic, 1, METRICS_CONFIG)
    unwatched = chosen.changed(health=HealthSettings())  # the port is the controller's
    async with (
        services(chosen, directory / "logs", monitor=unwatched) as stack,
        background_tasks(stack.wait_for_failure()),
    ):
        yield stack


async def command(chosen: Settings, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command with the same settings to its end."""
    return await asyncio.to_thread(
        subprocess.run,
        (*BINWRIGHT, *arguments),
        env=clean_environment({**python_path(), **variables(chosen)}),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


def python_path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(filter(None, sys.path))}


def variables(chosen: Settings) -> dict[str, str]:
    return {**settings_environment(chosen), "AWS_SECRET_ACCESS_KEY": CANARIES.store}


async def until_landed(chosen: Settings) -> None:
    async with asyncio.timeout(LANDED_S):
        while True:
            shown = json.loads((await command(chosen, "status", "--json")).stdout or "[]")
            tables = {table["topic"]: table for group in shown for table in group["tables"]}
            if tables.get(LANDED, {}).get("rows") == RECORDS and tables[WAITING]["fault"]:
                return
            await asyncio.sleep(1.0)


async def records_of(chosen: Settings) -> AsyncIterator[str]:
    """Yield what stands in the group's own topics."""
    async with KafkaControlTopics(chosen.kafka, read_only=True) as bus:
        for topic in (chosen.metadata_topic, chosen.landing_topic, chosen.monitor.topic):
            for partition in range(await bus.partitions(topic) or 0):
                end = await bus.end(topic, partition)
                reader = await bus.reader(topic, partition, 0)
                try:
                    async with asyncio.timeout(DEADLINE_S):
                        while reader.position < end:
                            for record in await reader.read(1.0):
                                yield f"{topic}: {record.key!r} {record.value!r}"
                finally:
                    await reader.close()


def contents(directory: Path) -> dict[str, str]:
    """Return what stands in the files of a directory, by their paths in it."""
    return {
        str(file.relative_to(directory)): file.read_bytes().decode(errors="replace")
        for file in directory.rglob("*")
        if file.is_file() and file.parent.name != "secrets"
    }


def command_lines() -> Iterator[str]:
    for process in psutil.process_iter(["cmdline"]):
        yield " ".join(process.info["cmdline"] or ())


async def asked(address: str, token: str = "") -> str:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(address, headers=headers) as found:
        return await found.text()


@pytest.mark.nightly
async def test_no_secret_is_seen_anywhere(
    secured: SecuredBroker,
    spark_url: str,
    tmp_path: Path,
    ports: range,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARIES.store)
    chosen = settings(secured, spark_url, tmp_path, ports)
    seen: dict[str, str] = {}
    async with running(chosen, tmp_path) as stack:
        await until_landed(chosen)
        has = "\n".join(str(psutil.Process(pid).environ()) for pid in stack.pids())
        assert {CANARIES.kafka, CANARIES.store} <= set(CANARIES.found_in(has)), "they are in use"
        for arguments in COMMANDS:
            done = await command(chosen, *arguments)
            seen[" ".join(arguments)] = done.stdout + done.stderr
        for path in ("live", "ready", "metrics"):
            address = f"http://{HOST}:{chosen.health.port}/{path}"
            seen[path] = await asked(address, CANARIES.metrics)
        seen["metrics without a token"] = await asked(f"http://{HOST}:{chosen.health.port}/metrics")
        seen["records"] = "\n".join([text async for text in records_of(chosen)])
        seen["command lines"] = "\n".join(command_lines())
    seen |= contents(tmp_path)
    assert any(name.startswith("logs/consumer-0") for name in seen)
    assert any(name.startswith(f"lake/{LANDED}/_delta_log") for name in seen)
    assert "does not give schema 7" in seen["logs/consumer-0.log"], "the registry was asked"
    assert {name: found for name, text in seen.items() if (found := CANARIES.found_in(text))} == {}


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("explain", WAITING),
    ("settings",),
    ("doctor",),
    ("table", "list"),
    ("table", "describe", WAITING),
    ("audit", "--json"),
    ("monitor", "--no-such-option"),
)
"""What people run, and what they may copy into a ticket."""


@pytest.mark.parametrize(
    "wrong",
    [
        {"kafka": {"sasl_password": CANARIES.kafka, "sasl_mechanism": "GUESS"}},
        {"kafka": {"sasl_password": CANARIES.kafka, "no_such_setting": "1"}},
        {"kafka": {"sasl_password": CANARIES.kafka}},
    ],
)
async def test_settings_that_do_not_hold_show_no_secret(wrong: dict[str, dict[str, Any]]) -> None:
    named = {
        f"BINWRIGHT_{section.upper()}__{name.upper()}": value
        for section, values in wrong.items()
        for name, value in values.items()
    }
    done = await asyncio.to_thread(
        subprocess.run,
        (*BINWRIGHT, "status"),
        env=clean_environment({**python_path(), **named}),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 2
    assert CANARIES.found_in(done.stdout + done.stderr) == []
    assert "kafka" in done.stderr
