"""What a group saves, in sentences."""

from binwright.look.savings_text import savings_text, share_text
from binwright.protocol.orders import Savings, SimulatedCost

HOUR_MS = 3_600_000


def cost(rule: str, minutes: float, change: str = "") -> SimulatedCost:
    return SimulatedCost(rule=rule, change=change, replica_minutes=minutes, within_sla=0.9998)


def test_rules_and_a_change_are_compared_with_the_settings() -> None:
    found = Savings(
        from_ms=0,
        until_ms=24 * HOUR_MS,
        sla_s=5.0,
        own=cost("binwright", 620.0),
        others=(cost("peak", 1000.0), cost("lag", 500.0), cost("cpu", 620.0)),
        proposed=cost("binwright", 608.0, "packing=sticky:4"),
    )
    beside = (
        "38.0% fewer replica-minutes than at peak",
        "24.0% more replica-minutes than by KEDA's rule",
        "0.0% more replica-minutes than by cpu",
    )
    read = "99.98% read within 5 s"
    assert savings_text(found, 27 * HOUR_MS) == [
        f"the load of 24.0 h until 3.0 h ago, simulated: {', '.join(beside)}; {read}",
        "with packing=sticky:4 it would have been 1.9% fewer replica-minutes",
    ]
    assert savings_text(found, 27 * HOUR_MS, 812)[1].endswith(
        "1.9% fewer replica-minutes (`binwright group adopt 812`)"
    )


def test_a_rule_without_consumers_is_no_division_by_zero() -> None:
    assert share_text(cost("binwright", 5.0), cost("peak", 0.0)) == (
        "5 replica-minutes instead of none"
    )
