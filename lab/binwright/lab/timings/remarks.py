"""What was seen, in sentences with the differences in numbers."""

from collections.abc import Iterator

from binwright.lab.timings.distribution import Distribution
from binwright.lab.timings.outcome import Timings, shortfalls, timed
from binwright.lab.timings.paper import CONDITIONS
from binwright.lab.timings.tables import largest_difference


def remarks(found: Timings) -> Iterator[str]:
    """Yield sentences: ours as a share of the paper's, and what the figures do not show."""
    for one in timed(found):
        if one.ours is None or one.paper is None:
            continue
        published = one.paper.quantile(0.5)
        assert published is not None
        ratio = one.ours.quantile(0.5) / published
        yield (
            f"Δt{one.delta}, {one.label}: median {one.ours.quantile(0.5):.2f} s, "
            f"{ratio:.2f} of the paper's {published:g} s"
            + (" (a bin's upper end)." if one.paper.binned else ".")
        )
    if triggers := Distribution.of(trigger.seconds for trigger in found.triggers):
        yield f"{triggers.within(1.0):.0%} of the triggers took 1 s at most."
    if found.changes:
        yield (
            f"{len(found.changes)} changes; {found.unfinished} plans were replaced before they "
            f"were complete, {found.untriggered} plans had no overload."
        )
    for short in shortfalls(found):
        yield (
            f"Δt{short.delta}, {short.label}: {short.events} events of {short.wanted} that were "
            "wanted; the time was over."
        )
    if found.missing:
        yield (
            f"{found.missing} records of the range are compacted away: events among them are "
            "missing."
        )
    if len(found.capacities) > 1:
        names = {one.name for one in found.capacities}
        theirs = [condition for condition in CONDITIONS if condition.name in names]
        yield (
            f"A consumer's mean rates differ by {largest_difference(found.capacities):.1%}, the "
            f"paper's by {largest_difference(theirs):.1%}."
        )
