"""Queries of Delta tables through Spark Connect, each within a deadline."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LocalRelation

from binwright.lake.session import ReconnectingSession, Work
from binwright.protocol.errors import LakeUnavailable
from binwright.protocol.names import ERASED_SUFFIX
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.spark_channel import refusal
from binwright.runtime.spark_url import host_and_port, redacted_url
from binwright.tables.columns import KAFKA

CONNECT_S = 5.0
QUERY_S, COUNT_S = 300.0, 30.0
REDACTED = "*********(redacted)"  # what Spark shows of a secret

_MISSING = {"PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"}
_DETAILS = re.compile(r'details = "(.*)"')
# A server set up for landing compiles no queries; queries of a whole table are faster compiled.
_FOR_READING = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}

T = TypeVar("T")


class LakeReader:
    """Runs one query at a time on a Spark session. See `lake_reader`."""

    def __init__(self, url: str, query_s: float | None) -> None:
        self._server, self._query_s = redacted_url(url), query_s
        self._session = ReconnectingSession(lambda: url, _FOR_READING)

    async def run(self, doing: str, query: Work[T]) -> T:
        """Return the result of `query` on the session; it runs in a thread and may block.

        Args:
            doing: What the query does, for errors.
            query: Is given the session.

        Raises:
            LakeUnavailable: Spark failed, or did not answer in time: the query is given up.
        """
        try:
            return await self._session.run(query, self._query_s)
        except TimeoutError as exc:
            raise LakeUnavailable(f"{doing}: {exc} (Spark at {self._server})") from exc
        except PySparkException as exc:
            line = reason(exc)
            refused = refusal(exc, line)
            why = f"{line} (Spark at {self._server})"
            why = why if refused is None else f"Spark at {self._server} {refused}"
            raise LakeUnavailable(f"{doing}: {why}") from exc

    async def close(self) -> None:
        """End the session; may be called again."""
        await self._session.close()


@asynccontextmanager
async def lake_reader(url: str, *, query_s: float | None = QUERY_S) -> AsyncIterator[LakeReader]:
    """Open a session for reading, and close it at the end.

    Args:
        url: `sc://HOST:PORT`, as in the settings.
        query_s: How long one query may take, seconds; None: however long it takes.

    Raises:
        LakeUnavailable: Nothing listens there, or it does not answer; says what to check.
    """
    await asyncio.to_thread(check_reachable, url)
    reader = LakeReader(url, query_s)
    try:
        await reader.run("open a session", lambda _: None)
        yield reader
    finally:
        await reader.close()


def connection(lake: LakeSettings, server: str) -> str:
    """Return the URL of one of the servers, with the token that it wants now.

    Raises:
        LakeUnavailable: The token's file cannot be read, or is empty.
    """
    try:
        return lake.connection(server)
    except (OSError, ValueError) as exc:
        raise LakeUnavailable(
            f"no token for Spark at {redacted_url(server)}: {exc}. Check lake.token_file"
        ) from exc


def server_of(lake: LakeSettings, table: str) -> str:
    """Return the URL of a table's server; see `connection`."""
    return connection(lake, lake.server(table))


def reader_of(lake: LakeSettings, table: str) -> AbstractAsyncContextManager[LakeReader]:
    """Open a session on a table's server; see `lake_reader`."""
    return lake_reader(server_of(lake, table))


async def count_rows(path: str, url: str) -> int:
    """Return the rows of a table, from its log; raise `LakeUnavailable`.

    Args:
        path: Of the table.
        url: Of a Spark Connect server, as in `lake_reader`.
    """
    async with lake_reader(url, query_s=COUNT_S) as reader:
        return await reader.run(
            f"count the rows of {path}",
            lambda spark: int(spark.read.format("delta").load(path).count()),
        )


def check_reachable(url: str) -> None:
    """Check that a server listens there: the client would retry silently for ten minutes.

    Args:
        url: sc://HOST:PORT.

    Raises:
        LakeUnavailable: Nothing does, or the address is malformed; says what to check.
    """
    try:
        socket.create_connection(host_and_port(url), CONNECT_S).close()
    except (OSError, ValueError) as exc:
        raise LakeUnavailable(
            f"no Spark Connect server at {redacted_url(url)}: {exc}. "
            "Check that it runs, and that lake.spark or --spark names it (sc://HOST:PORT)"
        ) from exc


def table_missing(error: AnalysisException) -> bool:
    """Whether this error means that there is no table at the path."""
    return error.getCondition() in _MISSING


def delta_table(spark: Any, path: str) -> Any | None:
    """Return a frame of the Delta table at `path`; None if there is no table."""
    table = spark.read.format("delta").load(path)
    try:
        _ = table.schema  # until something is asked of a frame, Spark does not look
    except AnalysisException as exc:
        if table_missing(exc):
            return None
        raise
    return table


def erased_places(spark: Any, path: str) -> Any | None:
    """Return a frame of the places of records that were erased from the table at `path`.

    Those are left out that an earlier table there had: its records land in a new one again (†).
    None: there are none.
    """
    if (noted := delta_table(spark, path + ERASED_SUFFIX)) is None:
        return None
    detail = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").select("id").collect()
    return noted.where(f"table_id = '{detail[0][0]}'")


def is_of_columns(table: Any) -> bool:
    """Whether a frame is of a table of columns: the record's place is in a struct."""
    return KAFKA in table.columns


def records(table: Any, *more: str) -> Any:
    """Return a frame with the topic, partition, offset, timestamp, ... of a table's records.

    Args:
        table: A frame of a table of either kind, or of its bad records.
        more: Further expressions to select.
    """
    return table.selectExpr(f"{KAFKA}.*" if is_of_columns(table) else "*", *more)


def records_of(table: Any, topic: str, *more: str) -> Any:
    """Return a frame as `records` does, of one topic."""
    return records(table, *more).where(f"topic = '{topic}'")  # a name has no quotes


def reason(error: PySparkException) -> str:
    """Return the line with the cause, without Java's stack trace."""
    text = str(error)
    details = _DETAILS.search(text)
    return details[1] if details else text.partition("\n")[0]


def quoted(path: str) -> str:
    """Return a table's path, quoted for SQL."""
    return "delta.`{}`".format(path.replace("`", "``"))


def newest_version(spark: Any, path: str) -> int:
    """Return the version of a table that is its newest."""
    history = spark.sql(f"DESCRIBE HISTORY {quoted(path)} LIMIT 1").select("version")
    return int(history.collect()[0].version)


def properties(spark: Any, path: str) -> dict[str, str]:
    """Return a table's properties.

    Spark hides what reads like a secret, as the name of a group with `token` in it does. The
    table's details hide nothing; to count its files they rebuild its state.
    """
    shown = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {quoted(path)}").collect()}
    if REDACTED not in shown.values():
        return shown
    detail = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").select("properties").collect()
    hidden: dict[str, str] = detail[0][0]
    return shown | hidden


def frame(spark: Any, rows: pa.Table) -> DataFrame:
    """Return a data frame of few local rows.

    `createDataFrame` asks the server for settings that a Spark before 4.1 does not have, and fails.
    """
    return DataFrame(LocalRelation(rows), spark)
