"""Why a simulation has, in some seconds, another number of consumers than the live run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

SAME_PLAN_S = 5.0
"""Plans for as many consumers within this time are the same one: it was made sooner or later."""

OTHER_TIME, OTHER_PLAN = "the same plan at another time", "another plan"
LIVE_STARTS, LIVE_ENDS = "a consumer still starts, live", "a consumer still ends, live"
MADE_STARTS, MADE_ENDS = "a consumer still starts, simulated", "a consumer still ends, simulated"


@dataclass(frozen=True, slots=True)
class RunHistory:
    """One run: what was planned, and what came of it."""

    ready: Sequence[int]  # consumers at each whole second, from 0 on
    plans: Sequence[tuple[float, int]]  # when each went ahead, seconds, and its consumers; in order

    def plan_at(self, second: float) -> tuple[float, int]:
        """Return the last plan by then; before the first, one for as many as were ready."""
        before = [plan for plan in self.plans if plan[0] <= second]
        return before[-1] if before else (0.0, self.ready[0])

    def has_plan_like(self, plan: tuple[float, int]) -> bool:
        """Whether there is a plan for as many consumers at about that time."""
        at, consumers = plan
        return any(abs(t - at) <= SAME_PLAN_S and n == consumers for t, n in self.plans)


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds in a row with the same difference."""

    begin: int
    end: int  # the last one
    live: int  # consumers that were ready
    simulated: int
    cause: str


def differences(live: RunHistory, made: RunHistory) -> list[Span]:
    """Return the seconds in which the two have not as many ready consumers, with the cause."""
    spans: list[Span] = []
    for second, (seen, got) in enumerate(zip(live.ready, made.ready, strict=True)):
        if seen == got:
            continue
        span = Span(second, second, seen, got, _cause(live, made, second))
        # As the span before, if that ended a second ago and is equal in all else.
        if spans and spans[-1] == replace(span, begin=spans[-1].begin, end=second - 1):
            spans[-1] = replace(spans[-1], end=second)
        else:
            spans.append(span)
    return spans


def by_cause(spans: Sequence[Span]) -> dict[str, int]:
    """Return cause -> seconds, most first."""
    found = Counter[str]()
    for span in spans:
        found[span.cause] += span.end - span.begin + 1
    return dict(found.most_common())


def _cause(live: RunHistory, made: RunHistory, second: int) -> str:
    ours, theirs = live.plan_at(second), made.plan_at(second)
    if ours[1] != theirs[1]:
        later, other = (ours, made) if ours[0] > theirs[0] else (theirs, live)
        return OTHER_TIME if other.has_plan_like(later) else OTHER_PLAN
    planned = ours[1]
    if (seen := live.ready[second]) != planned:
        return LIVE_STARTS if seen < planned else LIVE_ENDS
    return MADE_STARTS if made.ready[second] < planned else MADE_ENDS
