"""The recommended settings are the cheapest that keep the SLA on every load."""

from binwright.lab.simulation.outcome import Score
from binwright.lab.sweep.points import PointResult
from binwright.lab.sweep.results import candidates, choose


def result(
    label: str, minutes: float, share: float | None, *, load: str = "seed 0", moves: int = 0
) -> PointResult:
    score = Score(
        policy="binwright",
        consumers_mean=minutes / 60,
        consumers_max=2,
        replica_minutes=minutes,
        changes=1,
        moves=moves,
        moved_bytes_per_s=0.0,
        paused_s=0.0,
        lag_max_bytes=0.0,
        p50_s=0.0,
        p90_s=0.0,
        p99_s=0.0,
        within_sla=share,
        cost=None,
    )
    return PointResult(label=label, load=load, score=score)


def test_a_candidate_is_as_good_as_on_its_worst_load() -> None:
    found = candidates([result("a", 100, 1.0), result("a", 200, 0.9, load="seed 1")])
    assert [(one.replica_minutes, one.within_sla, one.loads) for one in found] == [(150, 0.9, 2)]


def test_what_simulates_no_latencies_is_no_candidate() -> None:
    assert [one.label for one in candidates([result("a", 1, 1.0), result("o", 1, None)])] == ["a"]


def test_the_cheapest_that_keeps_the_target_is_recommended() -> None:
    found = candidates(
        [
            result("cheap", 100, 0.9),
            result("good", 120, 0.995),
            result("better", 150, 0.999),
            result("beaten", 160, 0.999),
        ]
    )
    chosen = choose(found, target=0.99, sla_s=5.0)
    assert (chosen.recommended.label, chosen.keeps_target) == ("good", True)
    assert [one.label for one in chosen.front] == ["cheap", "good", "better"]


def test_of_equals_the_one_that_moves_least_is_recommended() -> None:
    found = candidates([result("a", 100, 1.0, moves=9), result("b", 100, 1.0, moves=3)])
    assert choose(found, target=0.99, sla_s=5.0).recommended.label == "b"


def test_where_nothing_keeps_the_target_the_nearest_is_named() -> None:
    found = candidates([result("cheap", 100, 0.5), result("good", 120, 0.8)])
    chosen = choose(found, target=0.99, sla_s=5.0)
    assert (chosen.recommended.label, chosen.keeps_target) == ("good", False)
