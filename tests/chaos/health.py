"""When a fault is over: all is read and written, and what was produced meanwhile has landed."""

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
    """Tell what nobody ready reads or writes, and which partitions have not landed up to `ends`."""
    ready = [report for report in picture.reports.values() if report.ready]
    read = {p for report in ready for p, offset in report.reading.items() if offset is not None}
    written = {t for report in ready for t, at in report.writing.items() if at.state == "landing"}
    unread = [f"{p} is read by nobody" for p in sorted(ends) if p not in read]
    unwritten = [
        f"the table {topic} is written by nobody"
        for topic in sorted({p.topic for p in ends})
        if topic not in written
    ]
    behind = [
        f"{p} has landed up to {picture.landed.get(p, 0)} of {end}"
        for p, end in sorted(ends.items())
        if picture.landed.get(p, 0) < end
    ]
    return unread + unwritten + behind


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
