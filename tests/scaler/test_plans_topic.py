"""Where plans are published."""

from binwright.scaler.plans_topic import plan_partition


def test_a_group_has_the_partition_that_kafkas_producers_choose() -> None:
    """By Java: `Utils.toPositive(Utils.murmur2("21".getBytes())) % 8`, and so on."""
    known = {"21": -973932308, "foobar": -790332482, "abc": 479470107}
    assert {group: plan_partition(group, 8) for group in known} == {
        group: (hashed & 0x7FFFFFFF) % 8 for group, hashed in known.items()
    }
