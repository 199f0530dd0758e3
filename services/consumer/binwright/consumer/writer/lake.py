"""The Delta tables: one per topic, at `<lake.path>/<topic>`, through Spark Connect."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import structlog
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.writer import delta
from binwright.consumer.writer.faults import Faults
from binwright.consumer.writer.frames import frame_of, nothing, spark_path
from binwright.consumer.writer.log_trim import local_path, trim_log
from binwright.consumer.writer.session import Sessions
from binwright.core.errors import BinwrightError, WriteUnclear
from binwright.core.ports import Compaction, History, Table, TableFiles
from binwright.core.writer.batch import Batch
from binwright.shell.connect import shown
from binwright.shell.settings import LakeSettings

log = structlog.get_logger()

T = TypeVar("T")

READ_TIMEOUT_S = 120.0
SCAN_TIMEOUT_S = 1800.0
LONGEST_WRITE = 16  # times the limit of a first try
HOUSEKEEPING_TIMEOUT_S = 4 * 3600.0


class SparkLake:
    """A `Lake`. Connects at its first call, and anew after a failure.

    Each table has a session of its own, and housekeeping another for each server. Nothing waits
    for ever: a write that overruns `write_timeout_s` is unclear, and has twice the time when it is
    sent again; a question that overruns `read_timeout_s` has failed. Both are abandoned, and the
    next call has a new session.
    """

    def __init__(
        self,
        lake: LakeSettings,
        staged: str,
        write_timeout_s: float,
        *,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        """Use the servers of `lake`.

        Args:
            lake: Where the tables are, which servers write them, and what compaction makes.
            staged: Where staged files are: one directory per topic.
            write_timeout_s: How long a write may go without a verdict.
            read_timeout_s: How long a question may go without an answer.
        """
        self._lake, self._path = lake, lake.path.rstrip("/")
        self._staged = spark_path(staged).rstrip("/")
        self._write_timeout_s, self._read_timeout_s = write_timeout_s, read_timeout_s
        self._limits_s: dict[str, float] = {}  # of tables whose last write overran its limit
        self._tables: dict[str, Sessions] = {}
        self._beside: dict[str, Sessions] = {}  # server -> housekeeping's

    async def __aenter__(self) -> Self:
        """Return itself; nothing is connected yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the sessions; takes 15 s at most, if a server does not answer."""
        every = [*self._tables.values(), *self._beside.values()]
        await asyncio.gather(*(sessions.close() for sessions in every))

    # --- the port --------------------------------------------------------------------------------

    async def open(self, table: Table) -> None:
        """Create the topic's table unless it is there; see `Lake.open`."""
        place = self._place(table.topic)
        await place.ask(
            self._session(table.topic),
            lambda spark: delta.ensure(spark, place.path, table),
            self._read_timeout_s,
            place.faults.of_open,
        )

    async def claim(self, topic: str, app: str, version: int, stamp: str | None) -> int | None:
        """Append nothing under (`app`, `version`); see `Lake.claim`."""
        return await self._write(
            topic, frame=nothing, app=app, version=version, stamp=stamp, files=()
        )

    async def append(
        self, topic: str, batch: Batch, app: str, version: int, stamp: str
    ) -> int | None:
        """Append the batch's rows in one commit; see `Lake.append`."""
        frame = frame_of(batch, f"{self._staged}/{topic}")
        return await self._write(
            topic, frame=frame, app=app, version=version, stamp=stamp, files=batch.files
        )

    async def history(self, topic: str, limit: int) -> History:
        """Return the newest commits; see `Lake.history`."""
        place = self._place(topic)
        return await self._read(topic, lambda spark: delta.history(spark, place.path, limit))

    async def newest(self, topic: str) -> Mapping[int, int]:
        """Return the highest landed offset of each partition: a scan, on a session of its own."""
        place, sessions = self._place(topic), self._opened(self._lake.server(topic))
        try:
            return await place.ask(
                sessions,
                lambda spark: delta.newest(spark, place.path),
                SCAN_TIMEOUT_S,
                place.faults.of_read,
            )
        finally:
            await sessions.leave()

    async def files(self, topic: str) -> TableFiles:
        """Return what the table consists of; see `Lake.files`."""
        place = self._place(topic)
        return await self._keep_house(topic, lambda spark: delta.files(spark, place.path))

    async def compact(self, topic: str) -> Compaction:
        """Merge small files; see `Lake.compact`. On a local disk its old log goes, too."""
        place = self._place(topic)
        done = await self._keep_house(topic, lambda spark: delta.compact(spark, place.path))
        await self._trim_log(topic)
        return done

    async def vacuum(self, topic: str) -> None:
        """Delete files that nothing needs; see `Lake.vacuum`."""
        place, retain_s = self._place(topic), self._lake.vacuum_retention_s
        await self._keep_house(topic, lambda spark: delta.vacuum(spark, place.path, retain_s))

    async def release(self, topic: str) -> None:
        """End the table's session."""
        if (sessions := self._tables.pop(topic, None)) is not None:
            await sessions.leave()

    # --- inside ----------------------------------------------------------------------------------

    async def _write(  # noqa: PLR0913 - what a commit is made of
        self,
        topic: str,
        *,
        frame: Callable[[SparkSession], DataFrame],
        app: str,
        version: int,
        stamp: str | None,
        files: Sequence[str],
    ) -> int | None:
        place, began = self._place(topic), time.monotonic()
        limit_s = self._limits_s.get(topic, self._write_timeout_s)
        try:
            committed = await place.ask(
                self._session(topic),
                delta.append(frame, place.path, app, version, stamp),
                limit_s,
                lambda exc: place.faults.of_write(exc, files),
            )
        except WriteUnclear as exc:
            if isinstance(exc.__cause__, TimeoutError):
                # The server ends what we leave: sent again with no more time, it would never end.
                self._limits_s[topic] = min(2 * limit_s, LONGEST_WRITE * self._write_timeout_s)
            raise
        self._limits_s.pop(topic, None)
        took_ms = round((time.monotonic() - began) * 1000)
        log.debug("write.ended", table=topic, app=app, committed=committed, took_ms=took_ms)
        return committed

    async def _read(self, topic: str, work: Callable[[SparkSession], T]) -> T:
        place, sessions = self._place(topic), self._session(topic)
        return await place.ask(sessions, work, self._read_timeout_s, place.faults.of_read)

    async def _keep_house(self, topic: str, work: Callable[[SparkSession], T]) -> T:
        place, server = self._place(topic), self._lake.server(topic)
        sessions = self._beside.setdefault(server, self._opened(server, self._conf()))
        return await place.ask(sessions, work, HOUSEKEEPING_TIMEOUT_S, place.faults.of_read)

    async def _trim_log(self, topic: str) -> None:
        lake, keep = local_path(self._path), self._lake.log_commits
        if lake is None or not keep:
            return
        try:
            gone = await asyncio.to_thread(trim_log, lake / topic, keep)
        except OSError as exc:  # Spark may see a disk that we do not
            log.debug("log.untouched", table=topic, reason=str(exc))
        else:
            log.info("log.trimmed", table=topic, files=gone)

    def _conf(self) -> Mapping[str, str]:
        return {
            "spark.databricks.delta.optimize.minFileSize": str(self._lake.compact_below_bytes),
            "spark.databricks.delta.optimize.maxFileSize": str(self._lake.target_file_bytes),
            # Delta refuses to delete what is younger than the table's own retention, 7 days.
            "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        }

    def _session(self, topic: str) -> Sessions:
        if topic not in self._tables:
            self._tables[topic] = self._opened(self._lake.server(topic))
        return self._tables[topic]

    def _opened(self, server: str, conf: Mapping[str, str] | None = None) -> Sessions:
        return Sessions(server, conf, self._lake.token_file)

    def _place(self, topic: str) -> "_Place":
        path = f"{self._path}/{topic}"
        return _Place(path, Faults(path, shown(self._lake.server(topic))))


@dataclass(frozen=True, slots=True)
class _Place:
    """A table's path, and what failures there mean."""

    path: str
    faults: Faults

    async def ask(
        self,
        sessions: Sessions,
        work: Callable[[SparkSession], T],
        limit_s: float,
        fault: Callable[[Exception], BinwrightError],
    ) -> T:
        try:
            return await sessions.run(work, limit_s)
        except BinwrightError:
            raise
        except Exception as exc:
            raise fault(exc) from exc
