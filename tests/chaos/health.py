"""When a fault is over: every partition is read, and what was written meanwhile has landed."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from tests.chaos.stage import Stage

from binwright.core.errors import WorldError
from binwright.core.model import TopicPartition
from binwright.lab.picture import Picture

POLL_S = 0.1
NEWS = 12

Condition = tuple[str, Callable[[], bool]]
"""What else must be so, in words and to be asked."""


def lacking(picture: Picture, ends: Mapping[TopicPartition, int]) -> list[str]:
    """Tell which partitions nobody ready holds, or which have not landed up to `ends`."""
    held = {p for report in picture.reports.values() if report.ready for p in report.held}
    unread = [f"{p} is read by nobody" for p in sorted(ends) if p not in held]
    behind = [
        f"{p} has landed up to {picture.landed.get(p, 0)} of {end}"
        for p, end in sorted(ends.items())
        if picture.landed.get(p, 0) < end
    ]
    return unread + behind


async def recovered(stage: Stage, also: Sequence[Condition], deadline_s: float) -> float:
    """Wait until all that was written up to now has landed and all is read; return how long, s.

    Raises:
        WorldError: The deadline passed; with what is not so, and the last news.
    """
    began = time.monotonic()
    what = ["the broker tells no ends"]
    try:
        async with asyncio.timeout(deadline_s):
            ends = await stage.ends()
            while what:
                what = lacking(stage.picture, ends)
                what += [words for words, holds in also if not holds()]
                if what:
                    await asyncio.sleep(POLL_S)
    except TimeoutError as exc:
        news = [words for _, words in list(stage.picture.news)[-NEWS:]]
        raise WorldError(f"not recovered after {deadline_s:g} s: {what}; before: {news}") from exc
    return time.monotonic() - began
