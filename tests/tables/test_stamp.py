"""Stamps of commits."""

from dataclasses import replace

import orjson
import pytest
from tests.consumer.decide.land.scene import TABLE, part, stamp

from binwright.tables.ports import Table
from binwright.tables.stamp import later_kind, read_stamp


def test_a_stamp_reads_back() -> None:
    found = stamp({1: 5, 0: 2}, cuts={0: 7}, full=True, needed_from=4)
    assert read_stamp(found.encode(), TABLE) == found


def test_a_stamp_holds_the_files_of_cuts_and_older_ones_have_none() -> None:
    found = replace(stamp({0: 1}, cuts={0: 7}), cut_files={part(0): ("a", "b")})
    assert read_stamp(found.encode(), TABLE) == found
    several = replace(found, several=True)
    assert read_stamp(several.encode(), TABLE) == several
    assert "cut_files" not in orjson.loads(stamp({0: 1}, cuts={0: 7}).encode())


def test_a_stamp_holds_a_pause() -> None:
    found = replace(stamp({0: 1}), paused="by ann")
    assert read_stamp(found.encode(), TABLE) == found


def test_of_a_pause_a_few_words_are_read() -> None:
    text = stamp({0: 1}, paused="x" * 1_000_000).encode()
    found = read_stamp(text, TABLE)
    assert found is not None
    assert len(found.paused) == 400


def test_without_a_pause_a_stamp_is_as_in_versions_that_had_none() -> None:
    assert "paused" not in orjson.loads(stamp({0: 1}).encode())


def test_equal_stamps_are_equal_text() -> None:
    assert stamp({1: 5, 0: 2}).encode() == stamp({0: 2, 1: 5}).encode()


def test_a_stamp_of_a_later_version_is_known_as_such() -> None:
    own, other = stamp({0: 1}).encode(), Table(topic="orders", group="g", cluster="another")
    later = own.replace("stamp/3", "stamp/5")
    assert later_kind(later, TABLE) == "binwright-stamp/5"
    assert (later_kind(later, other), later_kind(own, TABLE)) == ("", "")
    assert later_kind(own.replace("stamp/3", "stamp/2"), TABLE) == ""
    claim = replace(stamp({}), sequence=0).encode()
    assert later_kind(claim.replace("stamp/3", "stamp/5"), TABLE) == ""
    strange = own.replace("binwright-stamp/3", "stamp/9"), own.replace("stamp/3", "stamp/x")
    for text in (None, "", "OPTIMIZE", "[1]", "{}", '{"kind":1}', *strange):
        assert later_kind(text, TABLE) == ""


def test_metadata_of_other_clients_is_not_a_stamp() -> None:
    other = Table(topic="orders", group="g", cluster="another")
    valid = stamp({0: 1}).encode()
    damaged = (valid.replace("stamp/3", "stamp/9"), valid.replace('"0":1', '"zero":1'))
    texts = (None, "", "OPTIMIZE", "[1]", "{}", *damaged)
    assert [read_stamp(text, TABLE) for text in texts] == [None] * 7
    assert read_stamp(valid, other) is None
    assert read_stamp(valid, Table(topic="orders", group="x", cluster=TABLE.cluster)) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("writer", 7),
        ("sequence", "x"),
        ("sequence", True),
        ("sequence", -1),
        ("needed_from", 1 << 63),
        ("needed_from", 1.5),
        ("topic_id", 3),
        ("landing_id", []),
        ("committed", {"0": 1 << 63}),
        ("committed", {"0": None}),
        ("committed", {str(1 << 31): 1}),
        ("committed", {"-1": 1}),
        ("committed", {"\u0661": 1}),
        ("committed", {" 1": 1}),
        ("topic", "../orders"),
        ("topic", ""),
        ("committed", [1]),
        ("cuts", {"0": "1"}),
        ("cut_files", {"0": "a"}),
        ("cut_files", {"0": [1]}),
        ("cut_files", {"x": ["a"]}),
        ("paused", 1),
    ],
)
def test_a_stamp_with_a_wrong_type_or_a_number_out_of_range_is_none(
    field: str, value: object
) -> None:
    fields = {**orjson.loads(stamp({0: 1}).encode()), field: value}
    assert read_stamp(orjson.dumps(fields).decode(), TABLE) is None
