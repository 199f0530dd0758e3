"""Packings side by side over streams."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.core.errors import PackingError, SettingsError, StreamError
from binwright.lab.paper import DELTAS, RECORDED
from binwright.lab.spread import spread
from binwright.lab.trials import Outcome, Source, Trial, compare, play, played

SOURCE = Source(label="s", partitions=9, rows=12, delta=15, seed=4)


def test_a_drawn_stream_is_the_same_each_time_and_has_what_was_asked_for() -> None:
    rows = SOURCE.stream()

    assert rows == SOURCE.stream()
    assert [len(row) for row in rows] == [9] * 12


def test_the_first_decision_moves_nothing_and_each_follows_the_one_before() -> None:
    outcome = play(Trial("kd_3", SOURCE))

    assert list(outcome.consumers) == [3] * 12
    assert list(outcome.rscores) == [0.0] * 12
    assert play(Trial("mwf", SOURCE)).moves[0] == 0


def test_a_trial_and_its_outcome_survive_the_way_as_json() -> None:
    trial = Trial("sticky:0.8", SOURCE)

    assert Trial.decode(trial.encode()) == trial
    assert Outcome.decode(played(trial.encode())) == play(trial)


def test_processes_give_what_one_gives() -> None:
    trials = [Trial(name, SOURCE) for name in ("nf", "mbf", "sticky")]
    told: list[int] = []

    assert spread(trials, told.append, 2) == spread(trials, lambda _: None, 1)
    assert sum(told) == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_cannot_be_played_is_told(jobs: int) -> None:
    with pytest.raises(PackingError, match="no packing is called 'best'"):
        spread([Trial("best", SOURCE)], lambda _: None, jobs)
    with pytest.raises(StreamError, match="not JSON"):
        spread([Trial("mwf", Source(label="s", text="["))], lambda _: None, jobs)


def test_cbs_compares_with_the_paper_s_best_and_not_with_ours() -> None:
    outcomes = [
        Outcome("bfd", "s", 5, [10, 10], [0.0, 4.0], [0, 8]),
        Outcome("mwf", "s", 5, [11, 10], [0.0, 2.0], [0, 4]),
        Outcome("sticky", "s", 5, [9, 10], [0.0, 1.0], [0, 2]),
    ]
    scores = compare(outcomes)

    assert scores[5, "mwf"].cbs == pytest.approx(0.05)
    assert scores[5, "sticky"].cbs == pytest.approx(-0.05)
    assert scores[5, "sticky"].expected_rscore == pytest.approx(0.5)
    assert scores[5, "bfd"].moves == pytest.approx(4)
    assert compare(outcomes[2:])[5, "sticky"].cbs == 0


def test_the_paper_recorded_twelve_algorithms_at_six_deltas() -> None:
    for field in ("cbs", "expected_rscore", "moves"):
        assert [set(found) for found in RECORDED[field].values()] == [set(map(str, DELTAS))] * 12


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["lab", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


SMALL = ("--partitions", "10", "--rows", "8", "--deltas", "5,20", "--jobs", "1")


def test_scores_come_as_json_with_files_and_plots(tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = json.loads(
        run("packing", *SMALL, "--algorithms", "paper,sticky", "--json", "--output", str(out))
    )

    assert len(told) == 2 * 13
    assert json.loads((out / "scores.json").read_text()) == told
    assert len((out / "scores.csv").read_text().splitlines()) == 1 + len(told)
    assert len(json.loads((out / "decisions.json").read_text())) == len(told)
    for name in ("cbs.png", "rscore.png", "front.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")


def test_tables_tell_who_is_beaten() -> None:
    told = run("packing", *SMALL, "--algorithms", "mwf,bfd,sticky,sticky", "--dominance")

    assert told.count("sticky") >= 2
    assert "beaten by" in told


def test_consumers_of_another_size_are_packed_by_theirs(tmp_path: Path) -> None:
    file = tmp_path / "stream.json"
    file.write_text('[{"a": {"0": 60, "1": 50, "2": 60}}]')
    arguments = ("packing", "--stream", str(file), "--algorithms", "bfd,sticky", "--json")

    for sizes, consumers in (("100", [3, 3]), ("110", [2, 2]), ("170", [1, 1])):
        told = json.loads(run(*arguments, "--capacities", sizes))
        assert [one["consumers"] for one in told] == consumers


def test_a_recorded_stream_is_read(tmp_path: Path) -> None:
    file = tmp_path / "stream.json"
    file.write_text('[{"a": {"0": 60, "1": 50}}, {"a": {"0": 40, "1": 50}}]')

    told = json.loads(run("packing", "--stream", str(file), "--algorithms", "bfd", "--json"))

    assert told[0]["consumers"] == 1.5
    assert told[0]["delta"] == 20  # the largest step


def test_the_paper_s_report_has_its_tables_and_pictures(tmp_path: Path) -> None:
    run("paper", "--rows", "1", "--jobs", "2", "--output", str(tmp_path))
    text = (tmp_path / "report.md").read_text()

    assert "| mwf | " in text
    assert "/ 11.81" in text  # MWF's CBS at delta 5, as recorded
    assert "(front.png)" in text
    assert (tmp_path / "front.png").exists()

    even, fronts = (_consumers_of_bfd(tmp_path / name) for name in ("scores.json", "fronts.json"))
    assert fronts == pytest.approx((even + 1 + 100 + 200) / 4)  # all rates 0, 50, 100 per cent


def _consumers_of_bfd(file: Path) -> float:
    found = {(one["delta"], one["algorithm"]): one for one in json.loads(file.read_text())}
    return float(found[0, "bfd"]["consumers"])


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
def test_what_a_person_gets_wrong_is_told(
    arguments: tuple[str, ...], error: type[Exception], reason: str
) -> None:
    done = CliRunner().invoke(app, ["lab", "packing", *arguments])

    assert isinstance(done.exception, error)
    assert reason in str(done.exception)
