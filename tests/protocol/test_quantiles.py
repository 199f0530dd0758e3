"""Quantiles of values of unequal weight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.protocol.quantiles import weighted_quantile

WEIGHTED = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0.001, 1e3)), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([(7.0, 1.0)], 0.5, 7.0),
        ([(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)], 0.5, 2.0),
        ([(3.0, 5.0), (1.0, 1.0), (2.0, 1.0)], 0.5, 3.0),
        ([(1.0, 1.0), (2.0, 1.0)], 0.5, 1.0),
        ([(1.0, 1.0), (2.0, 1.0)], 1.0, 2.0),
        ([(1.0, 1.0), (2.0, 1.0)], 0.0, 1.0),
    ],
)
def test_the_weight_decides(
    values: list[tuple[float, float]], share: float, expected: float
) -> None:
    assert weighted_quantile(values, share) == expected


@given(WEIGHTED, st.floats(0, 1))
def test_a_quantile_is_one_of_the_values_and_has_its_share_of_the_weight(
    values: list[tuple[float, float]], share: float
) -> None:
    found = weighted_quantile(values, share)
    total = sum(weight for _, weight in values)
    assert found in {value for value, _ in values}
    assert sum(w for v, w in values if v <= found) >= share * total * (1 - 1e-9)
    assert sum(w for v, w in values if v < found) <= share * total * (1 + 1e-9)
