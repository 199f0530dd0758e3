"""Spark Connect sessions for asyncio: each has a thread of its own, and is replaced when it fails.

pyspark blocks, and some of its waits are unlimited: a call that overruns cannot be stopped, only
abandoned. So each session has its own thread. When a call overruns, or the server is gone, session
and thread are abandoned, and the next call gets new ones.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from binwright.protocol.errors import LakeUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log
from binwright.runtime.spark_channel import SparkChannel
from binwright.runtime.spark_url import redacted_url

SESSION_RELEASE_FAILED = LogEvent.debug(
    "session.release_failed",
    "A Spark session could not be released; the server forgets it by itself.",
)

T = TypeVar("T")
Work = Callable[[SparkSession], T]
CurrentUrl = Callable[[], str]
"""Gives a server's URL with the token that it wants now; may raise `OSError` or `ValueError`."""

RETRY_LIMIT_S = 3.0
"""Seconds that a call retries a server that does not answer: enough for a dropped connection."""
RELEASE_S = 3.0
"""Seconds to wait until the server has released a session."""
CLOSE_S = 15.0
"""Seconds to wait at the end; pyspark waits up to 10 s for replies to its last requests."""

TOO_OLD = ("2.", "3.")
"""How versions of Spark begin that lack what tables are written with, such as VARIANT."""

CHANNEL = [
    # gRPC shares connections, and the pauses between attempts, between channels.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]
CONF = {
    # Compaction is the table's maintenance, beside the commits.
    "spark.databricks.delta.autoCompact.enabled": "false",
    # The rows of a staged file that is skipped would be lost (†).
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Else each pass of a MERGE reads its changes, and the lease with them, anew (†).
    "spark.databricks.delta.merge.materializeSource": "auto",
    # Of a name that is there twice the last value counts, as in columns; else commits would fail.
    "spark.sql.variant.allowDuplicateKeys": "true",
    # By default Spark writes INT96, which has nanoseconds: on a time before 1678 or after 2262
    # Arrow's readers fail, or show another one.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Days before 1582 are counted as staged files and all other readers count them.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # Lists and decimals in the forms of the format, not in those of Spark 1.4.
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Delta's statistics have times in this zone: elsewhere the year 9999 ends as +10000.
    "spark.sql.session.timeZone": "UTC",
}
"""Settings of every session: whatever the server's own are, all readers read the same values in
what it writes, and it reads all files or fails."""


def reported_by_server(exc: BaseException) -> bool:
    """Return whether the server itself reported the error, so that its session still works."""
    if not isinstance(exc, SparkConnectGrpcException):  # pyspark's own errors have names, too
        return False
    condition = exc.getCondition() or ""
    return bool(condition) and not condition.startswith(("INVALID_HANDLE", "OPERATION_"))


class _ShortRetries(DefaultPolicy):  # type: ignore[misc]
    """Retries the errors that pyspark retries, for seconds instead of ten minutes."""

    def __init__(self) -> None:
        super().__init__(max_retries=None, max_backoff=500, max_server_retry_delay=500)
        self._since = self._last = float("-inf")  # first and last error of an outage, monotonic

    def can_retry(self, e: BaseException) -> bool:
        now = time.monotonic()
        if now - self._last > RETRY_LIMIT_S:
            self._since = now
        self._last = now
        return now - self._since < RETRY_LIMIT_S and bool(super().can_retry(e))


class Session:
    """A session and its thread; the session opens with the first call."""

    def __init__(self, url: CurrentUrl, conf: Mapping[str, str]) -> None:
        self._url, self._conf = url, conf
        self._spark: SparkSession | None = None
        self._ended = False
        self._ending = threading.Lock()  # guards both: a session opened late must be closed
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._run_jobs, name="spark", daemon=True).start()

    def _run_jobs(self) -> None:
        while job := self._jobs.get():
            job()

    async def run(self, work: Work[T]) -> T:
        """Return what `work` returns; calls run one after the other."""
        result: Future[T] = Future()

        def job() -> None:
            if not result.set_running_or_notify_cancel():
                return
            try:
                result.set_result(work(self._open()))
            except BaseException as exc:  # noqa: BLE001 - raised where the result is awaited
                result.set_exception(exc)

        self._jobs.put(job)
        return await asyncio.wrap_future(result)

    def _open(self) -> SparkSession:
        if self._spark is None:
            # Not by `builder`: it would make this session the default of the process.
            url = self._url()
            server = redacted_url(url)
            try:
                spark = SparkSession(SparkChannel(url, channelOptions=CHANNEL))
            except OSError as exc:
                raise LakeUnavailable(f"Spark at {server}: {exc}. Check lake.ca_file") from exc
            spark.client.set_retry_policies([_ShortRetries()])
            with self._ending:
                self._spark = spark
                if self._ended:
                    spark.client.close()  # the call fails
            if (version := str(spark.version)).startswith(TOO_OLD):
                raise LakeUnavailable(
                    f"Spark at {server} is of version {version}, and 4.0 or later is needed"
                )
            for key, value in self._conf.items():
                _set(spark, server, key, value)
        return self._spark

    def end(self) -> threading.Thread:
        """End thread and session at once; return the thread that releases the session."""
        with self._ending:
            self._ended = True
        self._jobs.put(None)
        ending = threading.Thread(target=self._end, name="spark-end", daemon=True)
        ending.start()
        return ending

    def _end(self) -> None:
        if (spark := self._spark) is None:
            return
        # Not `spark.stop`: it holds a lock that every other session needs.
        releasing = threading.Thread(
            target=_release, args=(spark,), name="spark-release", daemon=True
        )
        releasing.start()
        releasing.join(RELEASE_S)
        # Ends every call in progress; at the interpreter's exit this could wait without limit.
        spark.client.close()


