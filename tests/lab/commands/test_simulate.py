"""`binwright lab simulate`, as a person runs it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.lab.commands.conditions import variants
from binwright.runtime.settings.programs import FILE_VARIABLE

SMALL = ("--partitions", "6", "--rows", "6", "--delta", "20", "--jobs", "1")


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["lab", "simulate", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.nightly
def test_policies_are_compared_as_json_and_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = json.loads(run(*SMALL, "--json", "--price", "0.5", "--output", str(out)))

    policies = {score["policy"]: score for score in found["policies"]}
    assert {"binwright", "mwf", "peak", "optimum"} <= policies.keys()
    assert 0 < policies["binwright"]["cost"] <= policies["peak"]["cost"]
    assert policies["binwright"]["replica_minutes"] >= policies["optimum"]["replica_minutes"]
    assert json.loads((out / "policies.json").read_text()) == found
    for name in ("policies.csv", "series.csv", "changes.csv", "consumers.svg", "latency.png"):
        assert (out / name).stat().st_size > 0


def test_settings_are_tried_side_by_side() -> None:
    found = json.loads(
        run(*SMALL, "--json", "--policies", "binwright,peak", "--vary", "replan_interval_s=5,900")
    )

    assert [score["policy"] for score in found["policies"]] == [
        *("binwright", "binwright replan_interval_s=5", "binwright replan_interval_s=900", "peak")
    ]


def test_a_limit_that_is_tried_does_not_change_what_consumers_sustain() -> None:
    """A limit twice as high packs more into each consumer, and lag shows that it is wrong."""
    limits = ("--vary", "limit_bytes_per_s=5000000", "--delta", "0", "--rows", "20")
    found = json.loads(run(*SMALL, *limits, "--json", "--policies", "binwright"))

    base, doubled = found["policies"]
    assert doubled["consumers_mean"] < base["consumers_mean"]
    assert base["lag_max_bytes"] == 0.0 < doubled["lag_max_bytes"]


def test_settings_of_files_are_read_without_changing_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for number, file in enumerate(files, start=1):
        file.write_text(f"[controller]\nlimit_bytes_per_s = {number}000000\n")
    monkeypatch.setenv(FILE_VARIABLE, str(files[1]))
    found = variants(files, ["packing=mwf"], None)

    assert [variant.label for variant in found] == ["a.toml", "b.toml", "packing=mwf"]
    assert [v.settings.controller.limit_bytes_per_s for v in found] == [1e6, 2e6, 1e6]
    assert found[2].settings.controller.packing == "mwf"
    assert variants([], [], None)[0].settings.controller.limit_bytes_per_s == 2e6


def test_a_capacity_keeps_the_settings_ratio_to_the_limit() -> None:
    controller = variants([], [], 1_000.0)[0].settings.controller

    assert controller.capacity == 1_000.0
    assert controller.limit_bytes_per_s == pytest.approx(1_200.0)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--policies", "best"), "no policy is called best; there are: binwright"),
        (("--policies", ","), "--policies: name at least one"),
        (("--vary", "packing"), "--vary: expected NAME=VALUE"),
        (("--vary", "colour=red"), "controller.colour"),
        (("--vary", "packing=best"), "no packing is called 'best'"),
        (("--stream", "/no/such/file"), "No such file"),
        (("--interval", "0"), "a row must last"),
    ],
)
def test_faults_are_refused_before_anything_runs(arguments: tuple[str, ...], fault: str) -> None:
    done = CliRunner().invoke(app, ["lab", "simulate", *SMALL, *arguments])

    assert done.exit_code != 0
    assert fault in f"{done.output} {done.exception}"
