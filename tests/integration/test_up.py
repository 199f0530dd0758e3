"""The system for a person's own topics, and the audit as a command of its own."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from tests.integration.embedded.spark_requests import ask_page, kinds_of, listening
from tests.integration.topics import create_topic
from tests.waiting import until

from binwright.cli.options import settings_at
from binwright.kafka.client import ClusterClient
from binwright.kafka.election import election_members
from binwright.local.stack import services
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

BINWRIGHT = (sys.executable, "-m", "binwright.cli")
RECORDS = 2_000

Report = dict[str, Any]


async def produce(bootstrap: str, records: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(records):
            value = json.dumps({"id": number}).encode()
            await producer.send("mine", value, key=b"%d" % number, partition=number % 4)


async def recreate(bootstrap: str) -> None:
    """Delete the topic and create it again, as soon as Kafka has deleted it."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_topics(["mine"])
    finally:
        await admin.close()
    await create_topic(KafkaSettings(bootstrap_servers=bootstrap), "mine", 4)


@dataclass(frozen=True)
class Running:
    kafka: str
    spark: str
    token_file: str
    lake: Path


async def audited(running: Running, enough: Callable[[Report], bool]) -> Report:
    """Audit until it is enough."""
    lake = ("--spark", running.spark, "--lake", str(running.lake))
    where = ("--bootstrap-servers", running.kafka, *lake)
    command = (*BINWRIGHT, "audit", "--topics", "mine", *where, "--json")
    async with asyncio.timeout(240):
        while True:
            done = await asyncio.to_thread(
                subprocess.run,
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=200,
                env={**os.environ, "BINWRIGHT_LAKE__TOKEN_FILE": running.token_file},
            )
            assert done.stdout, done.stderr
            found: Report = json.loads(done.stdout)
            assert done.returncode == (0 if found["clean"] else 1)
            if enough(found):
                return found


def refused(home: Path, *options: str) -> str:
    """Run `binwright up` where it must not start; return why."""
    command = (*BINWRIGHT, "up", "--topics", "mine", *options)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, cwd=home
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def processes_in(home: Path) -> list[psutil.Process]:
    """Return the processes that log there, and the consumers of such controllers."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            seen = [*process.cmdline(), *process.environ().values()]
            if process.pid != os.getpid() and any(str(home) in word for word in seen):
                found.append(process)
    return found


def consumers(home: Path) -> list[int]:
    return [each.pid for each in processes_in(home) if "binwright.consumer" in each.cmdline()]


@asynccontextmanager
async def system(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    *options: str,
    ends_by: signal.Signals = signal.SIGINT,
) -> AsyncIterator[Running]:
    """Run `binwright up` until the block ends, with a settings file in the present directory.

    As in many a company: behind a proxy that knows nothing of this machine, under a locale without
    letters beyond ASCII, which the lake's path has.
    """
    lake, log, file = home / "lä ke", home / "up.log", home / "up.toml"
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    monkeypatch.setenv("LC_ALL", "C")
    file.write_text("[lake]\nbatch_bytes = 100_000_000\n")
    settings = ("--settings", file.name)
    command = (*BINWRIGHT, "up", *settings, "--topics", "mine", "--lake", str(lake), *options)
    with log.open("w") as output:
        running = subprocess.Popen(  # noqa: ASYNC220 - a moment
            command,
            env={**os.environ},
            cwd=home,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        await until(lambda: "page:" in log.read_text() or running.poll() is not None, 300)
        found = re.search(
            r"Kafka: (\S+)(?s:.)*Spark: (\S+)\s+Spark's token: in (.+)", log.read_text()
        )
        assert found, log.read_text()
        yield Running(found[1], found[2], found[3], lake)
    finally:
        running.send_signal(ends_by)
        await until(lambda: running.poll() is not None, 90)
    assert running.returncode == 0


def check_the_token_stays_in_its_file(home: Path, file: Path) -> None:
    """Neither a command line nor a log or another file of the run has it."""
    token = file.read_text()
    lines = [" ".join(each.cmdline()) for each in processes_in(home)]
    assert {"binwright.monitor", "binwright.controller", "binwright.consumer"} <= {
        word for line in lines for word in line.split()
    }
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if holds(path, token)]
    assert [path for path in home.rglob("*") if holds(path, token)] == [file]


def check_no_port_acts_without_a_secret(home: Path, at: Running) -> None:
    """Ports want a secret, or only show; the broker alone has no users (docs/security.md)."""
    address = {each: int(each.rpartition(":")[2]) for each in (at.kafka, at.spark)}
    processes = processes_in(home)
    broker = [each for each in processes if address[at.kafka] in listening([each])]
    assert len(broker) == 1
    ports = listening(each for each in processes if each not in broker)
    assert {*ports.values()} <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert address[at.spark] in ports  # it wants the token: embedded/test_spark_token.py
    kinds = kinds_of(ports.keys() - {address[at.spark]})
    assert {*kinds.values()} == {"refuses", "HTTP"}, kinds
    pages = [port for port, kind in kinds.items() if kind == "HTTP"]
    refused = {ask_page(port, "POST", path)[0] for port in pages for path in ("/", "/orders")}
    assert refused <= {400, 403, 404, 405}


def holds(path: Path, text: str) -> bool:
    """Return whether a file has this text; not if it is gone by now."""
    with contextlib.suppress(FileNotFoundError, IsADirectoryError, ProcessLookupError):
        return text.encode() in path.read_bytes()
    return False


async def test_own_records_land_and_the_same_command_goes_on_with_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after its terminal was closed, which leaves no process behind."""
    async with system(tmp_path, monkeypatch, ends_by=signal.SIGHUP) as at:
        await produce(at.kafka, RECORDS)
        assert (await audited(at, lambda report: bool(report["clean"])))["rows"] == RECORDS
        await asyncio.to_thread(check_the_token_stays_in_its_file, tmp_path, Path(at.token_file))
        await asyncio.to_thread(check_no_port_acts_without_a_secret, tmp_path, at)
        await check_a_recreated_topic_lands_beside_the_old_one(at)
    assert not processes_in(tmp_path)
    async with system(tmp_path, monkeypatch) as at:
        await produce(at.kafka, RECORDS)
        four = await audited(at, lambda report: report["rows"] >= 4 * RECORDS)
        assert four["clean"]
        await check_a_second_is_refused_and_ends_nothing(tmp_path, at)
        await check_a_standby_ends_only_what_it_started(tmp_path, at)
        await produce(at.kafka, RECORDS)
        five = await audited(at, lambda report: report["rows"] >= 5 * RECORDS)
        assert five["clean"]
    end = (tmp_path / "up.log").read_text()
    assert f"{5 * RECORDS:,} rows in {at.lake}/mine" in end
    assert f"again: binwright up --settings up.toml --topics mine --lake '{at.lake}'" in end

    shutil.rmtree(at.lake / "_up")
    why = refused(tmp_path, "--lake", str(at.lake))
    assert "holds tables of mine already" in why
    assert "--bootstrap-servers" in why


