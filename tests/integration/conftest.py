"""A real broker and a real Spark, started once a session for all integration tests.

They live on a loop of their own in a thread of its own: tests get a loop each, and what is started
on one loop cannot be awaited on another. Ask for `broker` (its bootstrap servers), `spark_url` and
`lake` (a directory for this test's tables). Topics outlive a test: name them by the test.
Other versions than the embedded ones: `versions.servers`.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.integration.object_store import ObjectStore, run_object_store
from tests.integration.versions.servers import kafka_jars, named, spark_jars

from binwright.local.kafka import EmbeddedBroker, run_broker, run_brokers
from binwright.local.spark import TOKEN_VARIABLE, run_spark

ENTER_S = 900.0  # a first run downloads
LEAVE_S = 120.0

T = TypeVar("T")


class BackgroundLoop:
    """A loop that runs in a thread of its own for the whole session.

    The thread must live as long as what it starts: an embedded server dies with its starter.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="backstage")
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LEAVE_S)
        self._loop.close()

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` on the loop, from another one."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop, from a thread without one."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ENTER_S)

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Enter `manager` on the loop and leave it at the end, in one task."""
        inside: Future[T] = Future()
        leave = asyncio.Event()

        async def stay() -> None:
            try:
                async with manager as value:
                    inside.set_result(value)
                    await leave.wait()
            except BaseException as exc:
                if not inside.done():
                    inside.set_exception(exc)
                raise

        task = asyncio.run_coroutine_threadsafe(stay(), self._loop)
        try:
            yield inside.result(ENTER_S)
        finally:
            self._loop.call_soon_threadsafe(leave.set)
            task.result(LEAVE_S)


@pytest.fixture(scope="session")
def background_loop() -> Iterator[BackgroundLoop]:
    """Where session-wide servers run."""
    stage = BackgroundLoop()
    yield stage
    stage.close()


@pytest.fixture(scope="session")
def broker(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Bootstrap servers of a broker without encryption or passwords."""
    place, jars = tmp_path_factory.mktemp("broker"), background_loop.wait(kafka_jars(named()[0]))
    with background_loop.entered(run_broker(place, kafka=jars)) as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def brokers(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[EmbeddedBroker, ...]]:
    """Three brokers that are one cluster; leave them running."""
    place, jars = tmp_path_factory.mktemp("brokers"), background_loop.wait(kafka_jars(named()[0]))
    with background_loop.entered(run_brokers(place, kafka=jars)) as running:
        yield running


@pytest.fixture(scope="session")
def spark_url(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Address of a Spark Connect server with Delta; its token is in the environment from then on.

    So it is on no command line of a test. Other servers have other tokens.
    """
    place, jars = tmp_path_factory.mktemp("spark"), background_loop.wait(spark_jars(named()[1]))
    with (
        background_loop.entered(run_spark(place, spark=jars)) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(TOKEN_VARIABLE, running.token_file.read_text())
        yield running.address


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A directory for this test's tables."""
    path = tmp_path / "lake"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def store(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectStore]:
    """An S3 with a bucket; each test takes a prefix of its own."""
    with background_loop.entered(run_object_store(tmp_path_factory.mktemp("moto"))) as running:
        running.make_bucket()
        yield running
