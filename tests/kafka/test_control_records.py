"""Superseded reports in partition 0 are left out, and nothing that matters is."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from binwright.kafka.control_records import HistoryFilter
from binwright.protocol.ports.kafka import Record

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
