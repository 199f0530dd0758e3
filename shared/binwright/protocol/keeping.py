"""Which records a table may have no rows of, as properties of the table: an audit must know.

Those that are older than it keeps rows, those without a value where it skips, or skipped, them, and
those that a filter leaves out, or left out. A table of keys has the newest change of each alone.

The property holds the present time. When that changes, rows that an earlier, shorter one deleted
stay deleted: another property has the time since when all were kept.
"""

import json
from collections.abc import Mapping

WHERE = "binwright.where"
"""The property of a table with every filter that it has, or had: JSON, lists of comparisons."""
SKIPPED = "binwright.skipped"
"""The property of a table that has skipped records: `tombstones`."""
PRIMARY_KEY = "binwright.primary_key"
"""The property of a table that has one row of each key: the columns of this, as SQL names them."""
SEQUENCE_BY = "binwright.sequence_by"
"""The property of such a table whose changes are ordered by columns first: these, like it."""
KEEP_S, KEPT_SINCE_MS = "binwright.keep_s", "binwright.kept_since_ms"


def kept_since_ms(properties: Mapping[str, str], now_ms: int) -> int | None:
    """Return since when a table has kept all rows, ms since 1970; None: for ever.

    Args:
        properties: Of the table.
        now_ms: The wall clock.
    """
    since_ms, keep_s = _number(properties, KEPT_SINCE_MS), _number(properties, KEEP_S)
    if keep_s:
        since_ms = max(since_ms, now_ms - round(keep_s * 1000))
    return round(since_ms) or None


def changed_keeping(properties: Mapping[str, str], keep_s: float, now_ms: int) -> dict[str, str]:
    """Return the properties to set so that a table keeps rows for `keep_s`; none, if it does.

    Args:
        properties: Of the table.
        keep_s: Seconds; 0: for ever.
        now_ms: The wall clock.
    """
    if _number(properties, KEEP_S) == keep_s:
        return {}
    since_ms = kept_since_ms(properties, now_ms)
    return {KEEP_S: f"{keep_s:.17g}"} | ({KEPT_SINCE_MS: str(since_ms)} if since_ms else {})


def filters(properties: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return the filters that a table has, or had: the comparisons of each."""
    try:
        return tuple(tuple(map(str, each)) for each in json.loads(properties.get(WHERE, "[]")))
    except (ValueError, TypeError):  # a person wrote something else
        return ()


def changed_filters(properties: Mapping[str, str], where: tuple[str, ...]) -> dict[str, str]:
    """Return the properties to set for a table that has this filter now; none, if they are set."""
    known = filters(properties)
    return {} if not where or where in known else {WHERE: json.dumps([*known, where])}


def _number(properties: Mapping[str, str], name: str) -> float:
    """Return a property's number; 0 for none, and for what a person wrote there."""
    try:
        return max(0.0, float(properties.get(name, 0)))
    except ValueError:
        return 0.0
