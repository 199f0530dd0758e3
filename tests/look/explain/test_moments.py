"""Moments and durations, as people write and read them."""

import pytest

from binwright.look.commands.explain import moment
from binwright.look.explain.answers import duration
from binwright.protocol.errors import UserError

NOW = 1_000_000


@pytest.mark.parametrize(
    ("text", "ago_s"),
    [("10m", 600), ("1970-01-01T00:10", 400), ("00:16:00", 40), ("1970-01-01T01:16+01:00", 40)],
)
def test_moments(text: str, ago_s: float) -> None:
    assert moment(text, NOW) == NOW - 1000 * ago_s


@pytest.mark.parametrize("text", ["soon", "25:00", "23:59", "99999999999h"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--at: .*(is no time|is to come)"):
        moment(text, NOW)


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (600, "10 min"), (10_800, "3 h"), (432_000, "5 days")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
