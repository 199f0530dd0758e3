"""What a group could cost at the least."""

import pytest
from bench.scaling.foreseen import least_minutes


@pytest.mark.parametrize(
    ("share", "replicas"),
    [(1.0, 1 + 3), (0.86, 1 + 3), (0.85, 1 + 2), (0.5, 1 + 1), (0.0, 1 + 1)],
)
def test_the_least_that_anybody_needs_leaves_out_the_replicas_with_the_fewest_records(
    share: float, replicas: int
) -> None:
    """A replica does 100 records of each second within the SLA."""
    assert least_minutes([100, 250], share) == pytest.approx(replicas / 60)
