"""Tables that others wrote, under names of their own."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.integration.audit.place import RECORDS, Place
from tests.integration.command_line import binwright

from binwright.inspect.audit import AuditResult, OtherTable
from binwright.inspect.decide.record_columns import parse_record_columns
from binwright.inspect.topic_extents import Range
from binwright.protocol.errors import UserError

pytestmark = pytest.mark.integration

NESTED = "topic=meta.topic,partition=meta.partition,offset=meta.offset"
ONE_TOPIC = "partition=kafka_partition,offset=kafka_offset"
Rows = Sequence[tuple[str | None, int | None, int | None]]


@pytest.fixture(scope="module")
def place(
    broker: str, spark: Any, spark_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    place = Place(broker, spark, spark_url, tmp_path_factory.mktemp("lake"), "audit.others")
    asyncio.run(place.create(2))
    asyncio.run(place.produce(0, 1))
    return place


def written(spark: Any, path: Path, rows: Rows, *columns: str) -> str:
    frame = spark.createDataFrame(list(rows), "t STRING, p BIGINT, o BIGINT")
    frame.selectExpr(*columns, "'x' AS value").write.format("delta").save(str(path))
    return str(path)


def nested(spark: Any, path: Path, rows: Rows) -> str:
    return written(
        spark, path, rows, "struct(t AS topic, CAST(p AS INT) AS partition, o AS offset) AS meta"
    )


def whole(topic: str) -> list[tuple[str | None, int | None, int | None]]:
    return [(topic, partition, offset) for partition in (0, 1) for offset in range(RECORDS)]


async def audited(place: Place, path: str, columns: str) -> AuditResult:
    return await place.audit(other=OtherTable(path, parse_record_columns(columns)))


async def test_rows_of_another_topic_are_left_alone(
    place: Place, spark: Any, tmp_path: Path
) -> None:
    rows = [*whole(place.topic), *whole("another")]
    result = await audited(place, nested(spark, tmp_path / "t", rows), NESTED)

    assert result.clean
    assert result.rows == 2 * RECORDS


async def test_gaps_and_doubles_are_counted_by_partition(
    place: Place, spark: Any, tmp_path: Path
) -> None:
    rows = [row for row in whole(place.topic) if row[1:] not in {(0, 7), (0, 8)}]
    rows += [(place.topic, 1, 3), (place.topic, 1, 3)]
    columns = ("p AS kafka_partition", "CAST(o AS INT) AS kafka_offset")
    path = written(spark, tmp_path / "t", rows, *columns)
    (table,) = (await audited(place, path, ONE_TOPIC)).tables
    first, second = table.partitions

    assert (first.lost, first.lost_ranges) == (2, (Range(7, 8),))
    assert (second.surplus, second.doubles) == (2, (3,))
    assert not table.clean


async def test_rows_that_name_no_record_are_counted(
    place: Place, spark: Any, tmp_path: Path
) -> None:
    """One without an offset, two without a partition, one without a topic, one of offset -1."""
    strange: Rows = [
        *[(place.topic, 0, None), (place.topic, None, 4), (place.topic, None, 5)],
        *[(None, 0, 1), (place.topic, 0, -1), ("another", None, None)],
    ]
    path = nested(spark, tmp_path / "t", [*whole(place.topic), *strange])
    result = await audited(place, path, NESTED)

    assert result.tables[0].unplaced == 5
    assert not result.clean
    assert result.faults() == (f"{path}: 5 rows have no topic, partition or offset",)


async def test_columns_that_are_wrong_are_named(place: Place, spark: Any, tmp_path: Path) -> None:
    path = nested(spark, tmp_path / "t", whole(place.topic)[:1])
    with pytest.raises(UserError, match=r"no column offset \(perhaps meta\.offset"):
        await audited(place, path, "partition=meta.partition,offset=offset")
    with pytest.raises(UserError, match=r"meta\.topic is string"):
        await audited(place, path, "partition=meta.topic,offset=meta.offset")


async def test_a_place_without_a_delta_table_is_named(
    place: Place, spark: Any, tmp_path: Path
) -> None:
    spark.range(1).write.parquet(str(tmp_path / "parquet"))
    (tmp_path / "empty").mkdir()
    for name in ("parquet", "empty", "nothing"):
        path = str(tmp_path / name)
        with pytest.raises(UserError, match=f"there is no Delta table at {path}"):
            await audited(place, path, NESTED)


async def test_the_command_prints_and_writes_what_it_found(
    place: Place, spark: Any, spark_url: str, tmp_path: Path
) -> None:
    path = nested(spark, tmp_path / "t", [*whole(place.topic)[:-4], (place.topic, 0, 0)])
    metrics = tmp_path / "audit.prom"
    named = ["--table", path, "--topic", place.topic, "--columns", NESTED]
    servers = ["--bootstrap-servers", place.kafka.bootstrap_servers, "--spark", spark_url]
    code, out, errors = await binwright(
        "audit", *named, *servers, "--json", "--metrics-file", str(metrics)
    )

    assert (code, errors) == (1, "")
    (table,) = json.loads(out)["tables"]
    assert (table["path"], table["unplaced"], table["clean"]) == (path, 0, False)
    assert [part["surplus"] for part in table["partitions"]] == [1, 0]
    assert [part["lost"] for part in table["partitions"]] == [0, 4]
    samples = {
        (sample.name, sample.labels.get("partition")): sample.value
        for family in text_string_to_metric_families(metrics.read_text())
        for sample in family.samples
    }
    assert samples["binwright_audit_clean", None] == 0
    assert samples["binwright_audit_missing_records", "1"] == 4
    assert samples["binwright_audit_surplus_rows", "0"] == 1

    code, _, errors = await binwright(
        *("audit", "--table", path, "--topic", "audit.none", "--columns", NESTED, *servers)
    )
    assert "there is no topic audit.none" in errors
    assert "\n" not in errors.strip()
    assert code != 0
