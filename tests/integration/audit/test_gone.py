"""Records that were gone before they landed, topics made anew, and logs that were cut."""

from collections.abc import Sequence

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.audit.place import RECORDS, Place

from binwright.inspect.topic_extents import Range

pytestmark = pytest.mark.integration


# --- records that were gone before they landed -------------------------------------------------


async def test_records_that_retention_deleted_unread_are_lost(fresh: Place) -> None:
    await fresh.create(2)
    await fresh.produce(0, 1)
    await fresh.forget(0, 30)
    fresh.land({0: [*range(10), *range(30, RECORDS)], 1: range(RECORDS)})
    (table,) = (await fresh.audit()).tables

    assert not table.clean
    assert table.faults() == (
        f"{fresh.topic}-0: 20 without a row, and the topic no longer keeps them (10-29)",
    )


async def test_records_deleted_before_the_first_commit_are_lost_if_a_stamp_names_the_beginning(
    fresh: Place,
) -> None:
    await fresh.create(1)
    await fresh.produce(0)
    fresh.land({}, stamp=await fresh.stamp({0: 0}, full=True))
    await fresh.forget(0, 30)
    fresh.land({0: range(30, RECORDS)}, stamp=await fresh.stamp({0: RECORDS}))
    (table,) = (await fresh.audit()).tables

    assert table.partitions[0].gone_ranges == (Range(0, 29),)
    assert table.partitions[0].lost_to_retention == 30


async def test_what_is_gone_behind_what_has_landed_may_be_staged_and_still_land(
    fresh: Place,
) -> None:
    await fresh.create(1)
    await fresh.produce(0)
    fresh.land({0: range(20)})
    await fresh.forget(0, RECORDS)
    result = await fresh.audit()

    assert result.clean
    assert result.tables[0].partitions[0].not_landed == RECORDS - 20
    (remark,) = result.remarks()
    assert remark.startswith(f"{fresh.topic}: {RECORDS - 20} offsets are gone from the topic and")


async def test_compaction_may_take_records_so_what_is_gone_vanishes_unless_asked_strictly(
    fresh: Place,
) -> None:
    await fresh.create(1, **{"cleanup.policy": "compact,delete"})
    async with AIOKafkaProducer(bootstrap_servers=fresh.kafka.bootstrap_servers) as producer:
        for _ in range(RECORDS):
            await producer.send(fresh.topic, b"x", key=b"k", partition=0)
    await fresh.forget(0, 30)
    fresh.land({0: [*range(10), *range(30, RECORDS)]})
    (table,) = (await fresh.audit()).tables
    (strict,) = (await fresh.audit(strict=True)).tables

    assert (table.clean, table.partitions[0].vanished) == (True, 20)
    assert (strict.clean, strict.partitions[0].lost_to_retention) == (False, 20)


# --- topics made anew, logs that were cut ------------------------------------------------------


async def recreated(place: Place, old: Sequence[int], new: Sequence[int]) -> None:
    """Land these offsets of a topic, and of the one that follows it; both have all of them."""
    await place.create(2)
    await place.produce(0)
    place.land({0: old}, stamp=await place.stamp({0: RECORDS}))
    await place.delete()
    await place.create(1)
    await place.produce(0)
    place.land({}, stamp=await place.stamp({0: 0}, full=True))
    place.land({0: new}, stamp=await place.stamp({0: RECORDS}))


async def test_rows_of_an_earlier_topic_are_not_doubled(fresh: Place) -> None:
    await recreated(fresh, range(RECORDS), range(RECORDS))
    result = await fresh.audit()
    (part,) = result.tables[0].partitions

    assert result.clean
    assert (part.rows, part.earlier, part.surplus) == (2 * RECORDS, RECORDS, 0)
    assert result.remarks() == (
        f"{fresh.topic}: {RECORDS} rows are of an earlier topic of this name",
    )


async def test_rows_of_an_earlier_topic_stand_in_for_none_of_this_one(fresh: Place) -> None:
    await recreated(fresh, range(RECORDS), range(10, RECORDS))
    (table,) = (await fresh.audit()).tables

    assert table.faults() == (f"{fresh.topic}-0: 10 missing (0-9)",)


async def test_what_is_doubled_within_either_topic_is_reported_apart(fresh: Place) -> None:
    await recreated(fresh, [*range(RECORDS), 7], [*range(RECORDS), 3])
    (table,) = (await fresh.audit()).tables

    assert table.faults() == (f"{fresh.topic}-0: 1 too many (3)",)
    assert table.partitions[0].earlier == RECORDS + 1


async def test_compaction_mixes_files_and_changes_nothing(fresh: Place) -> None:
    await recreated(fresh, range(RECORDS), range(RECORDS))
    fresh.sql("OPTIMIZE {}")
    fresh.land({0: [1]}, stamp=await fresh.stamp({0: RECORDS}))
    (table,) = (await fresh.audit()).tables

    assert table.faults() == (f"{fresh.topic}-0: 1 too many (1)",)
    assert table.partitions[0].earlier == RECORDS


async def test_rows_of_an_unknown_log_are_unchecked(fresh: Place) -> None:
    await recreated(fresh, range(RECORDS), range(RECORDS))
    before = fresh.files()
    fresh.sql("OPTIMIZE {}")
    for file in before:  # as VACUUM does a week later
        file.unlink()
    (table,) = (await fresh.audit()).tables

    assert not table.clean
    assert len(table.faults()) == 1
    assert "rows of earlier logs cannot be told apart: version 0 of the table" in table.faults()[0]


async def test_a_topic_recreated_of_which_nothing_has_landed_is_missing_whole(fresh: Place) -> None:
    await fresh.create(1)
    await fresh.produce(0)
    fresh.land({0: range(RECORDS)}, stamp=await fresh.stamp({0: RECORDS}))
    await fresh.delete()
    await fresh.create(1)
    await fresh.produce(0, records=3)
    (table,) = (await fresh.audit()).tables

    assert table.faults() == (f"{fresh.topic}-0: 3 missing (0-2)",)
    assert table.partitions[0].earlier == RECORDS


async def test_offsets_written_again_after_a_cut_are_rewritten_not_doubled(fresh: Place) -> None:
    """The log had 45 records more, of which 40 to 59 were cut; what is behind 50 is no more."""
    await fresh.create(2)
    await fresh.produce(0, 1)
    fresh.land({0: range(60), 1: range(RECORDS)}, stamp=await fresh.stamp({0: 60, 1: RECORDS}))
    fresh.land(
        {0: range(40, RECORDS)}, stamp=await fresh.stamp({0: RECORDS}, cuts=fresh.offsets({0: 9}))
    )
    result = await fresh.audit()
    cut, other = result.tables[0].partitions

    assert result.clean
    assert (cut.rewritten, cut.surplus, cut.beyond) == (20, 0, 0)
    assert (other.rewritten, other.rows) == (0, RECORDS)
    assert result.remarks() == (
        f"{fresh.topic}: 20 rows are of what the log was before it was cut",
    )
