"""Sessions of Spark Connect, at a small server of its protocol in this process."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import (
    AnalysisException,
    SparkConnectException,
    SparkConnectGrpcException,
    UnknownException,
)
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from binwright.lake.lake_reader import LakeReader, lake_reader
from binwright.lake.session import CONF, RETRY_LIMIT_S, reported_by_server
from binwright.protocol.errors import LakeUnavailable

VERSION = "4.2.0"
COMPILED = {"spark.sql.codegen.wholeStage": "true"}
DEADLINE_S = 30.0


class ConnectServer(base_pb2_grpc.SparkConnectServiceServicer):  # type: ignore[misc]
    """Has settings and a version; fails `failures` requests, and answers none while `silent`."""

    def __init__(self) -> None:
        self.conf = defaultdict[str, dict[str, str]](dict)  # by session
        self.released: set[str] = set()
        self.failures, self.silent, self.version = 0, False, VERSION
        self.asked = threading.Event()

    def Config(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - pyspark's name
        if self.failures:
            self.failures -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        pairs = request.operation.set.pairs
        self.conf[request.session_id] |= {pair.key: pair.value for pair in pairs}
        return base_pb2.ConfigResponse(session_id=request.session_id)

    def AnalyzePlan(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        if self.silent:
            ended = threading.Event()
            context.add_callback(ended.set)
            self.asked.set()
            ended.wait(DEADLINE_S)
        version = base_pb2.AnalyzePlanResponse.SparkVersion(version=self.version)
        return base_pb2.AnalyzePlanResponse(session_id=request.session_id, spark_version=version)

    def ReleaseSession(self, request: Any, _: grpc.ServicerContext) -> Any:  # noqa: N802
        self.released.add(request.session_id)
        return base_pb2.ReleaseSessionResponse(session_id=request.session_id)


@pytest.fixture
def server() -> ConnectServer:
    return ConnectServer()


@pytest.fixture
def url(server: ConnectServer) -> Iterator[str]:
    with ThreadPoolExecutor(8) as threads:
        running = grpc.server(threads)
        base_pb2_grpc.add_SparkConnectServiceServicer_to_server(server, running)
        port = running.add_insecure_port("127.0.0.1:0")
        running.start()
        yield f"sc://127.0.0.1:{port}"
        running.stop(None).wait(DEADLINE_S)


def version(spark: Any) -> str:
    """Ask the server: the session knows its version from when it was opened."""
    return str(spark.client._analyze(method="spark_version").spark_version)


async def ask(reader: LakeReader) -> str:
    return await reader.run("ask", version)


async def test_a_session_has_its_settings_and_is_released_at_the_end(
    server: ConnectServer, url: str
) -> None:
    async with lake_reader(url) as reader:
        assert await ask(reader) == await ask(reader) == VERSION
        assert not server.released
    ((session, settings),) = server.conf.items()
    assert settings.items() >= {**CONF, **COMPILED}.items()
    assert server.released == {session}


async def test_a_server_before_spark_4_is_refused_in_one_sentence(
    server: ConnectServer, url: str
) -> None:
    server.version = "3.5.9"
    with pytest.raises(LakeUnavailable, match=rf"^Spark at {url} is of version 3.5.9, and 4.0 or"):
        async with lake_reader(url):
            pytest.fail("opened")
    assert not any(server.conf.values())


def test_the_changes_of_a_merge_are_read_once_whatever_the_server_has() -> None:
    """Read again, in a later pass, they would come with the lease of a later time."""
    assert CONF["spark.databricks.delta.merge.materializeSource"] == "auto"


async def test_a_query_that_overruns_ends_at_its_limit_and_the_next_one_has_a_new_session(
    server: ConnectServer, url: str
) -> None:
    loop = asyncio.get_running_loop()
    async with lake_reader(url, query_s=2.0) as reader:
        server.silent, asked = True, loop.time()
        with pytest.raises(LakeUnavailable, match=rf"^ask: .*2 s .*{url}"):
            await ask(reader)
        assert loop.time() - asked < 2.0 + RETRY_LIMIT_S
        server.silent = False
        assert await ask(reader) == VERSION
    assert server.released == {*server.conf}
    assert len(server.conf) == 2


async def test_a_query_that_is_cancelled_is_given_up_at_once_and_its_session_released(
    server: ConnectServer, url: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), lake_reader(url, query_s=None) as reader:
        server.silent = True
        asking = asyncio.create_task(ask(reader))
        assert await asyncio.to_thread(server.asked.wait, DEADLINE_S)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert server.released == {*server.conf}


async def test_a_connection_that_drops_is_tried_again(server: ConnectServer, url: str) -> None:
    server.failures = 3
    async with lake_reader(url) as reader:
        assert await ask(reader) == VERSION
    assert len(server.conf) == 1


async def test_a_server_that_is_away_is_given_up_after_seconds(
    server: ConnectServer, url: str
) -> None:
    server.failures = 1_000
    with pytest.raises(LakeUnavailable, match=rf"^open a session: .*not yet.*{url}"):
        async with asyncio.timeout(DEADLINE_S), lake_reader(url):
            pytest.fail("opened")


@pytest.mark.parametrize(
    ("exc", "works"),
    [
        (UnknownException("[X]", errorClass="DELTA_CONCURRENT_TRANSACTION"), True),
        (AnalysisException("[PATH_NOT_FOUND] /lake/orders", errorClass="PATH_NOT_FOUND"), True),
        (
            SparkConnectGrpcException("gone", grpc_status_code=grpc.StatusCode.UNAVAILABLE),
            False,
        ),
        (
            SparkConnectGrpcException("[X]", errorClass="INVALID_HANDLE.SESSION_CHANGED"),
            False,
        ),
        (SparkConnectGrpcException("[X]", errorClass="OPERATION_CANCELED"), False),
        (SparkConnectException(errorClass="NO_ACTIVE_SESSION", messageParameters={}), False),
        (TimeoutError("no answer within 5 s"), False),
    ],
    ids=["conflict", "no table", "away", "restarted", "cancelled", "closed by pyspark", "late"],
)
def test_a_session_still_works_only_after_an_error_that_the_server_reported(
    exc: PySparkException | TimeoutError, works: bool
) -> None:
    assert reported_by_server(exc) is works
