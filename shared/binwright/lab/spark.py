"""Questions to the lake through Spark Connect, each within a deadline."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.connect.session import SparkSession

from binwright.core.errors import LakeUnavailable
from binwright.shell.connect import server_of, shown

KNOCK_S = 5.0
ANSWER_S = 300.0
CLOSE_S = 10.0

_MISSING = {"PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"}
_DETAILS = re.compile(r'details = "(.*)"')
# A server set up for landing compiles nothing; questions about a whole table want it compiled.
_FOR_READING = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.session.timeZone": "UTC",
}

T = TypeVar("T")


class LakeReader:
    """A session that is asked one question at a time. See `lake_reader`."""

    def __init__(self, url: str, answer_s: float) -> None:
        self._url, self._answer_s = url, answer_s
        # By itself the client would go on trying for ten minutes, silently.
        self._spark = SparkSession.builder.remote(url).create()
        self._spark.client.set_retry_policies([])

    async def ask(self, doing: str, question: Callable[[Any], T]) -> T:
        """Return what `question` makes of the session; it runs in a thread and may block.

        Raises:
            LakeUnavailable: Spark failed, or did not answer in time; this session is closed then.
        """
        work = asyncio.create_task(asyncio.to_thread(question, self._spark))
        try:
            async with asyncio.timeout(self._answer_s):
                return await asyncio.shield(work)
        except TimeoutError as exc:
            raise self._unavailable(doing, f"no answer in {self._answer_s:g} s") from exc
        except PySparkException as exc:
            raise self._unavailable(doing, reason(exc)) from exc
        finally:
            if not work.done():
                await self._abandon(work)

    def _unavailable(self, doing: str, why: str) -> LakeUnavailable:
        return LakeUnavailable(f"{doing}: {why} (Spark at {shown(self._url)})")

    async def _abandon(self, work: asyncio.Task[Any]) -> None:
        # A closed channel is what a thread inside Spark's client wakes up from.
        self._spark.release_session_on_close = False
        await self.close()
        await asyncio.wait({work}, timeout=CLOSE_S)
        if work.done():
            work.exception()  # seen, and nobody is left to be told

    async def close(self) -> None:
        """Let go of the session; twice does no harm."""
        await asyncio.wait({asyncio.create_task(asyncio.to_thread(self._close))}, timeout=CLOSE_S)

    def _close(self) -> None:
        self._spark.stop()


@asynccontextmanager
async def lake_reader(url: str, *, answer_s: float = ANSWER_S) -> AsyncIterator[LakeReader]:
    """Open a session of its own for reading, and close it at the end.

    Args:
        url: `sc://HOST:PORT`, as in the settings.
        answer_s: How long a single question may take.

    Raises:
        LakeUnavailable: Nobody listens there, or it does not answer; says what to check.
    """
    await asyncio.to_thread(knock, url)
    reader = LakeReader(url, answer_s)
    try:
        await reader.ask("open a session", _prepare)
        yield reader
    finally:
        await reader.close()


def knock(url: str) -> None:
    """Make sure that somebody listens there: the client would try silently for ten minutes.

    Args:
        url: sc://HOST:PORT.

    Raises:
        LakeUnavailable: Nobody does, or this is no such address; says what to check.
    """
    try:
        socket.create_connection(server_of(url), KNOCK_S).close()
    except (OSError, ValueError) as exc:
        raise LakeUnavailable(
            f"no Spark Connect server at {shown(url)}: {exc}. "
            "Check that it runs, and that lake.spark or --spark names it (sc://HOST:PORT)"
        ) from exc


def missing(error: AnalysisException) -> bool:
    """Tell whether this says that there is no table at that place."""
    return error.getCondition() in _MISSING


def reason(error: PySparkException) -> str:
    """Return the line that says what went wrong, without Java's stack."""
    text = str(error)
    details = _DETAILS.search(text)
    return details[1] if details else text.partition("\n")[0]


def quoted(path: str) -> str:
    """Return a table's path as SQL takes it."""
    return "delta.`{}`".format(path.replace("`", "``"))


def frame(spark: Any, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> Any:
    """Return a data frame of few rows that are known here; columns by name, with SQL's types."""
    ddl = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return spark.createDataFrame(list(rows), ddl)


def _prepare(spark: Any) -> None:
    for name, value in _FOR_READING.items():
        spark.conf.set(name, value)
