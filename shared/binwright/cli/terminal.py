"""Sizes and short charts as text for a terminal."""

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"


def megabytes(size: float) -> str:
    """Return bytes (or bytes/s) as text in MB."""
    return f"{size / 1e6:,.2f} MB"


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the last `width` values as bars, the highest as a full bar."""
    shown = values[-width:]
    highest = max(shown, default=0.0)
    if not highest:
        return BARS[0] * len(shown)
    return "".join(BARS[min(int(value / highest * len(BARS)), len(BARS) - 1)] for value in shown)


def peaks(counts: Sequence[int], width: int = 60) -> str:
    """Return numbers over time as bars, the highest of each interval, none for 0."""
    step = max(1, -(-len(counts) // width))
    highest = [max(counts[i : i + step]) for i in range(0, len(counts), step)]
    return "".join(f" {BARS}"[round(peak * len(BARS) / max(*counts, 1))] for peak in highest)
