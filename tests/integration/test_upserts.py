"""Changes of a database become rows of keys though consumers die; an audit finds what is wrong."""

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import deltalake
import orjson
import psutil
import pytest
from aiokafka import AIOKafkaProducer
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession
from tests.integration.command_line import binwright
from tests.integration.landing import rows, until
from tests.integration.topics import create_topic

from binwright.local.stack import services
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

LOG = "upserts-log"
PARTITIONS = 3
DELETED = 0.2  # of the changes
Expected = dict[int, tuple[int, tuple[int, int]]]
"""Key -> its value, and the partition and offset of its newest change."""


def settings_of(broker: str, spark: str, lake: Path, orders: str) -> Settings:
    entry: dict[str, Any] = {
        "topics": [orders],
        "format": "json",
        "columns": "id INT, v BIGINT",
        "envelope": "debezium",
        "tombstones": "skip",
    }
    return load_settings(
        group=orders,
        topics=[orders],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 2.0},
        tables=[{**entry, "mode": "upsert", "primary_key": ["id"]}, {**entry, "name": LOG}],
        monitor={"topic": f"{orders}.metrics"},
        controller={"process_logs": str(lake.parent / "consumers")},
    )


def event(key: int, value: int | None, before: int | None, lsn: int) -> bytes:
    """Return a change event of Debezium's."""
    old, new = (None if v is None else {"id": key, "v": v} for v in (before, value))
    op = "d" if value is None else "c" if before is None else "u"
    row = old if value is None else None
    return orjson.dumps({"before": row, "after": new, "op": op, "source": {"lsn": lsn}})


class Source:
    """A database whose changes a connector writes to Kafka; it keeps what its table has."""

    def __init__(self, producer: AIOKafkaProducer, topic: str, keys: int) -> None:
        self._producer, self._topic, self._keys = producer, topic, keys
        self._chance = random.Random(11)
        self.expected: Expected = {}
        self.changes, self.deleted = 0, 0

    async def change(self, count: int) -> None:
        """Make so many changes, each with its record; deletions have a tombstone behind."""
        sent = []
        for _ in range(count):
            key = self._chance.randrange(self._keys)
            known = self.expected.get(key)
            deletes = known is not None and self._chance.random() < DELETED
            value = None if deletes else self._chance.randrange(1 << 40)
            content = event(key, value, known and known[0], self.changes)
            self.changes += 1
            future = await self._send(key, content)
            if value is None:
                del self.expected[key]
                self.deleted += 1
                await self._send(key, None)
            else:
                self.expected[key] = (value, (key % PARTITIONS, -1))
                sent.append((key, value, future))
        await self._producer.flush()
        for key, value, future in sent:
            if key in self.expected and self.expected[key][0] == value:
                place = await future
                self.expected[key] = (value, (place.partition, place.offset))

    async def _send(self, key: int, content: bytes | None) -> Any:
        name = str(key).encode()
        return await self._producer.send(self._topic, content, key=name, partition=key % PARTITIONS)


def landed(lake: Path, orders: str) -> Expected:
    """Return the rows as deltalake reads them."""
    table = deltalake.DeltaTable(str(lake / orders)).to_pyarrow_table(columns=["id", "v", "_kafka"])
    found = {
        row["id"]: (row["v"], (row["_kafka"]["partition"], row["_kafka"]["offset"]))
        for row in table.to_pylist()
    }
    assert len(found) == len(table), "a key has two rows"
    return found


@pytest.mark.parametrize(
    ("keys", "changes", "kills"),
    [(300, 3_000, 1), pytest.param(10_000, 100_000, 3, marks=pytest.mark.nightly)],
)
async def test_the_table_is_that_of_the_database_though_consumers_die(  # noqa: PLR0917 - fixtures
    broker: str, spark_url: str, lake: Path, keys: int, changes: int, kills: int
) -> None:
    orders = f"upserts-{changes}"
    settings = settings_of(broker, spark_url, lake, orders)
    environment = os.environ | settings_environment(settings)
    await create_topic(settings.kafka, orders, PARTITIONS)
    async with (
        services(settings, lake.parent / "logs") as stack,
        AIOKafkaProducer(bootstrap_servers=broker, linger_ms=5) as producer,
    ):
        source = Source(producer, orders, keys)
        await source.change(changes // (kills + 1))
        await until(lambda: len(rows(lake, orders)) > 0)
        for _ in range(kills):
            for pid in stack.consumer_pids():
                psutil.Process(pid).send_signal(signal.SIGKILL)
            await source.change(changes // (kills + 1))
            before = len(deltalake.DeltaTable(str(lake / orders)).history())
            await until(
                lambda before=before: (  # type: ignore[misc]
                    len(deltalake.DeltaTable(str(lake / orders)).history()) > before + 1
                )
            )
        await until(lambda: landed(lake, orders) == source.expected)
        log = rows(lake, LOG)
        assert len(log) == source.changes
        assert sum(row["_op"] == "d" for row in log) == source.deleted

        async def audited() -> tuple[int, dict[str, Any]]:
            asked = ("audit", "--table", orders, "--json")
            code, out, errors = await binwright(*asked, environment=environment)
            assert code in {0, 1}, errors
            (table,) = json.loads(out)["tables"]
            return code, table

        code, table = await audited()
        assert (code, table["clean"]) == (0, True), table
        assert sum(part["rows"] for part in table["partitions"]) == len(source.expected)

    key, (_, (partition, offset)) = next(iter(source.expected.items()))
    spark = SparkSession(DefaultChannelBuilder(spark_url))
    path = f"delta.`{lake}/{orders}`"
    spark.sql(f"UPDATE {path} SET _kafka.offset = 0 WHERE id = {key}").collect()  # noqa: S608
    other = next(k for k in source.expected if k != key)
    spark.sql(f"DELETE FROM {path} WHERE id = {other}").collect()  # noqa: S608
    spark.client.release_session()
    code, table = await audited()
    assert (code, table["clean"]) == (1, False)
    parts = table["partitions"]
    assert sum(part["stale"] for part in parts) == 1
    assert sum(part["lost"] for part in parts) == 2
    assert (parts[partition]["stale"], offset > 0) == (1, True)