def _set(spark: SparkSession, server: str, key: str, value: str) -> None:
    """Set a value of a session.

    Raises:
        LakeUnavailable: The server forbids it, and has another value. This is no error of a server
            whose session still works: without all of its settings the session is not used.
    """
    try:
        spark.conf.set(key, value)
    except PySparkException as exc:
        if not reported_by_server(exc):
            raise
        if (actual := spark.conf.get(key, None)) != value:
            why = str(exc).partition("\n")[0]
            raise LakeUnavailable(
                f"Spark at {server} does not let a session set {key} to {value}, and has {actual}: "
                f"{why}. Set it in the server's own configuration"
            ) from exc


def _release(spark: SparkSession) -> None:
    """Have the server delete the session and stop its work for it."""
    try:
        spark.client.release_session()
    except Exception as exc:  # noqa: BLE001 - the server may be gone
        log(SESSION_RELEASE_FAILED, reason=type(exc).__name__)


class ReconnectingSession:
    """Runs one call at a time, each with its own limit, on a session that still works."""

    def __init__(self, url: CurrentUrl, conf: Mapping[str, str] | None = None) -> None:
        """Use the server at `url`, which each session asks for, with settings `CONF` and `conf`."""
        self._url, self._conf = url, {**CONF, **(conf or {})}
        self._turn = asyncio.Lock()
        self._session: Session | None = None
        self._ending: list[threading.Thread] = []

    async def run(self, work: Work[T], limit_s: float | None) -> T:
        """Return what `work` returns; raise what it raises.

        Args:
            work: Is given the session; runs in the session's thread, and may block.
            limit_s: How long it may take, seconds; None: however long it takes.

        Raises:
            LakeUnavailable: The session cannot be opened with its settings; says what to check.
            TimeoutError: `work` took longer than `limit_s`; it may go on, and take effect.
        """
        async with self._turn:
            session = self._session = self._session or Session(self._url, self._conf)
            try:
                async with asyncio.timeout(limit_s):
                    return await session.run(work)
            except BaseException as exc:
                if not reported_by_server(exc):
                    self._abandon()
                if isinstance(exc, TimeoutError) and limit_s is not None:
                    raise TimeoutError(f"no answer within {limit_s:g} s") from exc
                raise

    async def reset(self) -> None:
        """End the session; the next call opens a new one."""
        async with self._turn:
            self._abandon()

    async def close(self) -> None:
        """End the session and wait until the server has released it, `CLOSE_S` at most."""
        await self.reset()
        deadline = time.monotonic() + CLOSE_S
        for ending in self._ending:
            await asyncio.to_thread(ending.join, max(0.0, deadline - time.monotonic()))

    def _abandon(self) -> None:
        session, self._session = self._session, None
        self._ending = [thread for thread in self._ending if thread.is_alive()]
        if session:
            self._ending.append(session.end())
