"""When a fault is over: all is read and written, and what was produced meanwhile has landed."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from tests.chaos.system import System

from binwright.look.group_view import GroupView
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition

POLL_S = 0.1
RECENT = 12
HEALTHY_S = 20.0  # from a record to its row where nothing is wrong, on a busy machine

Condition = tuple[str, Callable[[], bool]]
"""A further condition, as text and as a check."""


def health_problems(view: GroupView, ends: Mapping[TopicPartition, int]) -> list[str]:
    """Return what no ready consumer reads or writes, and partitions not landed up to `ends`."""
    ready = [report for report in view.reports.values() if report.ready]
    read = {p for report in ready for p, offset in report.reading.items() if offset is not None}
    written = {t for report in ready for t, at in report.writing.items() if at.state == "landing"}
    unread = [f"{p} has no reader" for p in sorted(ends) if p not in read]
    unwritten = [
        f"the table {topic} has no writer"
        for topic in sorted({p.topic for p in ends})
        if topic not in written
    ]
    behind = [
        f"{p} has landed up to {view.landed.get(p, 0)} of {end}"
        for p, end in sorted(ends.items())
        if view.landed.get(p, 0) < end
    ]
    return unread + unwritten + behind


async def wait_until_recovered(
    system: System,
    conditions: Sequence[Condition],
    deadline_s: float,
    partitions: Collection[TopicPartition] | None = None,
) -> float:
    """Wait until all that was written up to now has landed and all is read; return how long, s.

    Args:
        system: Where.
        conditions: What must hold, too.
        deadline_s: For all of it.
        partitions: Look at these alone; None: at all.

    Raises:
        ExternalError: The deadline passed; with what is not so, and the last recent.
    """
    began = time.monotonic()
    what = ["the broker returns no end offsets"]
    try:
        async with asyncio.timeout(deadline_s):
            ends = await system.ends(partitions)
            while what:
                what = health_problems(system.view, ends)
                what += [text for text, holds in conditions if not holds()]
                if what:
                    await asyncio.sleep(POLL_S)
    except TimeoutError as exc:
        recent = [text for _, text in list(system.view.recent_events)[-RECENT:]]
        raise ExternalError(
            f"not recovered after {deadline_s:g} s: {what}; before: {recent}"
        ) from exc
    return time.monotonic() - began


async def watch_others_land(
    system: System,
    disturbed: Collection[TopicPartition],
    duration_s: float,
    ended: Callable[[], bool] = lambda: False,
) -> float:
    """Look on for so long, or until it has `ended`: all other partitions must land as usual.

    Returns:
        The longest time from a look at their ends until all of that had landed, s.

    Raises:
        ExternalError: It took longer than `HEALTHY_S`.
    """
    others = set(system.partitions) - set(disturbed)
    until, longest_s = time.monotonic() + duration_s, 0.0
    while time.monotonic() < until and not ended():
        longest_s = max(longest_s, await wait_until_recovered(system, (), HEALTHY_S, others))
        await asyncio.sleep(POLL_S)
    return longest_s
