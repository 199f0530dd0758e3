"""The fake lake has Delta's rules, which the tests that use it rely on."""

import asyncio
from collections import Counter
from typing import cast

import pytest

from binwright.protocol.errors import (
    LakeUnavailable,
    StagedUnreadable,
    TableRefused,
    WriteConflict,
    WriteUnclear,
)
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import lease_name
from binwright.protocol.ports.kafka import Record
from binwright.tables.ports import (
    Batch,
    Commit,
    Compaction,
    FileSlice,
    SmallFiles,
    Table,
)
from binwright.testing.lake import Failure, FakeLake
from binwright.testing.lake_storage import FakeStorage
from binwright.testing.records import in_columns
from binwright.testing.staging import FakeStaging, footer_of

P = TopicPartition("orders", 0)
ROWS = {P: (Record(7, 0, None, b"a"), Record(8, 0, None, b"b"))}
WHOLE = Batch((FileSlice("a", {0: (7, 9)}, whole=True, bytes=1, topic="orders"),), {P: 9}, 2, 1)
TABLE, CLICKS = Table("orders", "g", "c"), Table("clicks", "g", "c")
LEASE = lease_name("0" * 32, 1)
pytestmark = pytest.mark.looptime


async def opened(storage: FakeStorage, *, latency_s: float = 0.0) -> FakeLake:
    """A lake whose table is open, with ROWS staged in file `a`."""
    staging = FakeStaging()
    await staging.write("orders", "a", in_columns(ROWS), footer_of(ROWS))
    await staging.write_lease("orders", LEASE)
    lake = FakeLake(storage, staging, write_timeout_s=10)
    await lake.open(TABLE)
    lake.latency_s = latency_s
    return lake


async def test_an_append_lands_the_staged_rows() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    await lake.append("orders", WHOLE, LEASE, "stamp")

    assert storage.landed() == {P: Counter([7, 8])}
    assert await lake.highest_offsets("orders") == {P: 8}


async def test_only_the_ranges_of_a_slice_land() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    part = Batch((FileSlice("a", {0: (8, 9)}, whole=False, bytes=1, topic="orders"),))
    await lake.append("orders", part, LEASE, "stamp")

    assert storage.landed() == {P: Counter([8])}


async def test_a_claim_that_overtakes_an_append_makes_it_conflict() -> None:
    storage = FakeStorage()
    slow, newer = await opened(storage, latency_s=5), await opened(storage)
    write = asyncio.create_task(slow.append("orders", WHOLE, LEASE, "stamp"))
    await asyncio.sleep(1)

    await newer.claim("orders", "w", "claim")
    with pytest.raises(WriteConflict):
        await write
    assert not storage.landed()
    assert storage.table("orders").writer == "w"


async def test_an_append_whose_lease_was_deleted_names_it() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    await cast("FakeStaging", lake._staging).delete_other_leases("orders", "another")
    with pytest.raises(StagedUnreadable) as error:
        await lake.append("orders", WHOLE, LEASE, "stamp")

    assert error.value.files == {LEASE}
    assert not storage.landed()


async def test_a_stamp_alone_reads_the_lease_too() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    await lake.commit_stamp("orders", LEASE, 1, "stamp")
    assert storage.table("orders").commits[-1] == Commit(1, "stamp")
    with pytest.raises(RuntimeError, match="skips"):
        await lake.commit_stamp("orders", LEASE, 1, "stamp")
    await cast("FakeStaging", lake._staging).delete_other_leases("orders", "another")
    with pytest.raises(StagedUnreadable):
        await lake.commit_stamp("orders", LEASE, 2, "stamp")


async def test_a_write_of_a_killed_process_lands() -> None:
    storage = FakeStorage()
    lake = await opened(storage, latency_s=5)
    write = asyncio.create_task(lake.append("orders", WHOLE, LEASE, "stamp"))
    await asyncio.sleep(1)
    write.cancel()
    assert not storage.landed()

    await asyncio.sleep(5)

    assert storage.landed() == {P: Counter([7, 8])}


async def test_a_write_over_the_limit_is_unclear_and_may_land_later() -> None:
    storage = FakeStorage()
    lake = await opened(storage, latency_s=12)
    with pytest.raises(WriteUnclear):
        await lake.append("orders", WHOLE, LEASE, "stamp")
    assert not storage.landed()

    await asyncio.sleep(3)
    lake.latency_s = 0

    assert storage.landed() == {P: Counter([7, 8])}


