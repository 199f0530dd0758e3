"""The Delta tables: one per topic, at `<lake.path>/<topic>`, through Spark Connect."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self, TypeVar

import structlog
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer import delta
from binwright.consumer.faults import Faults
from binwright.consumer.rows import COLUMNS, to_arrow
from binwright.consumer.session import INLINE_BYTES, Sessions
from binwright.core.errors import BinwrightError
from binwright.core.model import TopicPartition
from binwright.core.ports import History, Record
from binwright.shell.connect import shown
from binwright.shell.settings import LakeSettings

log = structlog.get_logger()

T = TypeVar("T")

READ_TIMEOUT_S = 120.0


class DeltaLake:
    """A `Lake`. Connects at its first call, and anew after a failure.

    Nothing waits for ever: a write that overruns `write_timeout_s` is unclear, a question that
    overruns `read_timeout_s` has failed; both are abandoned, and the next call has a new session.
    """

    def __init__(
        self,
        lake: LakeSettings,
        write_timeout_s: float,
        *,
        read_timeout_s: float = READ_TIMEOUT_S,
        early: Sequence[str] = (),
    ) -> None:
        """Use `lake`'s server.

        Args:
            lake: Where the tables are, and which server writes them.
            write_timeout_s: How long a write may go without a verdict.
            read_timeout_s: How long a question may go without an answer.
            early: Topics whose tables are opened at once, for the first `open` of each: a session
                and its first questions take seconds where the server is cold or busy.
        """
        self._path = lake.path.rstrip("/")
        self._server = shown(lake.spark)
        self._sessions = Sessions(lake.spark)
        self._write_timeout_s, self._read_timeout_s = write_timeout_s, read_timeout_s
        self._topics, self._early = early, dict[str, asyncio.Task[str]]()

    async def __aenter__(self) -> Self:
        """Return itself; nothing is connected yet."""
        self._early = {topic: asyncio.create_task(self._open(topic)) for topic in self._topics}
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the session; takes 15 s at most, if the server does not answer."""
        for early in self._early.values():
            early.cancel()
        await asyncio.gather(*self._early.values(), return_exceptions=True)
        await self._sessions.close()

    async def open(self, topic: str) -> str:
        """Create the topic's table unless it is there; see `Lake.open`."""
        early = self._early.pop(topic, None)
        return await (early or self._open(topic))

    async def _open(self, topic: str) -> str:
        path = self._table(topic)

        def work(spark: SparkSession) -> str:
            delta.ensure(spark, path, topic)
            return delta.table_id(spark, path)

        return await self._ask(work, self._read_timeout_s, self._faults(path).of_open)

    async def claim(self, topic: str, app: str, version: int) -> int | None:
        """Append nothing under (`app`, `version`); see `Lake.claim`."""
        return await self._write(topic, _nothing, app, version, None)

    async def append(
        self,
        topic: str,
        rows: Mapping[TopicPartition, Sequence[Record]],
        app: str,
        version: int,
        stamp: str,
    ) -> int | None:
        """Append `rows` in one commit and one file; see `Lake.append`."""
        table = await asyncio.to_thread(to_arrow, rows)
        try:
            return await self._write(
                topic, lambda spark: spark.createDataFrame(table).coalesce(1), app, version, stamp
            )
        finally:
            if table.nbytes >= INLINE_BYTES:
                await self._sessions.renew()

    async def history(self, topic: str, after: int) -> History:
        """Return the versions later than `after`; see `Lake.history`.

        Beyond tens of thousands it says that the table does not remember: then ask `newest`.
        """
        path = self._table(topic)
        return await self._read(path, lambda spark: delta.history(spark, path, after))

    async def newest(
        self, topic: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Return the highest landed offset of each partition that has rows."""
        path, numbers = self._table(topic), [p.partition for p in partitions]
        if not numbers:
            return {}
        found = await self._read(path, lambda spark: delta.newest(spark, path, numbers))
        return {TopicPartition(topic, number): offset for number, offset in found.items()}

    async def _write(
        self,
        topic: str,
        frame: Callable[[SparkSession], DataFrame],
        app: str,
        version: int,
        stamp: str | None,
    ) -> int | None:
        path, began = self._table(topic), time.monotonic()
        work = delta.append(frame, path, app, version, stamp)
        committed = await self._ask(work, self._write_timeout_s, self._faults(path).of_write)
        took_ms = round((time.monotonic() - began) * 1000)
        log.debug("write.ended", path=path, app=app, committed=committed, took_ms=took_ms)
        return committed

    async def _read(self, path: str, work: Callable[[SparkSession], T]) -> T:
        return await self._ask(work, self._read_timeout_s, self._faults(path).of_read)

    async def _ask(
        self,
        work: Callable[[SparkSession], T],
        limit_s: float,
        fault: Callable[[Exception], BinwrightError],
    ) -> T:
        try:
            return await self._sessions.run(work, limit_s)
        except BinwrightError:
            raise
        except Exception as exc:
            raise fault(exc) from exc

    def _table(self, topic: str) -> str:
        return f"{self._path}/{topic}"

    def _faults(self, path: str) -> Faults:
        return Faults(path, self._server)


def _nothing(spark: SparkSession) -> DataFrame:
    columns = [f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in COLUMNS.items()]
    return spark.range(1).where("false").selectExpr(*columns)  # the server is asked nothing for it
