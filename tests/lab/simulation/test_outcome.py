"""What a simulation's figures consist of."""

from matplotlib.figure import Figure
from tests.lab.simulation.builders import outcome, scenario

from binwright.lab.simulation.outcome import ConsumerCounts, CountSteps, equal_seconds
from binwright.lab.simulation.report import section, series
from binwright.protocol.model import Slot

FOUND = scenario([[60.0, 0.0], [75.0, 75.0], [75.0, 75.0], [10.0, 10.0], [10.0, 10.0]])
OUTCOMES = [outcome(FOUND, policy) for policy in ("binwright", "mwf", "peak", "optimum")]


def test_a_consumer_costs_from_the_request_to_its_end() -> None:
    counts = ConsumerCounts()
    counts.started(Slot(0), -5.0)
    counts.ready(Slot(0), -1.0)
    counts.started(Slot(1), 10.0)
    counts.ready(Slot(1), 15.0)
    counts.ended(Slot(0), 20.0)
    counts.ended(Slot(1), 40.0)

    assert counts.running(0.0, 30.0) == CountSteps((0.0, 10.0, 20.0), (1, 2, 1), 30.0)
    assert counts.were_ready(0.0, 30.0) == CountSteps((0.0, 15.0, 20.0), (1, 2, 1), 30.0)
    assert counts.running(0.0, 30.0).seconds == 10 + 20 + 10


def test_steps_are_read_at_any_time() -> None:
    steps = CountSteps((0.0, 10.0), (1, 2), 30.0)

    assert steps.at([-1.0, 0.0, 9.9, 10.0, 99.0]) == [0, 1, 1, 2, 2]


def test_equal_seconds_are_counted() -> None:
    assert equal_seconds([1, 2, 2, 3], [1, 2, 3, 3]) == 0.75


def test_a_section_has_a_row_for_each_policy() -> None:
    found = section(FOUND, OUTCOMES, 5.0, price=0.1)

    table = found.tables[0]
    assert [row[0] for row in table.rows] == ["binwright", "mwf", "peak", "optimum"]
    assert table.columns[-1] == "cost"
    assert "optimum: exact in 5 of 5 rows" in table.note
    assert [chart.name for chart in found.charts] == ["consumers", "lag", "latency", "trade-off"]
    assert all(isinstance(chart.figure, Figure) for chart in found.charts)


def test_the_optimum_alone_has_neither_lag_nor_latency() -> None:
    assert [chart.name for chart in section(FOUND, OUTCOMES[-1:], 5.0).charts] == ["consumers"]


def test_the_series_holds_load_consumers_and_lag_of_each_policy() -> None:
    table = series(FOUND, OUTCOMES, 30.0)

    assert table.columns[:4] == (
        "time, s",
        "load, B/s",
        "binwright: consumers",
        "binwright: lag, B",
    )
    assert [row[1] for row in table.rows] == [60.0, 150.0, 150.0, 20.0, 20.0, 20.0]
    assert table.columns[-1] == "optimum: consumers"
