"""Rows become a table that people read."""

from math import inf
from typing import Any

import pytest
from bench.figures.markdown import table, value


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (None, "-"),
        (True, "yes"),
        (inf, "never"),
        (0.0, "0"),
        (0.04, "0.04"),
        (0.5945191429917388, "0.59"),
        (0.00467, "0.0047"),
        (0.0003, "0.0003"),
        (-0.5, "-0.5"),
        (1.941, "1.94"),
        (22.47, "22.5"),
        (37.0, "37"),
        (3250.4, "3,250"),
        (348_202, "348,202"),
        ("a|b", "a\\|b"),
    ],
)
def test_a_fraction_is_cut_to_the_digits_that_a_measurement_has(given: Any, shown: str) -> None:
    assert value(given) == shown


def test_a_row_without_a_column_of_another_row_has_a_dash_there() -> None:
    assert table([{"side": "ours", "MB/s": 1.0}, {"side": "theirs", "files": 8}]) == (
        "| side | MB/s | files |\n|---|---|---|\n| ours | 1 | - |\n| theirs | - | 8 |"
    )


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        table([])
