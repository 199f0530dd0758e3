"""What a group saves, in sentences: by the last `binwright shadow own --publish`."""

from binwright.protocol.orders import Savings, SimulatedCost

HOUR_MS = 3_600_000
RULES = {"peak": "than at peak", "lag": "than by KEDA's rule"}


def savings_text(savings: Savings, now_ms: int, adoptable: int | None = None) -> list[str]:
    """Return what the settings saved beside other rules, and the change that would save more.

    Args:
        savings: Of the group.
        now_ms: Wall clock.
        adoptable: Number of the proposed change; None: it cannot be adopted, or is.
    """
    own = savings.own
    hours = (savings.until_ms - savings.from_ms) / HOUR_MS
    ago = max(0.0, now_ms - savings.until_ms) / HOUR_MS
    beside = ", ".join(
        f"{share_text(own, other)} {RULES.get(other.rule, f'than by {other.rule}')}"
        for other in savings.others
    )
    read = f"{own.within_sla:.2%} read within {savings.sla_s:g} s"
    lines = [f"the load of {hours:.1f} h until {ago:.1f} h ago, simulated: {beside}; {read}"]
    if (best := savings.proposed) is not None:
        how = "" if adoptable is None else f" (`binwright group adopt {adoptable}`)"
        lines.append(f"with {best.change} it would have been {share_text(best, own)}{how}")
    return lines


def share_text(one: SimulatedCost, other: SimulatedCost) -> str:
    """Return how many replica-minutes fewer or more one cost takes than another."""
    if not other.replica_minutes:
        return f"{one.replica_minutes:,.0f} replica-minutes instead of none"
    share = one.replica_minutes / other.replica_minutes - 1
    return f"{abs(share):.1%} {'fewer' if share < 0 else 'more'} replica-minutes"
