"""One Spark Connect session, used from a thread of its own, and left behind when it fails.

pyspark blocks, and some of its waits have no end: a call that overruns cannot be stopped, only
abandoned. So each session has its own thread; when a call overruns, or the server is gone, both
are left to end by themselves and the next call gets a new pair.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import structlog
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.writer.faults import answered
from binwright.shell.connect import with_token

log = structlog.get_logger()

T = TypeVar("T")
Work = Callable[[SparkSession], T]

PATIENCE_S = 3.0
"""How long a call tries to reach a server that does not answer: enough for a dropped connection."""
RELEASE_S = 3.0
"""How long we try to tell the server that a session is over."""
CLOSE_S = 15.0
"""pyspark waits up to 10 s for answers to what it said last."""

CHANNEL = [
    # gRPC shares connections, and how long it waits before the next attempt, between channels.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]
CONF = {
    # Compaction inside a write would move the session's last commit past our own.
    "spark.databricks.delta.autoCompact.enabled": "false",
    # A staged file that is passed over would be rows that are lost (†).
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


class _Patience(DefaultPolicy):  # type: ignore[misc]
    """Retries what pyspark would retry, but for seconds instead of ten minutes."""

    def __init__(self) -> None:
        super().__init__(max_retries=None, max_backoff=500, max_server_retry_delay=500)
        self._since = self._last = float("-inf")  # of the trouble we are in, monotonic clock

    def can_retry(self, e: BaseException) -> bool:
        now = time.monotonic()
        if now - self._last > PATIENCE_S:
            self._since = now
        self._last = now
        return now - self._since < PATIENCE_S and bool(super().can_retry(e))


class Session:
    """A session and its thread."""

    def __init__(self, url: str, conf: Mapping[str, str], token_file: Path | None = None) -> None:
        self._url, self._conf, self._token_file = url, conf, token_file
        self._spark: SparkSession | None = None
        self._ended = False
        self._ending = threading.Lock()  # of the two above: what is opened late must be closed, too
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="spark", daemon=True).start()

    def _work(self) -> None:
        while job := self._jobs.get():
            job()

    async def run(self, work: Work[T]) -> T:
        """Return what `work` returns; it runs after what was asked for before."""
        outcome: Future[T] = Future()

        def job() -> None:
            if not outcome.set_running_or_notify_cancel():
                return
            try:
                outcome.set_result(work(self._opened()))
            except BaseException as exc:  # noqa: BLE001 - it is raised where it is awaited
                outcome.set_exception(exc)

        self._jobs.put(job)
        return await asyncio.wrap_future(outcome)

    def _opened(self) -> SparkSession:
        if self._spark is None:
            # Not by `builder`: it would make this session the process's default, for good.
            url = with_token(self._url, self._token_file)
            spark = SparkSession(DefaultChannelBuilder(url, channelOptions=CHANNEL))
            spark.client.set_retry_policies([_Patience()])
            with self._ending:
                self._spark = spark
                if self._ended:
                    spark.client.close()  # and what follows fails
            for key, value in self._conf.items():
                spark.conf.set(key, value)
        return self._spark

    def end(self) -> threading.Thread:
        """Let go of thread and session, now; return what waits for the server to know."""
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
        telling = threading.Thread(target=_release, args=(spark,), name="spark-tell", daemon=True)
        telling.start()
        telling.join(RELEASE_S)
        # Ends every call still under way. Left to the interpreter's exit this can wait for ever.
        spark.client.close()


def _release(spark: SparkSession) -> None:
    """Have the server forget the session, and stop what it still does for it."""
    try:
        spark.client.release_session()
    except Exception as exc:  # noqa: BLE001 - it may be gone: often that is why we leave
        log.debug("session.left", reason=type(exc).__name__)


class Sessions:
    """One call at a time, each with its own limit, on a session that is known to be whole."""

    def __init__(
        self, url: str, conf: Mapping[str, str] | None = None, token_file: Path | None = None
    ) -> None:
        """Use the server at `url`; `conf` are settings of the session beside those of all.

        A token is read from `token_file` as a session opens.
        """
        self._url, self._conf = url, {**CONF, **(conf or {})}
        self._token_file = token_file
        self._turn = asyncio.Lock()
        self._session: Session | None = None
        self._ending: list[threading.Thread] = []

    async def run(self, work: Work[T], limit_s: float) -> T:
        """Return what `work` returns, raise what it raises.

        Raises:
            TimeoutError: It takes longer than `limit_s`; it may still go on, and have effects.
        """
        async with self._turn:
            session = self._session = self._session or Session(
                self._url, self._conf, self._token_file
            )
            try:
                async with asyncio.timeout(limit_s):
                    return await session.run(work)
            except TimeoutError as exc:
                self._leave()
                raise TimeoutError(f"no answer within {limit_s:g} s") from exc
            except BaseException as exc:
                if not answered(exc):
                    self._leave()
                raise

    async def leave(self) -> None:
        """End the session; the next call has a new one."""
        async with self._turn:
            self._leave()

    async def close(self) -> None:
        """End the session, and wait until the server knows, `CLOSE_S` at most."""
        await self.leave()
        deadline = time.monotonic() + CLOSE_S
        for ending in self._ending:
            await asyncio.to_thread(ending.join, max(0.0, deadline - time.monotonic()))

    def _leave(self) -> None:
        session, self._session = self._session, None
        self._ending = [thread for thread in self._ending if thread.is_alive()]
        if session:
            self._ending.append(session.end())
