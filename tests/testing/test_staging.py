"""The fake staging holds written files, and loses or refuses them on demand."""

import asyncio

import pytest

from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.tables.ports import Footer, Staging
from binwright.testing.records import in_columns
from binwright.testing.staging import FakeStaging, footer_of

P = TopicPartition("orders", 0)
ROWS = {P: [Record(0, 0, None, b"x" * 100)]}
pytestmark = pytest.mark.looptime


async def test_it_implements_the_port_and_returns_what_was_written() -> None:
    fake = FakeStaging(latency_s=2.0)
    staging: Staging = fake
    await staging.prepare()

    assert await staging.write("orders", "a", in_columns(ROWS), footer_of(ROWS)) == fake.bytes > 100
    assert asyncio.get_running_loop().time() == 2.0
    assert fake.rows("orders", "a") == {P: tuple(ROWS[P])}
    assert await staging.existing("orders", ["a", "b"]) == {"a"}
    await staging.delete("orders", ["a", "b"])
    assert fake.rows("orders", "a") is None


async def test_a_truncated_file_exists_and_cannot_be_read() -> None:
    staging = FakeStaging()
    await staging.write("orders", "a", in_columns(ROWS), footer_of(ROWS))
    assert staging.tear("orders") == 1

    assert await staging.existing("orders", ["a"]) == {"a"}
    assert await staging.readable("orders", ["a"]) == set()
    assert staging.rows("orders", "a") is None


async def test_writes_fail_with_an_error_or_when_it_is_full() -> None:
    staging = FakeStaging()
    staging.capacity = 50
    with pytest.raises(StagingUnavailable, match="No space left"):
        await staging.write("orders", "a", in_columns(ROWS), footer_of(ROWS))
    staging.write_error = "no right"
    with pytest.raises(StagingUnavailable, match="no right"):
        await staging.prepare()
    assert not staging.files


async def test_footers_are_what_was_written() -> None:
    staging = FakeStaging()
    for name in ("a", "torn"):
        await staging.write("orders", name, in_columns(ROWS), footer_of(ROWS, "an id"))
    staging.files["orders"]["torn"].torn = True

    assert footer_of(ROWS, "an id") == Footer("an id", 1, {0: (0, 1)}, newest_ms=0)
    assert await staging.footers("orders", ["a", "torn", "lost"]) == {"a": footer_of(ROWS, "an id")}
    assert await staging.directories() == {"orders"}


async def test_old_files_are_found() -> None:
    staging = FakeStaging()
    await staging.write("orders", "old", in_columns(ROWS), footer_of(ROWS))
    await asyncio.sleep(100)
    await staging.write("orders", "new", in_columns(ROWS), footer_of(ROWS))

    assert await staging.older("orders", 50.0) == {"old"}
