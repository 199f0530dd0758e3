"""Fetched batches: each record that can be decoded is returned, within bounds of memory."""

import gc
import struct
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import CorruptRecordException
from tests.kafka.batches import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    built,
    checksummed,
    legacy,
    marker,
    stored,
    torn,
)

from binwright.kafka import batches
from binwright.kafka.batches import LARGE_BYTES, Batches, Limits
from binwright.kafka.decoding import FetchResult, PartitionRecords, Watch, watch
from binwright.protocol.ports.kafka import Record, Records
from binwright.testing.records import in_rows

P = KafkaPartition("orders", 0)
CODECS = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])


class Assignment:
    """aiokafka's, as far as a `FetchResult` uses it: one partition, which is not paused."""

    active, paused = True, False

    def __init__(self, position: int) -> None:
        self.tps, self.position = {P}, position

    def state_value(self, _: KafkaPartition) -> "Assignment":
        return self

    def consumed_to(self, position: int) -> None:
        self.position = position


class Fetch:
    """One response of a broker, and what polls take of it."""

    def __init__(
        self,
        *parts: bytes,
        at: int = 0,
        watched: bool = True,
        limit: int = 1 << 26,
        large_before: int = 0,
    ) -> None:
        self.assignment = Assignment(at)
        self.limits = Limits(limit, poll_bytes=1 << 40)
        if watched:
            subscription = SimpleNamespace(assignment=self.assignment)
            consumer = SimpleNamespace(_subscription=SimpleNamespace(subscription=subscription))
            self.watch: Watch = watch(consumer, self.limits)[P]
            self.watch.large_before = large_before
        records = PartitionRecords(P, Batches(b"".join(parts)), None, at, None, None, True, 1)  # noqa: FBT003
        self.result = FetchResult(
            P, assignment=self.assignment, partition_records=records, backoff=0
        )

    def take(self, most: int | None = None) -> list[Record]:
        taken = self.result.getall(most)
        return in_rows([taken]) if isinstance(taken, Records) else taken


def offsets(records: list[Record]) -> list[int]:
    return [record.offset for record in records]


