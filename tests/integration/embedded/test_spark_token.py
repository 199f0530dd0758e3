"""A Spark Connect server of ours takes clients with its token only, and keeps it to itself."""

import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql import SparkSession
from tests.chaos.proxy import proxy
from tests.integration.conftest import BackgroundLoop
from tests.integration.embedded.test_spark import session
from tests.integration.lake.tables import TABLE

from binwright.cli.terminal import Console
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.lake.lake_reader import lake_reader, server_of
from binwright.local.spark import TOKEN_VARIABLE, SparkServer, run_spark
from binwright.protocol.errors import LakeUnavailable
from binwright.runtime.settings.consumer import LakeSettings
from binwright.streams.location import StreamLocation

pytestmark = pytest.mark.integration

WRONG = "another-servers"
ELSEWHERE = "127.0.0.2"  # is no loopback by name, as any other machine


@pytest.fixture(autouse=True)
def no_token_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session's server may have left its own there, where pyspark looks."""
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)


@pytest.fixture(scope="module")
def server(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkServer]:
    directory = tmp_path_factory.mktemp("guarded")
    with background_loop.entered(run_spark(directory)) as running:
        yield running


def one(spark: SparkSession) -> int:
    return int(spark.sql("SELECT 1").collect()[0][0])


@asynccontextmanager
async def tables_of(settings: LakeSettings) -> AsyncIterator[SparkLake]:
    async with SparkLake(settings, f"{settings.path}/_staging", 60.0) as tables:
        yield tables


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("", "No authentication token provided"),
        (f"/;token={WRONG}", "Invalid authentication token"),
    ],
)
def test_a_client_without_the_token_is_refused(server: SparkServer, more: str, why: str) -> None:
    with (
        pytest.raises(SparkConnectGrpcException, match=why) as refused,
        session(server.address + more) as spark,
    ):
        one(spark)
    assert refused.value.getGrpcStatusCode().name == "UNAUTHENTICATED"


def test_a_person_s_pyspark_takes_it_from_the_environment(
    server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, server.token_file.read_text())
    with session(server.address) as spark:
        assert one(spark) == 1


async def test_a_writer_names_what_to_check_and_goes_on_with_a_renewed_file(
    server: SparkServer, lake: Path, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(WRONG)
    settings = LakeSettings(path=str(lake), spark=server.address, token_file=file)
    async with tables_of(settings) as tables:
        with pytest.raises(LakeUnavailable) as refused:
            await tables.open(TABLE)
        file.write_text(server.token_file.read_text())
        await tables.open(TABLE)
    assert str(refused.value) == (
        f"{lake}/{TABLE.topic}: Spark at {server.address} refuses this client (Invalid "
        "authentication token). Check the token: lake.token_file, the one in lake.spark, or "
        "SPARK_CONNECT_AUTHENTICATE_TOKEN"
    )


@pytest.mark.parametrize("text", [WRONG, "", None])
async def test_a_reader_without_the_token_names_what_to_check(
    server: SparkServer, lake: Path, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    settings = LakeSettings(path=str(lake), spark=server.address, token_file=file)
    with pytest.raises(LakeUnavailable, match=r"lake\.token_file") as refused:
        async with lake_reader(server_of(settings, "orders")):
            pass
    assert "\n" not in str(refused.value)
    assert WRONG not in str(refused.value)
    assert server.address in str(refused.value)


async def test_a_reader_has_the_token_of_the_file(server: SparkServer, lake: Path) -> None:
    settings = LakeSettings(path=str(lake), spark=server.address, token_file=server.token_file)
    async with lake_reader(server_of(settings, "orders")) as reader:
        assert await reader.run("ask", one) == 1


async def test_who_reads_a_recording_has_the_token_of_the_file(
    server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINWRIGHT_LAKE__TOKEN_FILE", str(server.token_file))
    location = StreamLocation(Console(), tmp_path, "delta:///none", server.address)
    async with location.lake() as reader:
        assert await reader.run("ask", one) == 1


async def test_a_token_goes_to_another_host_without_tls_only_if_that_is_allowed(
    server: SparkServer, lake: Path
) -> None:
    """Otherwise TLS is tried, which this server does not have."""
    port = int(server.address.rpartition(":")[2])
    async with proxy(port, ELSEWHERE) as between:
        settings = LakeSettings(
            path=str(lake),
            spark=f"sc://{ELSEWHERE}:{between.port}",
            token_file=server.token_file,
            allow_cleartext_token=True,
        )
        async with lake_reader(server_of(settings, "orders")) as reader:
            assert await reader.run("ask", one) == 1
        async with tables_of(settings) as tables:
            await tables.open(TABLE)
        kept = settings.model_copy(update={"allow_cleartext_token": False})
        with pytest.raises(LakeUnavailable, match="handshake"):
            async with lake_reader(server_of(kept, "orders")):
                pass


async def test_the_token_is_random_and_in_a_private_file_for_as_long_as_the_server_runs(
    server: SparkServer, tmp_path: Path
) -> None:
    async with run_spark(tmp_path / "other") as other:
        tokens = {each.token_file.read_text() for each in (server, other)}
        assert len(tokens) == 2
        assert {len(token) for token in tokens} == {43}  # 32 bytes
        assert stat.S_IMODE(other.token_file.stat().st_mode) == 0o600
        assert other.pid is not None
        secret = other.token_file.read_text()
        assert secret not in " ".join(psutil.Process(other.pid).cmdline())
        written = [file for file in (tmp_path / "other").rglob("*") if file.is_file()]
        holding = [file for file in written if secret.encode() in file.read_bytes()]
        assert holding == [other.token_file]
    assert not other.token_file.exists()
