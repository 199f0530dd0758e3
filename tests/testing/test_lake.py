"""The fake lake keeps Delta's rules, or every test that stands on it proves nothing."""

import asyncio
from collections import Counter

import pytest

from binwright.core.errors import LakeUnavailable, UserError, WriteConflict, WriteUnclear
from binwright.core.model import TopicPartition
from binwright.core.ports import Commit, Lake, Record
from binwright.testing.lake import Failure, FakeLake, FakeStorage

P = TopicPartition("orders", 0)
ROWS = {P: (Record(7, 0, None, b"a"), Record(8, 0, None, b"b"))}
pytestmark = pytest.mark.looptime


async def opened(storage: FakeStorage, *, latency_s: float = 0.0) -> FakeLake:
    lake = FakeLake(storage, latency_s=latency_s, write_timeout_s=10)
    assert isinstance(await lake.open("orders"), str)
    return lake


async def test_it_is_a_lake() -> None:
    lake: Lake = FakeLake(FakeStorage())

    assert await lake.open("orders") == await lake.open("orders") != await lake.open("clicks")


async def test_a_write_returns_its_version_and_lands() -> None:
    storage = FakeStorage()
    lake = await opened(storage)

    assert await lake.append("orders", ROWS, "a/0", 1, "stamp") == 1
    assert storage.landed() == {P: Counter([7, 8])}
    assert await lake.newest("orders", [P, TopicPartition("orders", 1)]) == {P: 8}


@pytest.mark.parametrize("number", [4, 5])
async def test_the_same_or_a_lower_number_is_skipped(number: int) -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    await lake.claim("orders", "a/0", 5)

    assert await lake.append("orders", ROWS, "a/0", number, "stamp") is None
    assert not storage.landed()


async def test_tables_and_app_ids_number_for_themselves() -> None:
    lake = await opened(FakeStorage())
    await lake.open("clicks")
    await lake.claim("orders", "a/0", 5)

    assert await lake.claim("orders", "a/1", 1) == 2
    assert await lake.claim("clicks", "a/0", 1) == 1


async def test_a_fence_that_overtakes_a_write_makes_it_collide() -> None:
    storage = FakeStorage()
    slow, heir = await opened(storage), await opened(storage)
    slow.latency_s = 5
    write = asyncio.create_task(slow.append("orders", ROWS, "a/0", 1, "stamp"))
    await asyncio.sleep(1)

    assert await heir.claim("orders", "a/0", 9) == 1
    with pytest.raises(WriteConflict):
        await write
    assert not storage.landed()


async def test_a_write_of_a_killed_process_lands_all_the_same() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    lake.latency_s = 5
    write = asyncio.create_task(lake.append("orders", ROWS, "a/0", 1, "stamp"))
    await asyncio.sleep(1)
    write.cancel()
    assert not storage.landed()

    await asyncio.sleep(5)

    assert storage.landed() == {P: Counter([7, 8])}


async def test_a_write_over_the_limit_is_unclear_and_may_land_later() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    lake.latency_s = 12
    with pytest.raises(WriteUnclear):
        await lake.append("orders", ROWS, "a/0", 1, "stamp")
    assert not storage.landed()

    await asyncio.sleep(3)
    lake.latency_s = 0

    assert await lake.append("orders", ROWS, "a/0", 1, "stamp") is None
    assert storage.landed() == {P: Counter([7, 8])}


@pytest.mark.parametrize(
    ("failure", "again"), [(Failure.UNCLEAR_LANDED, None), (Failure.UNCLEAR, 1)]
)
async def test_an_unclear_write_is_told_apart_by_sending_it_again(
    failure: Failure, again: int | None
) -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    lake.fail_next(failure)
    with pytest.raises(WriteUnclear):
        await lake.append("orders", ROWS, "a/0", 1, "stamp")

    assert await lake.append("orders", ROWS, "a/0", 1, "stamp") == again
    assert storage.landed() == {P: Counter([7, 8])}


async def test_failures_come_in_order_to_the_calls_they_fit() -> None:
    lake = await opened(FakeStorage())
    lake.fail_next(Failure.CONFLICT, Failure.UNAVAILABLE)
    with pytest.raises(WriteConflict):
        await lake.claim("orders", "a/0", 1)
    assert await lake.claim("orders", "a/0", 1) == 1
    with pytest.raises(LakeUnavailable):
        await lake.newest("orders", [P])

    assert await lake.newest("orders", [P]) == {}


async def test_history_tells_stamps_newest_first() -> None:
    lake = await opened(FakeStorage())
    await lake.claim("orders", "a/0", 1)
    await lake.append("orders", ROWS, "a/0", 2, "one")

    history = await lake.history("orders", after=0)

    assert history.complete
    assert list(history.commits) == [Commit(2, "one"), Commit(1, None)]


@pytest.mark.parametrize(("after", "complete"), [(0, False), (1, True), (2, True)])
async def test_history_says_when_it_no_longer_reaches_back(after: int, complete: bool) -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    await lake.claim("orders", "a/0", 1)
    await lake.claim("orders", "a/0", 2)
    storage.forget("orders", before=2)

    assert (await lake.history("orders", after)).complete is complete


async def test_a_table_made_anew_has_another_id() -> None:
    storage = FakeStorage()
    lake = FakeLake(storage)
    before = await lake.open("orders")
    storage.drop("orders")

    assert await lake.open("orders") != before


async def test_what_was_never_opened_or_was_dropped_is_no_table() -> None:
    storage = FakeStorage()
    lake = await opened(storage)
    storage.drop("orders")
    with pytest.raises(UserError, match="orders"):
        await lake.claim("orders", "a/0", 1)
    with pytest.raises(UserError, match="clicks"):
        await lake.history("clicks", -1)


async def test_calls_of_one_view_are_served_one_after_the_other() -> None:
    lake = await opened(FakeStorage())
    lake.latency_s = 2
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await asyncio.gather(lake.claim("orders", "a/0", 1), lake.claim("orders", "a/1", 1))

    assert loop.time() - begun == 4
