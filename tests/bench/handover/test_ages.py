"""Which rows count for which phase."""

import pytest
from bench.handover.ages import LandedRow, ages


def test_rows_count_for_the_phase_in_which_they_landed() -> None:
    rows = [LandedRow(1.0, 0.5), LandedRow(2.0, 1.0), LandedRow(3.0, 9.0)]
    found = ages(rows, {"steady": (0.0, 2.0), "bounce": (2.0, 4.0), "growth": (4.0, 5.0)})
    assert found["steady"]["p100"] == pytest.approx(0.5)
    assert found["bounce"] == {"p50": 1.0, "p99": 9.0, "p100": 9.0}
    assert found["growth"]["p50"] is None
