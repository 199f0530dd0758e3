"""When small files are merged, and how many at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.consumer.decide.land.compaction import (
    COPY_CPU_S,
    COPY_MB_CPU_S,
    LONGEST_RETRY_S,
    MB,
    MOST_ROW_GROUPS,
    PORTION_CPU_S,
    RETRY_S,
    REWRITE_CPU_S,
    REWRITE_MB_CPU_S,
    CompactionConfig,
    Mergeable,
    is_due,
    merge_cpu_s,
    mergeable,
    most_of,
    next_portion,
    retry_after_s,
)
from binwright.tables.ports import Compaction, Portion, SmallFiles

CONFIG = CompactionConfig(200)
TINY = MB // 30
sizes = st.lists(st.integers(1, CONFIG.small_bytes - 1), max_size=300)


def rewrite_cpu_s(files: list[int], *, decoded: bool) -> float:
    return REWRITE_CPU_S * len(files) + REWRITE_MB_CPU_S[decoded] * sum(files) / MB


def of(*parts: SmallFiles) -> Mergeable:
    return mergeable(parts, CONFIG)


def test_files_are_merged_with_those_of_their_own_day_and_kind() -> None:
    days = [SmallFiles((MB, MB, MB), day=f"2026-11-{n}") for n in (28, 29)]
    bad = SmallFiles((1_000, 1_000), bad=True)
    alone = SmallFiles((MB,), day="2026-11-27")

    assert of(*days, bad, alone) == Mergeable(files=8, bytes=6 * MB + 2_000, excess=5)


def test_what_fills_several_files_is_merged_into_as_many() -> None:
    assert of(SmallFiles((30 * MB,) * 10)) == Mergeable(10, 300 * MB, excess=7)


def test_two_files_that_do_not_fit_into_one_are_not_merged() -> None:
    narrow = CompactionConfig(1, target_bytes=40 * MB)
    parts = [SmallFiles((30 * MB,) * 10)]

    assert mergeable(parts, narrow) == Mergeable()
    assert next_portion(parts, narrow) is None


def test_a_commit_adds_its_small_files() -> None:
    small = Mergeable().after([MB, 64 * MB], CONFIG)
    assert small == Mergeable(1, MB, excess=0)
    assert small.after([MB, MB], CONFIG) == Mergeable(3, 3 * MB, excess=2)
    assert Mergeable().after([], CONFIG) == Mergeable()


@pytest.mark.parametrize(
    ("small", "due"),
    [
        (Mergeable(120, 120 * TINY, excess=119), False),
        (Mergeable(201, 201 * TINY, excess=200), True),
        (Mergeable(60, 60 * MB, excess=59), False),  # it would be merged again
        (Mergeable(101, 128 * MB, excess=100), True),  # it fills a file
        (Mergeable(10, 310 * MB, excess=7), False),  # to open ten files costs a reader little
    ],
)
def test_a_table_is_due_by_files_and_bytes(small: Mergeable, due: bool) -> None:
    assert is_due(small, "orders", CONFIG) is due


def test_a_compaction_that_has_begun_goes_on_until_little_is_left() -> None:
    much, little = (Mergeable(n + 1, TINY, excess=n) for n in (50, 10))

    assert is_due(much, "orders", CONFIG, begun=True)
    assert not is_due(little, "orders", CONFIG, begun=True)
    assert not is_due(much, "orders", CONFIG)


def test_no_table_is_due_where_that_is_turned_off() -> None:
    assert not is_due(Mergeable(9_999, 9_999 * MB, excess=9_990), "orders", CompactionConfig())


def test_tables_that_began_together_are_due_apart() -> None:
    small = [Mergeable(n + 1, TINY * (n + 1), excess=n) for n in range(201)]
    first = [sum(not is_due(each, f"table-{n}", CONFIG) for each in small) for n in range(50)]

    assert min(first) >= 120
    assert max(first) <= 200
    assert len(set(first)) > 30


def test_a_few_small_files_are_one_portion() -> None:
    part = SmallFiles((TINY,) * 100, day="2026-11-29")

    assert next_portion([part], CONFIG) == Portion(CONFIG.small_bytes, "2026-11-29", excess=99)


def test_a_portion_is_of_the_part_with_most_files_to_merge() -> None:
    rows, bad = SmallFiles((MB,) * 9), SmallFiles((TINY,) * 10, bad=True)

    assert next_portion([rows, bad], CONFIG) == Portion(CONFIG.small_bytes, bad=True, excess=9)
    assert next_portion([], CONFIG) is None


def test_the_smallest_of_many_files_are_merged_first() -> None:
    part = SmallFiles([*(30 * MB - n for n in range(100)), *(TINY - n for n in range(50))])
    portion = next_portion([part], CONFIG)

    assert portion
    merged = [size for size in part.sizes if size < portion.below_bytes]
    assert len(merged) > 50
    assert rewrite_cpu_s(merged, decoded=False) <= PORTION_CPU_S


def test_portions_of_decoded_rows_are_smaller_and_those_of_bad_records_are_not() -> None:
    sizes = [*(MB + n for n in range(100))]
    rows, bad = (
        next_portion([SmallFiles(sizes, bad=b)], CONFIG, decoded=True) for b in (False, True)
    )

    assert rows
    merged = [size for size in sizes if size < rows.below_bytes]
    assert 20 < len(merged) < 100
    assert rewrite_cpu_s(merged, decoded=True) <= PORTION_CPU_S
    assert bad == Portion(CONFIG.small_bytes, bad=True, excess=99)


def test_files_of_the_same_size_are_in_one_portion() -> None:
    assert next_portion([SmallFiles((MB,) * 900)], CONFIG) == Portion(
        CONFIG.small_bytes, excess=892
    )
    mixed = SmallFiles([MB] * 900 + [2 * MB])
    assert next_portion([mixed], CONFIG) == Portion(2 * MB, excess=893)


def test_a_portion_that_would_merge_nothing_takes_more() -> None:
    """Two files of which each takes longer than a portion are merged all the same."""
    config = CompactionConfig(1, small_bytes=1_000 * MB, target_bytes=4_000 * MB)
    portion = next_portion([SmallFiles((500 * MB, 501 * MB, 502 * MB))], config)

    assert portion == Portion(502 * MB, excess=2)


def test_a_merge_leaves_what_it_has_not_merged() -> None:
    small = Mergeable(200, 100 * MB, excess=199)

    assert small.merged(Compaction(150, 1, 10 * MB, 9 * MB), CONFIG) == Mergeable(51, 99 * MB, 50)
    assert small.merged(Compaction(100, 1, 60 * MB, 60 * MB), CONFIG) == Mergeable(
        101, 40 * MB, 100
    )
    assert small.merged(Compaction(200, 1, 100 * MB, 90 * MB), CONFIG) == Mergeable()


@given(sizes)
def test_portions_come_to_an_end_and_leave_nothing_to_merge(files: list[int]) -> None:
    rounds = 0
    while (portion := next_portion([SmallFiles(files)], CONFIG)) is not None:
        taken = sorted(size for size in files if size < portion.below_bytes)
        files = [size for size in files if size >= portion.below_bytes]
        before = len(taken)
        merged: list[int] = []
        for size in taken:  # as Delta does
            if merged and merged[-1] + size <= CONFIG.target_bytes:
                merged[-1] += size
            else:
                merged.append(size)
        assert len(merged) < before, "each portion merges something"
        files += [size for size in merged if size < CONFIG.small_bytes]
        rounds += 1
        assert rounds <= 300
    assert mergeable([SmallFiles(files)], CONFIG).excess == 0


@dataclass
class LiveTable:
    """A table whose maintenance is that of `TableMaintenance` and `SparkLake`, without the rest.

    Of a file there are its size and its row groups; one of `None` cannot be copied.
    """

    files: list[tuple[int, int | None]] = field(default_factory=list)
    cpu_s: float = 0.0
    turns: int = 0
    begun: bool = False

    @property
    def excess(self) -> int:
        return mergeable([SmallFiles([size for size, _ in self.files])], CONFIG).excess

    def maintain(self) -> None:
        """Take a turn if it is due."""
        small = mergeable([SmallFiles([size for size, _ in self.files])], CONFIG)
        self.begun = is_due(small, "orders", CONFIG, begun=self.begun)
        portion = next_portion([SmallFiles([f for f, _ in self.files])], CONFIG, decoded=True)
        if not self.begun or portion is None:
            return
        self.turns += 1
        before = len(self.files)
        copied = done = self._copy()
        if not most_of(copied, portion):
            done += self._rewrite(portion)
        assert len(self.files) < before, "each turn merges something"
        left = small.merged(done, CONFIG)
        self.begun = is_due(left, "orders", CONFIG, begun=done.copied < done.removed)

    def _copy(self) -> Compaction:
        """Fill files with row groups, in order of size, as `merge_files` does."""
        own = [f for f in self.files if f[1] is not None and f[1] <= MOST_ROW_GROUPS * 7 // 8]
        bins: list[tuple[int, int]] = []
        for size, groups in sorted(own, reverse=True)[:400]:
            assert groups
            room = next((n for n, b in enumerate(bins) if b[1] + groups <= MOST_ROW_GROUPS), None)
            if room is None:
                bins.append((size, groups))
            else:
                bins[room] = (bins[room][0] + size, bins[room][1] + groups)
        taken = sorted(own, reverse=True)[:400]
        return self._replaced(taken, bins, COPY_CPU_S, COPY_MB_CPU_S, copied=len(taken))

    def _rewrite(self, portion: Portion) -> Compaction:
        taken = [f for f in self.files if f[0] < portion.below_bytes]
        size = sum(size for size, _ in taken)
        return self._replaced(taken, [(size // 3, 1)], REWRITE_CPU_S, REWRITE_MB_CPU_S[True])

    def _replaced(
        self,
        taken: Sequence[tuple[int, int | None]],
        added: Iterable[tuple[int, int]],
        file_cpu_s: float,
        mb_cpu_s: float,
        *,
        copied: int = 0,
    ) -> Compaction:
        added = [*added]
        if len(added) == len(taken):
            return Compaction(0, 0)
        size = sum(size for size, _ in taken)
        self.cpu_s += 1.0 + file_cpu_s * len(taken) + mb_cpu_s * size / MB  # with the list of files
        for file in taken:
            self.files.remove(file)
        self.files += added
        written = sum(size for size, _ in added)
        return Compaction(len(taken), len(added), size, written, copied=copied)


@pytest.mark.parametrize("kind", [MOST_ROW_GROUPS, None])
@pytest.mark.parametrize("landing", [0, 3, 30])
def test_small_files_that_cannot_be_copied_are_rewritten_and_a_compaction_ends(
    kind: int | None, landing: int
) -> None:
    """Although what lands in the meantime can be copied."""
    sizes = [10 * MB - n for n in range(150)]
    table = LiveTable([(size, kind) for size in sizes])
    while True:
        table.maintain()
        if not table.begun:
            break
        table.files += [(TINY, 1)] * landing
        assert table.turns < 150

    assert table.excess < CONFIG.files / 2
    assert table.cpu_s < 1.5 * rewrite_cpu_s(sizes, decoded=True) + 3 * table.turns


@pytest.mark.parametrize("landing", [1, 3, 40])
def test_a_live_table_is_merged_at_a_bounded_cost_and_never_has_many_small_files(
    landing: int,
) -> None:
    table, landed = LiveTable(), 0
    while landed < 10_000:
        table.files += [(TINY, 1)] * landing
        landed += landing
        table.maintain()
        assert table.excess < CONFIG.files + landing

    once = rewrite_cpu_s([TINY] * landed, decoded=True)
    assert table.cpu_s < 1.5 * once
    assert table.turns < landed / 30
    full = [size for size, groups in table.files if groups == MOST_ROW_GROUPS]
    assert len(full) < CONFIG.files / 2


def test_merging_costs_by_files_and_bytes_and_large_files_nothing() -> None:
    small = CONFIG.small_bytes
    assert merge_cpu_s([1] * 100, small) == pytest.approx(100 * COPY_CPU_S, rel=0.01)
    assert merge_cpu_s([10 * MB], small) > merge_cpu_s([MB], small)
    assert merge_cpu_s([small], small) == 0


def test_rows_of_tiny_row_groups_are_written_again_once_they_are_merged() -> None:
    """As many row groups as a file has at most make a small one of them."""
    small = CONFIG.small_bytes
    tiny, larger = (merge_cpu_s([size] * 20, small, decoded=True) for size in (MB // 17, MB // 16))
    assert tiny > larger + REWRITE_MB_CPU_S[True]


def test_what_fails_again_and_again_is_tried_less_often() -> None:
    assert [retry_after_s(n) for n in (1, 2, 3)] == [RETRY_S, 2 * RETRY_S, 4 * RETRY_S]
    assert retry_after_s(5_000) == LONGEST_RETRY_S


def test_what_compactions_did_adds_up() -> None:
    both = Compaction(9, 1, 90, 80, copied=9) + Compaction(5, 2)
    assert both == Compaction(14, 3, 90, 80, copied=9)
