"""Packings compared on the same streams."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.lab.commands.packing import run_parallel
from binwright.lab.packing.experiments import (
    Experiment,
    PackingOutcome,
    PackingStream,
    compare,
    run_encoded,
    run_experiment,
)
from binwright.protocol.errors import PackingError, SettingsError, StreamError

SOURCE = PackingStream(label="s", partitions=9, rows=12, delta=15, seed=4)


def test_a_generated_stream_is_repeatable_and_has_the_size_asked_for() -> None:
    rows = list(SOURCE.stream())

    assert rows == list(SOURCE.stream())
    assert [len(row) for row in rows] == [9] * 12


def test_the_first_decision_moves_nothing() -> None:
    outcome = run_experiment(Experiment("kd_3", SOURCE))

    assert list(outcome.consumers) == [3] * 12
    assert list(outcome.rscores) == [0.0] * 12
    assert run_experiment(Experiment("mwf", SOURCE)).moves[0] == 0


def test_volatility_is_measured_over_time_not_over_rows() -> None:
    """`sticky` weighs how much rates change in 30 s."""
    source = PackingStream(label="s", partitions=16, rows=25, delta=15)
    short = replace(source, row_s=1.0)

    assert run_experiment(Experiment("sticky", short)) != run_experiment(
        Experiment("sticky", source)
    )
    assert run_experiment(Experiment("mwf", short)) == run_experiment(Experiment("mwf", source))


def test_an_experiment_and_its_outcome_survive_as_json() -> None:
    experiment = Experiment("sticky:0.8", SOURCE)

    assert Experiment.decode(experiment.encode()) == experiment
    assert PackingOutcome.decode(run_encoded(experiment.encode())) == run_experiment(experiment)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_experiment_that_cannot_run_is_refused(jobs: int) -> None:
    with pytest.raises(PackingError, match="no packing is called 'best'"):
        run_parallel([Experiment("best", SOURCE)], lambda _: None, jobs)
    with pytest.raises(StreamError, match="not JSON"):
        run_parallel([Experiment("mwf", PackingStream(label="s", text="["))], lambda _: None, jobs)


def test_cbs_compares_with_the_best_of_the_papers_algorithms() -> None:
    outcomes = [
        PackingOutcome("bfd", "s", 5, [10, 10], [0.0, 4.0], [0, 8]),
        PackingOutcome("mwf", "s", 5, [11, 10], [0.0, 2.0], [0, 4]),
        PackingOutcome("sticky", "s", 5, [9, 10], [0.0, 1.0], [0, 2]),
    ]
    scores = compare(outcomes)

    assert scores[5, "mwf"].cbs == pytest.approx(0.05)
    assert scores[5, "sticky"].cbs == pytest.approx(-0.05)
    assert scores[5, "sticky"].expected_rscore == pytest.approx(0.5)
    assert scores[5, "bfd"].moves == pytest.approx(4)
    assert compare(outcomes[2:])[5, "sticky"].cbs == 0


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["lab", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


SMALL = ("--partitions", "10", "--rows", "8", "--deltas", "5,20", "--jobs", "1")


def test_scores_are_written_as_json_csv_and_plots(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = json.loads(
        run("packing", *SMALL, "--algorithms", "paper,sticky", "--json", "--output", str(out))
    )

    assert len(result) == 2 * 13
    assert json.loads((out / "scores.json").read_text()) == result
    assert len((out / "scores.csv").read_text().splitlines()) == 1 + len(result)
    assert len(json.loads((out / "decisions.json").read_text())) == len(result)
    for name in ("cbs", "rscore", "front"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "recorded" not in (out / f"{name}.svg").read_text()  # that is of 200 partitions


def test_the_dominance_table_names_a_dominating_packing() -> None:
    result = run("packing", *SMALL, "--algorithms", "mwf,bfd,sticky,sticky", "--dominance")

    assert result.count("sticky") >= 2
    assert "dominated by" in result


def test_consumers_are_packed_by_their_own_capacities(tmp_path: Path) -> None:
    file = tmp_path / "stream.json"
    file.write_text('[{"a": {"0": 60, "1": 50, "2": 60}}]')
    arguments = ("packing", "--stream", str(file), "--algorithms", "bfd,sticky", "--json")

    for sizes, consumers in (("100", [3, 3]), ("110", [2, 2]), ("170", [1, 1])):
        result = json.loads(run(*arguments, "--capacities", sizes))
        assert [one["consumers"] for one in result] == consumers


def test_a_recorded_stream_is_read(tmp_path: Path) -> None:
    file = tmp_path / "stream.json"
    file.write_text('[{"a": {"0": 60, "1": 50}}, {"a": {"0": 40, "1": 50}}]')

    result = json.loads(run("packing", "--stream", str(file), "--algorithms", "bfd", "--json"))

    assert result[0]["consumers"] == 1.5
    assert result[0]["delta"] == 20  # the largest step


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (("--algorithms", "best"), PackingError, "no packing is called 'best'"),
        (("--algorithms", ","), SettingsError, "name at least one"),
        (("--deltas", "5;6"), SettingsError, "expected numbers and commas, got '5;6'"),
        (("--capacities", "big"), SettingsError, "--capacities: expected numbers and commas"),
        (("--capacities", "100,0", "--jobs", "1"), PackingError, "got slot 1: 0"),
        (("--stream", "missing.json"), StreamError, "missing.json"),
    ],
)
def test_a_wrong_option_is_refused_with_the_reason(
    arguments: tuple[str, ...], error: type[Exception], reason: str
) -> None:
    done = CliRunner().invoke(app, ["lab", "packing", *arguments])

    assert isinstance(done.exception, error)
    assert reason in str(done.exception)