async def check_a_recreated_topic_lands_beside_the_old_one(at: Running) -> None:
    """Soon it is longer than it ever was."""
    await recreate(at.kafka)
    await produce(at.kafka, 2 * RECORDS)
    both = await audited(at, lambda report: report["rows"] >= 3 * RECORDS)
    assert both["rows"] == 3 * RECORDS
    assert both["clean"]
    (table,) = both["tables"]
    assert [part["earlier"] for part in table["partitions"]] == [RECORDS // 4] * 4


async def check_a_second_is_refused_and_ends_nothing(home: Path, at: Running) -> None:
    before = consumers(home)
    assert len(before) == 1
    why = refused(home, "--lake", str(at.lake))
    assert f"group binwright, Kafka {at.kafka}" in why
    why = refused(home, "--lake", "./other", "--bootstrap-servers", at.kafka)
    assert "group binwright is led already, by a controller on 127.0.0.1 since" in why
    assert consumers(home) == before


async def check_a_standby_ends_only_what_it_started(home: Path, at: Running) -> None:
    """Two that start at once both pass the check: one of them stands by, and is ended here."""
    before, logs = consumers(home), home / "standby"
    logs.mkdir()
    settings = settings_at(
        at.kafka,
        topics=("mine",),
        lake=str(at.lake),
        spark=at.spark,
        token_file=Path(at.token_file),
    )
    controller = settings.controller.model_copy(update={"process_logs": logs})
    standby = settings.model_copy(update={"controller": controller})
    async with services(standby, logs), ClusterClient(settings.kafka) as cluster:
        async with asyncio.timeout(60):
            while len(await election_members(cluster, "binwright.controllers")) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    assert "controller.leading" not in (logs / "controller.log").read_text()
    assert consumers(home) == before


@pytest.mark.nightly
async def test_own_records_land_through_a_cluster_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ("--cluster", "--spark-memory", "1g")
    async with system(tmp_path, monkeypatch, *cluster) as at:
        await produce(at.kafka, RECORDS)
        found = await audited(at, lambda report: bool(report["clean"]))
        assert found["rows"] == RECORDS
