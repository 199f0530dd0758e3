"""Rows that a person had erased, and what an audit makes of them and of those that are lost."""

from dataclasses import replace

import pytest
from tests.integration.audit.place import RECORDS, Place

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.inspect.topic_extents import Range
from binwright.inspect.values import landed_by_deltalake, landed_by_spark
from binwright.tables.conditions import parse_condition
from binwright.tables.ports import ErasedQuery

pytestmark = pytest.mark.integration


def places(fresh: Place) -> list[set[tuple[int, int]]]:
    """Return the places of erased records that each reader of values finds."""
    of = (fresh.table, fresh.topic, None, {0: [Range(0, RECORDS)]})
    found = [landed_by_spark(fresh.spark, *of), landed_by_deltalake(*of)]
    return [{place for place, noted in erased.items() if noted} for _, _, erased in found]


@pytest.mark.nightly
async def test_erased_rows_are_counted_and_lost_ones_are_found(fresh: Place) -> None:
    await fresh.create(2)
    await fresh.produce(0, 1)
    fresh.land({0: range(RECORDS), 1: range(RECORDS)})
    topic_id = await fresh.topic_id()
    wanted = ErasedQuery(
        operation="1" * 32,
        where=parse_condition("partition = 0 AND offset IN (1, 2, 5)"),
        bad_where=None,
        topic_ids={fresh.topic: topic_id},
        below={},
    )
    async with SparkLake(fresh.lake, f"{fresh.lake.path}/_staging", 60.0) as lake:
        noted = await lake.note_erased(fresh.topic, wanted, "note", dry_run=False)
        assert noted == (3, 0, 0)
        before = await fresh.audit()
        assert before.clean, before.faults()
        assert sum(p.erased for p in before.tables[0].partitions) == 0, "they are there still"
        await lake.erase_noted(fresh.topic, wanted.operation, "note")

        result = await fresh.audit()
        assert result.clean, result.faults()
        (table,) = result.tables
        assert [p.erased for p in table.partitions] == [3, 0]
        assert any("3 records were erased" in remark for remark in table.remarks())
        assert result.rows == before.rows - 3
        erased = {(0, 1), (0, 2), (0, 5)}
        assert places(fresh) == [erased, erased]

        await fresh.forget(0, 2)  # an erased one is not lost to retention, either
        result = await fresh.audit()
        assert result.clean, result.faults()

        fresh.sql("DELETE FROM {} WHERE partition = 0 AND offset = 4")
        result = await fresh.audit()
        first = result.tables[0].partitions[0]
        assert (first.clean, first.lost, first.erased) == (False, 1, 3)

        of_another = replace(wanted, operation="2" * 32, topic_ids={fresh.topic: "earlier"})
        where = replace(of_another, where=parse_condition("partition = 0 AND offset = 3"))
        await lake.note_erased(fresh.topic, where, "note", dry_run=False)
        fresh.sql("DELETE FROM {} WHERE partition = 0 AND offset = 3")
        result = await fresh.audit()
        assert result.tables[0].partitions[0].lost == 2, "it was erased from an earlier topic"


async def test_what_was_erased_from_an_earlier_table_is_lost_in_a_new_one(fresh: Place) -> None:
    await fresh.create(1)
    await fresh.produce(0)
    fresh.land({0: range(RECORDS)})
    wanted = ErasedQuery(
        operation="1" * 32,
        where=parse_condition("offset = 2"),
        bad_where=None,
        topic_ids={fresh.topic: None},
        below={},
    )
    async with SparkLake(fresh.lake, f"{fresh.lake.path}/_staging", 60.0) as lake:
        assert (await lake.note_erased(fresh.topic, wanted, "note", dry_run=False)).rows == 1
        await lake.erase_noted(fresh.topic, wanted.operation, "note")
    assert (await fresh.audit()).tables[0].partitions[0].erased == 1
    fresh.move_away()
    fresh.land({0: [offset for offset in range(RECORDS) if offset not in {2, 3}]})
    first = (await fresh.audit()).tables[0].partitions[0]
    assert (first.lost, first.erased) == (2, 0)
    assert places(fresh) == [set(), set()]
