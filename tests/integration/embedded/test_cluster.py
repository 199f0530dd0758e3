"""Tables are written by executors of a standalone cluster, and nothing of it is left behind."""

import asyncio
import re
import stat
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from tests.integration.embedded.spark_requests import KILL, ask_page, kinds_of, listening

from binwright.local.spark import Master, run_spark
from binwright.local.spark_cluster import run_spark_cluster
from binwright.protocol.errors import EmbeddedError

pytestmark = pytest.mark.integration

ROWS, FILES = 1_000, 8
SOON_S = 60.0
BACKEND = "CoarseGrainedExecutorBackend"


def executors(directory: Path) -> dict[str, psutil.Process]:
    """Return the executors that run below `directory`, by the name of their worker."""
    found = {}
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line, home = " ".join(process.info["cmdline"] or ()), Path(process.info["cwd"] or "/")
        if BACKEND in line and home.is_relative_to(directory):
            found[home.relative_to(directory).parts[0]] = process
    return found


def write(url: str, table: Path) -> tuple[set[int], set[Path]]:
    """Write a table in several tasks; return its ids, and where the writing processes ran."""
    home = "reflect('java.lang.System', 'getProperty', 'user.dir') AS home"
    spark = SparkSession.builder.remote(url).create()
    try:
        frame = spark.range(0, ROWS, numPartitions=FILES).selectExpr("id", home)
        frame.write.format("delta").save(str(table))
        rows = spark.read.format("delta").load(str(table)).collect()
    finally:
        spark.stop()
    return {row[0] for row in rows}, {Path(row[1]) for row in rows}


def command_lines_with(text: str) -> list[psutil.Process]:
    """Return the processes of this machine that show the text to everybody."""
    every = psutil.process_iter(["cmdline"])
    return [each for each in every if text in " ".join(each.info["cmdline"] or ())]


def files_with(text: str, directory: Path) -> list[Path]:
    written = (file for file in directory.rglob("*") if file.is_file())
    return [file for file in written if text.encode() in file.read_bytes()]


async def both(home: Path) -> dict[str, psutil.Process]:
    """Wait until each of two workers has an executor, and return these."""
    async with asyncio.timeout(SOON_S):
        while len(found := executors(home)) < 2:  # noqa: ASYNC110 - processes send no events
            await asyncio.sleep(0.2)
    return found


def check_no_port_acts(directory: Path, connect: int) -> None:
    """Check that ports refuse whoever lacks the secret, and that status pages end nothing.

    The executors that write afterwards show that nothing has ended.
    """
    every = psutil.process_iter(["cwd"])
    ports = listening(p for p in every if Path(p.info["cwd"] or "/").is_relative_to(directory))
    assert {*ports.values()} <= {"127.0.0.1", "::ffff:127.0.0.1"}
    kinds = kinds_of(ports.keys() - {connect})
    assert {*kinds.values()} == {"refuses", "HTTP"}
    assert [*kinds.values()].count("HTTP") == 3  # master, two workers
    pages = [port for port, kind in kinds.items() if kind == "HTTP"]
    shown = b"".join(ask_page(port, "GET", "/json/")[1] for port in pages)
    (application,) = {*re.findall(rb"app-[0-9]{14}-[0-9]{4}", shown)}
    for port in pages:
        for path in KILL:
            ask_page(port, "POST", path.format(application.decode()))


async def check_an_outsider_gets_no_executor(place: Path, home: Path, master: Master) -> None:
    async with asyncio.timeout(SOON_S):
        while executors(home):  # noqa: ASYNC110 - of the driver before: processes send no events
            await asyncio.sleep(0.2)
    with pytest.raises(EmbeddedError, match=r"ended with \d+ before it was ready"):
        async with run_spark(place / "outsider", master=Master(master.url, "another")):
            pass
    assert not executors(home)


@pytest.mark.nightly
async def test_executors_of_both_workers_write_for_a_driver_that_has_the_secret(
    tmp_path: Path,
) -> None:
    home = tmp_path / "a b" / "cluster"
    async with run_spark_cluster(home, workers=2, cores_each=1) as master:
        async with run_spark(tmp_path / "server", master=master) as server:
            running = await both(home)
            assert not command_lines_with(master.secret)
            connect = int(server.address.rpartition(":")[2])
            await asyncio.to_thread(check_no_port_acts, tmp_path, connect)
            ids, homes = await asyncio.to_thread(write, server.url, tmp_path / "table")
            assert ids == set(range(ROWS))
            assert {where.relative_to(home).parts[0] for where in homes} == set(running)
        await check_an_outsider_gets_no_executor(tmp_path, home, master)
    assert not executors(home)
    holding = await asyncio.to_thread(files_with, master.secret, tmp_path)
    assert holding == [tmp_path / "server" / "spark.args"]
    assert stat.S_IMODE(holding[0].stat().st_mode) == 0o600
