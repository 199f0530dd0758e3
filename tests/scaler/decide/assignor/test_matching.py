"""Pairs of rows and columns with the largest sum."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as some

from binwright.scaler.decide.assignor.matching import best_pairs

TABLES = some.tuples(some.integers(1, 5), some.integers(1, 5)).flatmap(
    lambda size: some.lists(
        some.lists(some.integers(0, 9), min_size=size[1], max_size=size[1]),
        min_size=size[0],
        max_size=size[0],
    )
)


def largest_sum(kept: list[list[int]]) -> int:
    rows, columns = len(kept), len(kept[0])
    if rows > columns:
        return largest_sum([list(column) for column in zip(*kept, strict=True)])
    return max(
        sum(kept[row][column] for row, column in enumerate(chosen))
        for chosen in permutations(range(columns), rows)
    )


@given(TABLES)
def test_no_other_pairs_keep_more(kept: list[list[int]]) -> None:
    pairs = best_pairs(kept)
    assert sum(kept[row][column] for row, column in pairs.items()) == largest_sum(kept)


@given(TABLES)
def test_the_shorter_side_is_paired_completely(kept: list[list[int]]) -> None:
    pairs = best_pairs(kept)
    assert len(pairs) == len(set(pairs.values())) == min(len(kept), len(kept[0]))


def test_without_rows_there_are_no_pairs() -> None:
    assert best_pairs([]) == {}


def test_equal_rows_take_the_columns_in_order() -> None:
    assert best_pairs([[0, 0, 0], [0, 0, 0]]) == {0: 0, 1: 1}


def test_a_row_gives_way_where_another_one_keeps_more() -> None:
    assert best_pairs([[3, 2], [3, 0]]) == {0: 1, 1: 0}
