"""What is old in partition 0 is passed over, and nothing that matters is."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from binwright.kafka.history import HistoryReader
from binwright.protocol.ports.kafka import Record

KEYS = some.sampled_from([b"report/0", b"report/1", b"hello/0", b"dead/1", b"claim", None])


class Given:
    """A reader of these keys, some at a time."""

    def __init__(self, keys: Sequence[bytes | None], at_once: int) -> None:
        self._records = [Record(offset, 0, key, b"") for offset, key in enumerate(keys)]
        self._at_once, self._end = at_once, len(keys)

    @property
    def position(self) -> int:
        return self._records[0].offset if self._records else self._end

    async def read(self, timeout_s: float) -> Sequence[Record]:
        del timeout_s
        found, self._records = self._records[: self._at_once], self._records[self._at_once :]
        return found

    async def close(self) -> None:
        return


async def passed(keys: Sequence[bytes | None], end: int, at_once: int = 3) -> list[int]:
    reader = HistoryReader(Given(keys, at_once), end)
    found: list[int] = []
    for _ in range(len(keys) + 2):
        found += [record.offset for record in await reader.read(1.0)]
    await reader.close()
    return found


async def test_of_consecutive_reports_only_the_last_is_passed_on() -> None:
    keys = [b"hello/0", b"report/0", b"report/0", b"report/1", b"report/0", b"dead/0", b"report/1"]
    assert await passed(keys, 7, at_once=100) == [0, 4, 5, 6]


async def test_records_after_the_history_are_all_passed_on() -> None:
    assert await passed([b"report/0"] * 6, 3) == [2, 3, 4, 5]


async def test_a_history_whose_end_was_compacted_away_is_passed_on_at_a_silence() -> None:
    assert await passed([b"report/0", b"report/1"], 100) == [0, 1]


@given(some.lists(KEYS, max_size=30), some.integers(0, 30), some.integers(1, 7))
async def test_the_last_records_of_each_slot_are_passed_on(
    keys: list[bytes | None], end: int, at_once: int
) -> None:
    found = await passed(keys, end, at_once)
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