@pytest.mark.parametrize(
    ("failure", "landed"), [(Failure.UNCLEAR_LANDED, True), (Failure.UNCLEAR, False)]
)
async def test_an_unclear_write_may_have_landed(failure: Failure, landed: bool) -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    lake.fail_next(failure)
    with pytest.raises(WriteUnclear):
        await lake.append("orders", WHOLE, LEASE, "stamp")

    assert bool(storage.landed()) is landed


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure.CONFLICT, WriteConflict),
        (Failure.REFUSED, TableRefused),
        (Failure.UNREADABLE, StagedUnreadable),
    ],
)
async def test_other_failures_commit_nothing(failure: Failure, error: type[Exception]) -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    lake.fail_next(failure)
    with pytest.raises(error):
        await lake.append("orders", WHOLE, LEASE, "stamp")

    assert not storage.landed()
    assert len(storage.table("orders").commits) == 1


async def test_a_staged_file_may_be_deleted_after_it_was_read() -> None:
    storage = FakeStorage()
    lake = await opened(storage, latency_s=5)
    write = asyncio.create_task(lake.append("orders", WHOLE, LEASE, "stamp"))
    await asyncio.sleep(3)
    cast("FakeStaging", lake._staging).lose("orders")

    await write
    assert storage.landed()


async def test_a_missing_staged_file_is_named() -> None:
    storage = FakeStorage()
    lake = await opened(storage, latency_s=5)
    write = asyncio.create_task(lake.append("orders", WHOLE, LEASE, "stamp"))
    await asyncio.sleep(1)
    cast("FakeStaging", lake._staging).lose("orders")
    with pytest.raises(StagedUnreadable) as error:
        await write

    assert error.value.files == {"a"}


async def test_failures_are_injected_in_order_into_matching_calls() -> None:
    lake = await opened(FakeStorage())
    lake.fail_next(Failure.CONFLICT, Failure.UNAVAILABLE)
    with pytest.raises(WriteConflict):
        await lake.claim("orders", "w", "claim")
    await lake.claim("orders", "w", "claim")
    with pytest.raises(LakeUnavailable):
        await lake.highest_offsets("orders")

    assert await lake.highest_offsets("orders") == {}


async def test_the_history_has_stamps_newest_first() -> None:
    lake = await opened(FakeStorage())
    await lake.claim("orders", "w", "claim")
    await lake.append("orders", WHOLE, LEASE, "one")
    everything, some = await lake.history("orders", 3), await lake.history("orders", 2)

    assert list(everything.commits) == [Commit(2, "one"), Commit(1, "claim"), Commit(0, None)]
    assert everything.complete
    assert list(some.commits) == [Commit(2, "one"), Commit(1, "claim")]
    assert not some.complete


async def test_a_cleaned_up_history_is_complete_without_its_beginning() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    await lake.claim("orders", "w", "claim")
    await lake.claim("orders", "v", "claim")
    storage.forget("orders", before=2)
    history = await lake.history("orders", 9)

    assert [c.version for c in history.commits] == [2]
    assert history.complete


async def test_a_table_belongs_to_one_group_of_one_cluster() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    for other in (Table("orders", "h", "c"), Table("orders", "g", "d")):
        with pytest.raises(TableRefused):
            await lake.open(other)
    storage.create("clicks")  # by hand
    await lake.open(CLICKS)

    assert storage.table("clicks").owner == CLICKS


async def test_a_table_that_was_not_opened_or_was_dropped_is_refused() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    storage.drop("orders")
    with pytest.raises(TableRefused, match="orders"):
        await lake.claim("orders", "w", "claim")
    with pytest.raises(TableRefused, match="clicks"):
        await lake.history("clicks", 1)


async def test_a_table_that_refuses_rows_accepts_claims() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    lake.refusing.add("orders")
    with pytest.raises(TableRefused):
        await lake.append("orders", WHOLE, LEASE, "stamp")

    await lake.claim("orders", "w", "claim")
    assert storage.table("orders").writer == "w"


async def test_two_calls_at_once_for_one_table_raise() -> None:
    lake = await opened(FakeStorage(), latency_s=2)
    lake_calls = asyncio.gather(
        lake.claim("orders", "w", "claim"), lake.history("orders", 1), return_exceptions=True
    )

    assert [type(outcome) for outcome in await lake_calls] == [type(None), RuntimeError]
    await lake.claim("orders", "v", "claim")


async def test_compaction_leaves_one_file_and_may_run_beside_a_write() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    for _ in range(3):
        await lake.append("orders", WHOLE, LEASE, "stamp")
    assert await lake.small_files("orders") == (SmallFiles((1_000,) * 3),)
    lake.latency_s = 2
    compaction, _ = await asyncio.gather(
        lake.compact("orders"), lake.append("orders", WHOLE, LEASE, "stamp")
    )

    assert compaction in {Compaction(n, 1, n * 1_000, n * 1_000) for n in (3, 4)}
