"""Bad records are decoded again as what is read today, and their rows staged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.record_decoder import RecordDecoder
from binwright.consumer.land.replay import BadRecordDecoder, DecodedAgain
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import TableRefused
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import is_portion
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.columns import parse_columns
from binwright.tables.masks import MaskSettings
from binwright.tables.operations import Cursor
from binwright.tables.ports import BadPlace, BadPortion, BadRow, ValueDecoder
from binwright.tables.settings import TableSettings
from binwright.tables.targets import Target

P, Q = TopicPartition("items", 0), TopicPartition("items", 1)
COLUMNS = parse_columns("id BIGINT")
ENTRY = TableSettings(topics=("items",), format="json", columns="id BIGINT")
TARGET = Target("items", "items", ENTRY)


def bad(
    offset: int,
    value: bytes | None,
    *,
    p: TopicPartition = P,
    topic_id: str | None = "id",
    at_ms: int = 1_000,
    kind: str = "malformed",
) -> BadRow:
    record = Record(offset, at_ms, b"k", value, 0, (("h", b"1"),))
    return BadRow(BadPlace(topic_id, p, offset, at_ms), record, kind, "before")


async def json_of(
    _target: Target, _rows: Mapping[TopicPartition, Sequence[Records]]
) -> ValueDecoder:
    return RecordDecoder(JsonDecoder(COLUMNS), None, None, "skip")


async def decode(
    staging: FileStaging, *rows: BadRow, dry_run: bool = False, masked: int = 0
) -> DecodedAgain:
    decoder = BadRecordDecoder(staging=staging, decoder_of=json_of)
    return await decoder.decode(TARGET, BadPortion(rows, masked), dry_run=dry_run)


ROWS = (
    bad(3, b'{"id": 3}'),
    bad(4, b"none"),
    bad(6, b'{"id": 6}', kind="incompatible", at_ms=-1),
    bad(7, None),
    bad(0, b'{"id": 9}', p=Q),
)


async def test_rows_are_staged_and_each_record_is_known_to_be_one_or_not(tmp_path: Path) -> None:
    async with FileStaging(str(tmp_path)) as staging:
        done = await decode(staging, *ROWS, masked=2)
        portion = done.portion
        assert is_portion(portion.file)
        assert (portion.after, portion.rows, portion.masked) == (Cursor("items", 1, 0), 3, 2)
        assert portion.places == {P: (3, 7), Q: (0, 1)}
        assert portion.moved == {"malformed": 2, "incompatible": 1}
        assert (portion.left, portion.skipped) == ({"malformed": 1}, 1)
        assert {place.offset for place in done.removed} == {3, 6, 7, 0}
        (changed,) = done.changed
        assert changed.place == ROWS[1].place
        assert changed.record.value == b"none"
        assert changed.reason != "before"

        path = tmp_path / "items" / portion.file
        assert path.stat().st_size == portion.bytes
        (footer,) = (await staging.footers("items", [portion.file])).values()
        assert (footer.ranges, footer.columns, footer.rows) == ({0: (3, 7), 1: (0, 1)}, COLUMNS, 3)
        assert (footer.bad, footer.skipped, footer.as_table) == (0, 0, False)
        found = pq.read_table(path)
        assert found["row"].to_pylist() == [{"id": 3}, {"id": 6}, {"id": 9}]
        assert found["offset"].to_pylist() == [3, 6, 0]
        assert found["timestamp"].cast(pa.int64()).to_pylist() == [1_000_000, None, 1_000_000]
        assert found["key"].to_pylist() == [b"k"] * 3

        assert await staging.sizes("items") == {}  # no reader takes it for one of its own
        assert await staging.older("items", 0.0) == {portion.file}
        await staging.delete("items", [portion.file])
        assert not path.exists()


async def test_what_is_bad_for_the_same_reason_does_not_change(tmp_path: Path) -> None:
    async with FileStaging(str(tmp_path)) as staging:
        first = await decode(staging, bad(4, b"none"))
        again = await decode(staging, *first.changed)
        assert (first.portion.file, again.changed, again.removed) == ("", [], [])
        assert again.portion.left == {"malformed": 1}


async def test_a_record_that_is_there_twice_becomes_one_row(tmp_path: Path) -> None:
    async with FileStaging(str(tmp_path)) as staging:
        twice = bad(3, b'{"id": 3}'), bad(3, b'{"id": 3}', topic_id=None)
        done = await decode(staging, *twice)
        assert done.portion.rows == 1
        assert done.removed == [row.place for row in twice]


async def test_a_dry_run_stages_nothing(tmp_path: Path) -> None:
    async with FileStaging(str(tmp_path)) as staging:
        done = await decode(staging, *ROWS, dry_run=True)
        assert (done.portion.file, done.portion.rows) == ("", 3)
        assert not (tmp_path / "items").exists()


async def test_without_records_there_is_nothing_more(tmp_path: Path) -> None:
    async with FileStaging(str(tmp_path)) as staging:
        done = await decode(staging, masked=5)
        assert (done.portion.after, done.portion.masked) == (None, 5)


@pytest.mark.parametrize("mask", [{"key": "last 4"}, {"headers": {"h": "last 2"}, "bad": "keep"}])
async def test_what_would_be_masked_twice_is_refused(
    tmp_path: Path, mask: dict[str, object]
) -> None:
    entry = ENTRY.model_copy(update={"mask": MaskSettings.model_validate(mask)})
    async with FileStaging(str(tmp_path)) as staging:
        decoder = BadRecordDecoder(staging=staging, decoder_of=json_of)
        with pytest.raises(TableRefused, match="masked again"):
            await decoder.decode(replace(TARGET, entry=entry), BadPortion(ROWS), dry_run=True)


async def test_a_table_that_has_raw_records_by_now_is_refused(tmp_path: Path) -> None:
    async with FileStaging(str(tmp_path)) as staging:
        decoder = BadRecordDecoder(staging=staging)
        with pytest.raises(TableRefused, match="raw records"):
            await decoder.decode(Target("items", "items"), BadPortion(ROWS), dry_run=False)
