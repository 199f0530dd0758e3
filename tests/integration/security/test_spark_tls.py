"""A Spark Connect server behind TLS: whom clients trust, and what they say of another one."""

import asyncio
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.tables import TABLE
from tests.integration.security.certificates import Authority
from tests.integration.security.tls_proxy import HOST, tls_proxy

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.lake.lake_reader import lake_reader, server_of
from binwright.local.spark import TOKEN_VARIABLE
from binwright.protocol.errors import LakeUnavailable
from binwright.runtime.settings.consumer import LakeSettings

pytestmark = pytest.mark.integration


@pytest.fixture
def token_file(spark_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    """A file with the token of the session's server, which is then nowhere else."""
    file = tmp_path / "token"
    file.write_text(os.environ[TOKEN_VARIABLE])
    monkeypatch.delenv(TOKEN_VARIABLE)
    return file


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ours")


@pytest.fixture
def other(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "other")


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def one(spark: SparkSession) -> int:
    return int(spark.sql("SELECT 1").collect()[0][0])


async def refusals(settings: LakeSettings) -> list[str]:
    """Return what a reader and a writer say."""
    with pytest.raises(LakeUnavailable) as of_reader:
        async with lake_reader(server_of(settings, TABLE.topic)):
            pass
    async with SparkLake(settings, f"{settings.path}/_staging", 60.0) as tables:
        with pytest.raises(LakeUnavailable) as of_writer:
            await tables.open(TABLE)
    return [str(of_reader.value), str(of_writer.value)]


async def test_a_server_of_our_own_authority_is_trusted(
    spark_url: str, token_file: Path, lake: Path, ours: Authority
) -> None:
    async with tls_proxy(port_of(spark_url), ours.server(HOST)) as port:
        settings = LakeSettings(
            path=str(lake),
            spark=f"sc://{HOST}:{port}/;use_ssl=true",
            token_file=token_file,
            ca_file=ours.ca_file,
        )
        async with lake_reader(server_of(settings, TABLE.topic)) as reader:
            assert await reader.run("ask", one) == 1
        async with SparkLake(settings, f"{lake}/_staging", 60.0) as tables:
            await tables.open(TABLE)


@pytest.mark.parametrize("trusted", ["other", None])
@pytest.mark.parametrize("name", [HOST, "elsewhere.example.com"])
async def test_a_server_of_another_authority_or_name_gets_no_token(  # noqa: PLR0917
    spark_url: str,
    token_file: Path,
    lake: Path,
    ours: Authority,
    other: Authority,
    name: str,
    trusted: str | None,
) -> None:
    """Nor does one whose certificate is good, but for another host."""
    authority = ours if name != HOST else other
    async with tls_proxy(port_of(spark_url), ours.server(name)) as port:
        settings = LakeSettings(
            path=str(lake),
            spark=f"sc://{HOST}:{port}/;use_ssl=true",
            token_file=token_file,
            ca_file=authority.ca_file if trusted else None,
        )
        secret = await asyncio.to_thread(token_file.read_text)
        for message in await refusals(settings):
            assert f"Spark at sc://{HOST}:{port} cannot be trusted" in message
            assert "lake.ca_file" in message
            assert "\n" not in message
            assert secret not in message


async def test_an_authority_that_cannot_be_read_is_named(
    spark_url: str, token_file: Path, lake: Path, tmp_path: Path
) -> None:
    settings = LakeSettings(
        path=str(lake),
        spark=f"{spark_url}/;use_ssl=true",
        token_file=token_file,
        ca_file=tmp_path / "none.pem",
    )
    assert all("none.pem" in message for message in await refusals(settings))