@pytest.mark.parametrize("compression", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_intact_batches_are_decoded_as_by_aiokafka(compression: int) -> None:
    fetch = Fetch(
        stored(5, 3, compression=compression), stored(8, 2, compression=compression), at=6
    )
    found = fetch.take()
    assert [(r.offset, r.value) for r in found] == [(6, b"v1"), (7, b"v2"), (8, b"v0"), (9, b"v1")]
    assert found[0].headers == (("key1", b"x"),)
    assert fetch.watch.fault is None


def test_batches_are_counted_as_stored() -> None:
    """That is the unit of a partition's rate: compressed, where a producer compresses."""
    small, large = stored(5, 3, compression=ZSTD), built([(bytes(100_000), [])] * 5, ZSTD)
    fetch = Fetch(small, large)
    fetch.take()
    assert fetch.limits.stored_bytes == len(small) + len(large)


def test_a_header_key_that_is_not_utf8_is_escaped_and_nothing_is_lost() -> None:
    fetch = Fetch(stored(5, 3, header=b"\xff\xfea1"))
    found = fetch.take()
    assert [(r.offset, r.timestamp_ms, r.key, r.value) for r in found] == [
        (5 + i, 1_000 + i, b"k", b"v%d" % i) for i in range(3)
    ]
    assert [r.headers for r in found] == [
        (("key0", b"x"),),
        (("\\xff\\xfea1", b"x"),),
        (("key2", b"x"),),
    ]
    assert (fetch.watch.escaped, fetch.watch.fault) == ([6], None)


def test_a_corrupt_batch_is_reported_and_records_before_it_are_returned() -> None:
    bad = torn(stored(8, 4))
    fetch = Fetch(stored(5, 3), bad, stored(12, 1))
    assert offsets(fetch.take()) == [5, 6, 7]
    fault = fetch.watch.fault
    assert fault is not None
    assert (fault.offset, fault.next, fault.stored) == (8, 12, bad)
    assert "Invalid CRC" in fault.reason
    assert not fault.out_of_memory


def test_a_field_that_reaches_beyond_its_batch_is_a_fault() -> None:
    """To read there would end the process."""
    content = bytearray(built([(b"v0", [("key0", b"x")]), (b"y" * 10, [])]))
    content[content.index(b"key0")] = 0xFF  # not UTF-8: so aiokafka does not decode the batch
    at = content.index(b"y" * 10)
    content[at - 1 : at + 4] = b"\xfe\xff\xff\xff\x0f"  # the value's size, 2^31 - 1
    fetch = Fetch(checksummed(content))
    assert offsets(fetch.take()) == [0]
    assert fetch.watch.fault is not None
    assert (fetch.watch.fault.offset, fetch.watch.fault.next) == (1, 2)


def test_a_batch_with_a_wrong_end_offset_costs_one_offset() -> None:
    wrong_end = bytearray(stored(5, 3))
    struct.pack_into(">i", wrong_end, 23, 1 << 30)
    fetch = Fetch(bytes(wrong_end), at=5)
    assert not fetch.take()
    assert fetch.watch.fault is not None
    assert (fetch.watch.fault.offset, fetch.watch.fault.next) == (5, 6)


def test_in_an_unwatched_partition_a_corrupt_batch_is_an_error() -> None:
    with pytest.raises(CorruptRecordException):
        Fetch(torn(stored(5, 3)), watched=False).take()


# --- bounds of memory ----------------------------------------------------------------------------


@CODECS
def test_a_batch_that_inflates_beyond_the_limit_is_a_fault_with_its_reason(codec: int) -> None:
    fetch = Fetch(built([(bytes(3_000_000), [])], codec), limit=1_000_000)
    assert not fetch.take()
    assert fetch.watch.fault is not None
    assert "inflates to more than 1,000,000 bytes" in fetch.watch.fault.reason
    assert len(Fetch(built([(bytes(3_000_000), [])], codec), limit=4_000_000).take()) == 1


@CODECS
def test_a_large_batch_is_decoded_only_where_that_is_allowed(codec: int) -> None:
    """It may take more memory than the process has: others must be able to know of it before."""
    large = built([(bytes(LARGE_BYTES), []), (b"last", [])], codec)
    fetch = Fetch(large)
    assert not fetch.take()
    assert fetch.watch.fault is not None
    assert (fetch.watch.fault.large, fetch.watch.fault.next) == (True, 2)
    assert not Fetch(large, large_before=1).take()
    assert offsets(Fetch(large, large_before=2).take()) == [0, 1]
    beyond = Fetch(large, large_before=2, limit=LARGE_BYTES)
    assert not beyond.take()
    assert beyond.watch.fault is not None
    assert not beyond.watch.fault.large


@pytest.mark.parametrize(("magic", "codec"), [(0, GZIP), (0, SNAPPY), (1, GZIP), (1, LZ4)])
def test_a_batch_of_an_old_format_has_the_same_limit(magic: int, codec: int) -> None:
    old = legacy(magic, 3, compression=codec, value=bytes(1_000_000))
    fetch = Fetch(old, limit=1_000_000)
    assert not fetch.take()
    assert fetch.watch.fault is not None
    assert "inflates to more than" in fetch.watch.fault.reason
    assert offsets(Fetch(old, limit=4_000_000).take()) == [0, 1, 2]


def test_a_record_without_a_timestamp_states_so_by_a_number() -> None:
    """Formats before Kafka 0.10 have none; a None among numbers is no column of them."""
    taken = Fetch(legacy(0, 2)).take()
    assert [(r.timestamp_ms, r.timestamp_type) for r in taken] == [(-1, -1), (-1, -1)]


def test_a_poll_takes_no_more_bytes_than_asked_and_the_next_goes_on() -> None:
    """A count of records bounds nothing where each may be as large as a batch."""
    fetch = Fetch(built([(bytes(1_000_000), [])] * 5, ZSTD))
    fetch.limits.poll_bytes = 1_500_000
    assert offsets(fetch.take()) == [0, 1]
    assert (fetch.assignment.position, fetch.watch.passed) == (2, 2)
    assert not fetch.take(), "the poll has its bytes"
    fetch.limits.poll_bytes = 1
    assert offsets(fetch.take()) == [2]
    fetch.limits.poll_bytes = 1 << 30
    assert offsets(fetch.take(1)) == [3]
    assert offsets(fetch.take()) == [4]
    assert not fetch.result.has_more()


def test_a_polls_bytes_include_headers() -> None:
    fetch = Fetch(built([(b"", [("h", bytes(10_000))])] * 5))
    fetch.limits.poll_bytes = 15_000
    assert offsets(fetch.take()) == [0, 1]


@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_record_with_millions_of_headers_is_a_fault(codec: int) -> None:
    """Each header of two bytes becomes several objects."""
    many: list[tuple[str, bytes | None]] = [("", None)] * (batches.MOST_HEADERS + 1)
    fetch = Fetch(built([(b"fine", [("a", b"b")]), (bytes(100), many), (b"behind", [])], codec))
    assert offsets(fetch.take()) == [0]
    assert fetch.watch.fault is not None
    assert (fetch.watch.fault.offset, fetch.watch.fault.next) == (1, 3)
    assert "524,289 headers" in fetch.watch.fault.reason
    assert len(Fetch(built([(bytes(100), many[1:])], codec)).take()) == 1


def test_memory_that_runs_out_is_no_fault_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: Any, **__: Any) -> memoryview:
        raise MemoryError

    monkeypatch.setattr(batches, "inflated", exhausted)
    fetch = Fetch(stored(0, 3, compression=ZSTD))
    assert not fetch.take()
    assert fetch.watch.fault is not None
    assert fetch.watch.fault.out_of_memory


@pytest.mark.parametrize("end", ["taken", "paused", "dropped", "dropped untouched"])
def test_records_are_freed_without_a_garbage_collector(end: str) -> None:
    fetch = Fetch(stored(0, 200), stored(200, 200))
    held = weakref.ref(fetch.result._partition_records)
    gc.disable()
    try:
        if end != "dropped untouched":
            fetch.take(150)
        assert held() is not None
        if end == "taken":
            assert len(fetch.take()) == 250
        elif end == "paused":
            fetch.assignment.paused = True
            fetch.take()
        else:
            del fetch.result
        assert held() is None
    finally:
        gc.enable()


# --- positions -----------------------------------------------------------------------------------


def test_the_position_behind_a_transactions_marker_is_returned() -> None:
    fetch = Fetch(marker(0))
    assert not fetch.take()
    assert (fetch.watch.passed, fetch.watch.fault) == (1, None)


def test_records_of_a_partition_that_was_paused_meanwhile_are_dropped() -> None:
    fetch = Fetch(stored(0, 3))
    fetch.assignment.paused = True
    assert not fetch.take()
    assert not fetch.result.has_more()
    assert fetch.watch.passed is None
