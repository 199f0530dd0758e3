"""Versions of a log on a local disk, with hard links and on a file system that has none."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession
from tests.integration.conftest import BackgroundLoop
from tests.integration.lake.test_add_files import Place
from tests.integration.lake.without_links import CannotForbid, forbid_links

from binwright.local.java import find_java
from binwright.local.spark import LANDING_JAR, SparkServer, classpath, delta_jars, run_spark

pytestmark = pytest.mark.integration

WAIT_S = 60.0
VERSIONS = 600
LINES = 2_000  # of 100 kB: long enough to be killed in between
IS_THERE = "java.nio.file.FileAlreadyExistsException"


@pytest.fixture(scope="module")
def linkless_loop() -> Iterator[BackgroundLoop]:
    """A loop in a thread whose processes cannot make hard links."""

    async def forbid() -> None:
        forbid_links()

    loop = BackgroundLoop()
    try:
        loop.wait(forbid())
        yield loop
    except CannotForbid as exc:
        pytest.skip(f"links cannot be taken away here: {exc}")
    finally:
        loop.close()


class Writer:
    """A Java process with the log store."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._gateway, self._java = gateway, gateway.jvm
        self._conf = self._java.org.apache.hadoop.conf.Configuration()
        self._store = self._java.binwright.spark.LocalLogStore(self._conf)

    def write(self, version: Path, line: str, times: int = 1) -> bool:
        """Write a version of so many equal lines; return whether it is this one's."""
        lines = self._java.java.util.Collections.nCopies(times, line).iterator()
        path = self._java.org.apache.hadoop.fs.Path(str(version))
        try:
            self._store.write(path, lines, False, self._conf)  # noqa: FBT003 - Java's overwrite
        except Py4JJavaError as exc:
            if exc.java_exception.getClass().getName() != IS_THERE:
                raise
            return False
        return True

    def kill(self) -> None:
        with self._gateway.java_process as process:
            process.kill()

    def close(self) -> None:
        self._gateway.shutdown()
        self.kill()


@pytest.fixture(params=["links", "no links"])
def start_writer(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[], Writer]]:
    """Start a process that writes versions."""
    name = "background_loop" if request.param == "links" else "linkless_loop"
    loop: BackgroundLoop = request.getfixturevalue(name)
    started: list[Writer] = []

    async def start() -> Writer:
        java = await find_java()
        jars = (LANDING_JAR, *classpath(await delta_jars(java, print)))
        return Writer(
            JavaGateway.launch_gateway(
                classpath=":".join(map(str, jars)), java_path=str(java.binary), die_on_exit=True
            )
        )

    def another() -> Writer:
        started.append(loop.wait(start()))
        return started[-1]

    yield another
    for each in started:
        each.close()


def version(log: Path, number: int) -> Path:
    return log / f"{number:020}.json"


def test_of_all_who_write_a_version_at_once_one_has_written_it(
    tmp_path: Path, start_writer: Callable[[], Writer]
) -> None:
    """†: two threads each of two processes, as of a server and one that was to be gone."""
    writers = [start_writer(), start_writer()]
    begin = threading.Barrier(2 * len(writers))

    def write(name: int) -> list[bool]:
        won = []
        for number in range(VERSIONS):
            begin.wait(WAIT_S)
            won.append(writers[name % 2].write(version(tmp_path, number), f'"{name}"'))
        return won

    with ThreadPoolExecutor(begin.parties) as threads:
        results = [*threads.map(write, range(begin.parties))]
    for number in range(VERSIONS):
        winners = [name for name, won in enumerate(results) if won[number]]
        assert [json.loads(version(tmp_path, number).read_text())] == [str(w) for w in winners]
    assert not [*tmp_path.glob(".*.tmp")]


def test_who_is_killed_in_a_version_leaves_none_and_the_next_one_writes_it(
    tmp_path: Path, start_writer: Callable[[], Writer]
) -> None:
    """†: half a version would be one that every reader refuses, or rows that are lost."""
    killed, target = start_writer(), version(tmp_path, 0)

    def begun() -> bool:
        return any(file.stat().st_size for file in tmp_path.glob(".*.tmp"))

    with ThreadPoolExecutor(1) as threads:
        write = threads.submit(killed.write, target, "x" * 100_000, LINES)
        while not begun():
            assert not write.done(), write.result()
        killed.kill()
        assert write.exception(WAIT_S) is not None
    assert not target.exists()

    assert start_writer().write(target, '"next"')
    assert target.read_text() == '"next"\n'
    assert not start_writer().write(target, '"late"')
    assert target.read_text() == '"next"\n'


def test_versions_have_the_rights_that_hadoop_gives_to_files(
    tmp_path: Path, start_writer: Callable[[], Writer]
) -> None:
    assert start_writer().write(version(tmp_path, 0), "{}")
    assert version(tmp_path, 0).stat().st_mode & 0o777 == 0o644


# --- on Spark ----------------------------------------------------------------------------------


@pytest.fixture
def linkless_spark(
    linkless_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkServer]:
    """A server that cannot make hard links."""
    with linkless_loop.entered(run_spark(tmp_path_factory.mktemp("linkless"))) as running:
        yield running


def connected(server: SparkServer) -> SparkSession:
    session = SparkSession(DefaultChannelBuilder(server.url))
    session.client.set_retry_policies([])  # else one waits ten minutes for a server that is killed
    return session


def versions(place: Place) -> list[str]:
    return sorted(file.stem for file in (place.root / "t" / "_delta_log").glob("*.json"))


@pytest.mark.nightly
def test_tables_are_written_without_links_also_by_two_at_a_time_and_after_a_kill(
    lake: Path, linkless_loop: BackgroundLoop, linkless_spark: SparkServer
) -> None:
    place = Place(connected(linkless_spark), lake)
    path = place.create("id BIGINT")

    def in_place(number: int) -> None:
        file = place.stage(pa.table({"id": [number]}), f"{number}.parquet")
        assert place.call(file)[0] == "landed"

    def appended(number: int) -> None:
        rows = connected(linkless_spark).range(1_000 + number, 1_001 + number)
        rows.write.format("delta").mode("append").save(path)

    with ThreadPoolExecutor(2) as threads:
        landed = [threads.submit(each, n) for n in range(10) for each in (in_place, appended)]
        for each in landed:
            each.result(WAIT_S)
    assert versions(place) == [f"{n:020}" for n in range(21)]
    assert place.count() == 20
    (file,) = (lake / "t").glob("0.parquet")
    assert file.stat().st_nlink == 1  # a copy

    pid = linkless_spark.pid
    with ThreadPoolExecutor(1) as threads:
        write = threads.submit(lambda: [*map(in_place, range(10, 1_000))])
        while len(versions(place)) < 25:
            assert not write.done(), write.result()
        linkless_loop.wait(linkless_spark.kill())
        assert write.exception(WAIT_S) is not None
    assert pid is not None
    assert not psutil.pid_exists(pid)
    linkless_loop.wait(linkless_spark.start())

    place.spark = connected(linkless_spark)
    there = versions(place)
    assert there == [f"{n:020}" for n in range(len(there))]
    actions = place.actions()
    added = [each["add"]["path"] for each in actions if "add" in each]
    assert place.count() == len(added) == len({*added}) == len(there) - 1
    in_place(1_000)
    assert place.count() == len(added) + 1
