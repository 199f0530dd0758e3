"""Tables by name: in Spark's Hive metastore, on a disk, as another Spark would see them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession
from tests.integration.conftest import BackgroundLoop
from tests.integration.lake.column_tables import ITEMS
from tests.integration.lake.tables import TABLE, new_lake, sql
from tests.integration.versions.servers import named, spark_jars

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.local.spark import TOKEN_VARIABLE, run_spark
from binwright.protocol.errors import LakeUnavailable, TableRefused
from binwright.tables.columns import parse_columns

pytestmark = pytest.mark.integration

METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"


@pytest.fixture(scope="module")
def hive_url(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A Spark Connect server whose names are in a Hive metastore."""
    place = tmp_path_factory.mktemp("hive")
    settings = {
        "spark.sql.catalogImplementation": "hive",
        METASTORE: f"jdbc:derby:;databaseName={place}/metastore;create=true",
    }
    jars = background_loop.wait(spark_jars(named()[1]))
    with (
        background_loop.entered(run_spark(place, settings=settings, spark=jars)) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(TOKEN_VARIABLE, running.token_file.read_text())
        yield running.address


@pytest.fixture
def hive(hive_url: str) -> Iterator[SparkSession]:
    """Somebody else, with an empty schema `sales`."""
    session = SparkSession(DefaultChannelBuilder(hive_url))
    sql(session, "DROP SCHEMA IF EXISTS sales CASCADE")
    sql(session, "CREATE SCHEMA sales")
    yield session
    session.client.release_session()
    session.client.close()


@pytest.fixture
async def tables(tmp_path: Path, hive_url: str) -> AsyncIterator[SparkLake]:
    place = tmp_path / "my lake"
    place.mkdir()
    async with new_lake(place, hive_url) as tables:
        await tables.open(TABLE)
        await tables.open(ITEMS)
        yield tables


def versions(spark: SparkSession, path: Path) -> int:
    return int(spark.sql(f"DESCRIBE HISTORY delta.`{path}`").count())


async def test_a_table_and_its_bad_records_have_names_and_no_commit_more(
    tables: SparkLake, hive: SparkSession, tmp_path: Path
) -> None:
    paths = [tmp_path / "my lake" / name for name in ("items", "items__bad")]
    before = [versions(hive, path) for path in paths]
    for _ in range(2):  # as the next writer does
        await tables.register("items", "spark_catalog.sales.items")

    assert {row.tableName for row in hive.sql("SHOW TABLES IN sales").collect()} == {
        "items",
        "items__bad",
    }
    assert hive.table("sales.items").columns == ["_kafka", *(c.name for c in ITEMS.columns or ())]
    assert "reason" in hive.table("sales.items__bad").columns
    assert [versions(hive, path) for path in paths] == before


async def test_columns_that_a_writer_adds_are_there_by_the_name(
    tables: SparkLake, hive: SparkSession
) -> None:
    await tables.register("items", "sales.items")
    assert "later" not in hive.table("sales.items").columns
    await tables.add_columns("items", parse_columns("later STRING"))

    assert "later" in hive.table("sales.items").columns


async def test_a_name_that_is_dropped_leaves_the_table(
    tables: SparkLake, hive: SparkSession, tmp_path: Path
) -> None:
    await tables.register("orders", "sales.orders")
    sql(hive, "DROP TABLE sales.orders")

    assert versions(hive, tmp_path / "my lake" / "orders") == 1
    await tables.register("orders", "sales.orders")
    assert hive.catalog.tableExists("sales.orders")


@pytest.mark.parametrize(
    "taken",
    [
        "CREATE TABLE sales.orders USING delta LOCATION '{other}'",
        "CREATE TABLE sales.orders (a INT) USING parquet LOCATION '{other}'",
        "CREATE TABLE sales.orders (a INT) USING delta",
        "CREATE VIEW sales.orders AS SELECT 1 AS a",
    ],
)
async def test_a_name_of_something_else_is_refused_and_stays(
    tables: SparkLake, hive: SparkSession, tmp_path: Path, taken: str
) -> None:
    other = tmp_path / "other"
    sql(hive, f"CREATE TABLE delta.`{other}` (a INT) USING delta")
    sql(hive, taken.format(other=other if "delta" in taken else tmp_path / "parquet"))
    with pytest.raises(TableRefused, match=r"sales\.orders is .*my lake/orders"):
        await tables.register("orders", "sales.orders")

    assert hive.table("sales.orders").columns == ["a"]


async def test_a_schema_that_is_not_there_is_named_and_not_made(
    tables: SparkLake, hive: SparkSession
) -> None:
    with pytest.raises(TableRefused, match=r"not registered as nothing\.orders.*SCHEMA_NOT_FOUND"):
        await tables.register("orders", "nothing.orders")
    with pytest.raises((TableRefused, LakeUnavailable), match=r"not registered as main\.a\.orders"):
        await tables.register("orders", "main.a.orders")

    assert not hive.catalog.databaseExists("nothing")


async def test_a_table_lands_while_it_is_registered(
    tables: SparkLake, hive: SparkSession, tmp_path: Path
) -> None:
    await asyncio.gather(
        tables.claim("orders", "w" * 32, "{}"), tables.register("orders", "sales.orders")
    )

    assert versions(hive, tmp_path / "my lake" / "orders") == 2
    assert hive.catalog.tableExists("sales.orders")
