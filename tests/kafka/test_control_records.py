"""Superseded reports in partition 0 are left out, and nothing that matters is."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some
from structlog.testing import capture_logs

from binwright.kafka.control_records import MOST_REASONS, Decoder, HistoryFilter
from binwright.protocol import wire
from binwright.protocol.metadata import decode_inbound
from binwright.protocol.ports.kafka import Record

LONG = "y" * 900_000

KEYS = some.sampled_from([b"report/0", b"report/1", b"hello/0", b"dead/1", b"claim", None])


def passed(keys: Sequence[bytes | None], end: int, at_once: int = 3) -> list[int]:
    """Return the offsets that are passed on of records with these keys, read some at a time."""
    records = [Record(offset, 0, key, b"") for offset, key in enumerate(keys)]
    history = HistoryFilter(end)
    batches = [records[first : first + at_once] for first in range(0, len(records), at_once)]
    return [record.offset for batch in [*batches, []] for record in history.passed(batch)]


def test_of_consecutive_reports_only_the_last_is_passed_on() -> None:
    keys = [b"hello/0", b"report/0", b"report/0", b"report/1", b"report/0", b"dead/0", b"report/1"]
    assert passed(keys, 7, at_once=100) == [0, 4, 5, 6]


def test_records_after_the_history_are_all_passed_on() -> None:
    assert passed([b"report/0"] * 6, 3) == [2, 3, 4, 5]


def test_a_history_whose_end_was_compacted_away_is_passed_on_at_a_silence() -> None:
    assert passed([b"report/0", b"report/1"], 100) == [0, 1]


@given(some.lists(KEYS, max_size=30), some.integers(0, 30), some.integers(1, 7))
def test_the_last_records_of_each_slot_are_passed_on(
    keys: list[bytes | None], end: int, at_once: int
) -> None:
    found = passed(keys, end, at_once)
    for slot in (b"0", b"1"):
        own = [n for n, key in enumerate(keys) if key and key.endswith(b"/" + slot)]
        kept = [n for n in found if n in own]
        assert kept == sorted(kept)
        reports = [
            n
            for n, later in pairwise(own)
            if keys[n] == keys[later] == b"report/" + slot and later < end
        ]
        assert set(own) - set(kept) == set(reports)
    others = [n for n, key in enumerate(keys) if key is None or b"/" not in key]
    assert [n for n in found if n in others] == others


def test_of_unknown_kinds_some_are_kept_and_logged_and_none_whole() -> None:
    """Whoever may write one topic would fill the memory of what reads it, and the log."""
    decoder = Decoder(decode_inbound)
    kinds = [f"x{n}" for n in range(3 * MOST_REASONS)] + [f"{LONG}{n}" for n in range(3)]
    records = [Record(n, 0, b"x", b'{"kind":"%s/1"}' % k.encode()) for n, k in enumerate(kinds)]
    with capture_logs() as logs:
        assert list(decoder.decode(records)) == []
    assert len(logs) == MOST_REASONS
    with capture_logs() as logs:
        long = Decoder(decode_inbound)
        list(long.decode(records[-1:]))
    assert [len(line["reason"]) for line in logs] == [wire.REASON_LENGTH]
    assert {len(reason) for reason in long._logged} == {wire.REASON_LENGTH}


def test_of_what_is_wrong_with_a_record_a_line_is_logged() -> None:
    value = b'{"kind":"report/3","reading":{"%s":1}}' % LONG.encode()
    with capture_logs() as logs:
        list(Decoder(decode_inbound).decode([Record(0, 0, b"x", value)]))
    assert [line["event"] for line in logs] == ["message.malformed"]
    assert len(logs[0]["reason"]) <= wire.REASON_LENGTH
