"""Nothing unvalidated reaches a path or SQL."""

import orjson
import pytest

from binwright.protocol import wire
from binwright.protocol.commands import StartWriting, decode_command
from binwright.protocol.errors import MalformedMessage
from binwright.protocol.landing import OffsetRange, Staged, decode_staged
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import (
    bad_file,
    batch_name,
    group_name,
    is_bad_file,
    is_lease,
    is_mark,
    is_portion,
    is_staged_file,
    is_topic_name,
    lease_name,
    mark_name,
    portion_name,
    staged_by,
    table_name,
)

BAD = ["", ".", "..", "../../finance/pay", "a/b", "x' LOCATION 's3a://other' --", "a" * 256, "ä"]
STAGED = Staged(
    topic="orders",
    topic_id=None,
    file="0-1-1-0a1b2c3d.parquet",
    rows=1,
    bytes=9,
    ranges={TopicPartition("orders", 0): OffsetRange(0, 1)},
    slot=0,  # type: ignore[arg-type]
    epoch=1,
)


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("field", ["topic", "file"])
def test_an_announcement_with_such_a_name_is_malformed(field: str, name: str) -> None:
    assert decode_staged(wire.encode(STAGED)) == STAGED
    fields = {**orjson.loads(wire.encode(STAGED)), field: name}
    with pytest.raises(MalformedMessage, match=field):
        decode_staged(orjson.dumps(fields))


@pytest.mark.parametrize("name", BAD)
def test_a_command_about_such_a_table_is_malformed(name: str) -> None:
    command = wire.encode(StartWriting(term=1, revision=1, epoch=1, tables=("orders",)))
    with pytest.raises(MalformedMessage, match="tables"):
        decode_command(command.replace(b'"orders"', orjson.dumps(name)))


@pytest.mark.parametrize("name", BAD)
def test_a_group_with_such_a_name_is_refused(name: str) -> None:
    assert group_name("team-a.orders") == "team-a.orders"
    with pytest.raises(ValueError, match="a group's name"):
        group_name(name)


@pytest.mark.parametrize("text", ["../x-0", "..-0", "orders-2147483648", "orders-99999999999999"])
def test_a_partition_that_kafka_cannot_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"name|number"):
        TopicPartition.parse(text)


def test_the_highest_partition_is_one() -> None:
    assert TopicPartition.parse("orders-2147483647").partition == 2**31 - 1


@pytest.mark.parametrize("name", ["0-1-1-0a1b2c3d.parquet", "12-3456-7-00000000.parquet"])
def test_names_that_consumers_give_are_those_of_staged_files(name: str) -> None:
    assert is_staged_file(name)
    for other in (f"{name}.crc", f"x{name}", name.replace("-", "_"), "part-0.parquet"):
        assert not is_staged_file(other)


def test_the_file_beside_a_staged_one_is_none_itself() -> None:
    name = bad_file("12-3456-7-00000000.parquet")
    assert name == "12-3456-7-00000000.bad.parquet"
    assert is_bad_file(name)
    assert not is_staged_file(name)
    for other in ("12-3456-7-00000000.parquet", "a.bad.parquet", f"{name}.crc"):
        assert not is_bad_file(other)


def test_digits_of_other_scripts_are_in_no_name_of_ours() -> None:
    ours = "12-345-67-89abcdef.parquet", f"lease-{'a' * 32}-7.parquet", mark_name(1, 2, 3, 1)
    for name in ours:
        for digit in "127":
            if digit in name:
                other = name.replace(digit, chr(0x660 + int(digit)))
                assert [check(other) for check in (is_staged_file, is_lease, is_mark)] == [
                    False
                ] * 3


def test_the_name_of_a_staged_file_names_its_consumer() -> None:
    assert staged_by("12-345-67-89abcdef.parquet") == (12, 345)


def test_a_lease_is_neither_a_staged_file_nor_a_name_of_others() -> None:
    lease = lease_name("0a1b2c3d" * 4, 1)
    assert is_lease(lease)
    assert not is_staged_file(lease)
    for other in (f"x{lease}", lease.upper(), "lease-1.parquet", "0-1-1-0a1b2c3d.parquet"):
        assert not is_lease(other)


def test_marks_of_large_batches_differ_from_staged_files_and_kept_batches() -> None:
    mark, kept = mark_name(3, 5, 0xABC, 2), batch_name(3, 5, 0xABC)
    assert (mark, kept) == ("large-3-5-00000abc-2.mark", "undecodable-3-5-00000abc.batch")
    assert [is_mark(mark), is_mark(kept), is_mark(f"x{mark}")] == [True, False, False]
    assert not is_staged_file(mark)
    assert not is_staged_file(kept)


@pytest.mark.parametrize("name", BAD)
def test_a_directory_that_kafka_cannot_have_as_a_topic_is_none(name: str) -> None:
    assert not is_topic_name(name)
    assert is_topic_name("orders")


@pytest.mark.parametrize(("name", "valid"), [("a.b_C-9", True), ("..", False), ("x" * 250, False)])
def test_names_of_topics_differ_from_others(name: str, valid: bool) -> None:
    assert is_topic_name(name) == valid


@pytest.mark.parametrize(
    "name", [*BAD, "_staging", "_delta_log", "a__bad", "a__erased", "a__deleted", "x" * 245]
)
def test_a_table_has_no_name_of_a_directory_of_ours_or_of_bad_records(name: str) -> None:
    with pytest.raises(ValueError, match=r"name"):
        table_name(name)
    assert table_name("orders_raw.v-2") == "orders_raw.v-2"


def test_what_a_writer_stages_itself_is_no_staged_file() -> None:
    """A reader would announce it again as all records of its offsets, and others lie between."""
    name = portion_name("0" * 32)
    assert is_portion(name)
    assert not any(of(name) for of in (is_staged_file, is_bad_file, is_lease))
    assert not is_portion(STAGED.file)
    assert is_bad_file(bad_file(name))
