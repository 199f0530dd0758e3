"""Parts of fetched records."""

from binwright.protocol.ports.kafka import Record, Records

RECORDS = Records.of(Record(offset, 0, None, b"v") for offset in (3, 5, 9))


def test_records_are_cut_by_offset() -> None:
    assert RECORDS.since(3) is RECORDS
    assert [*RECORDS.since(4).offsets] == [5, 9]
    assert RECORDS.before(10) is RECORDS
    assert [*RECORDS.before(9).offsets] == [3, 5]
    assert not RECORDS.before(3)


def test_each_part_has_its_share_of_the_bytes() -> None:
    assert RECORDS.before(9).bytes == RECORDS.bytes * 2 // 3
    assert RECORDS.since(9).bytes == RECORDS.bytes // 3
