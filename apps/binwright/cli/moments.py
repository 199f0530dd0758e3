"""Moments as people write them in options; UTC, unless they name another time zone."""

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_moment(text: str, now: datetime, span: re.Pattern[str], *, sign: int) -> datetime:
    """Return the moment that a text means: a span from now on, a date, or a time of today.

    Args:
        text: As `10m`, `2026-11-26T14:02` or `14:02`.
        now: With its time zone.
        span: Matches a span: a number and its unit, of s, m, h and d.
        sign: 1: spans lie ahead; -1: they lie behind.

    Raises:
        ValueError: It is no moment.
        OverflowError: It is too far away.
    """
    if match := span.fullmatch(text):
        return now + sign * timedelta(**{_UNITS[match[2]]: int(match[1])})
    if is_of_today(text):
        text = f"{now.date().isoformat()}T{text}"
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def is_of_today(text: str) -> bool:
    """Whether a text that is no span has no date and time, but one of both: by its form a time."""
    return "T" not in text and " " not in text


def moment_text(at_ms: int) -> str:
    """Return a time, ms since 1970, as people read it: `2026-11-26 14:02:00 UTC`."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
