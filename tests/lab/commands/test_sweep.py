"""`binwright lab sweep` recommends settings, and refuses what it cannot sweep."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.protocol.errors import SettingsError

SMALL = ("lab", "sweep", "--rows", "10", "--partitions", "3", "--jobs", "1")


def test_every_combination_on_every_load_is_simulated(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = CliRunner().invoke(
        app,
        [
            *(*SMALL, "--seeds", "2", "--json", "--output", str(tmp_path / "out")),
            *("--vary", "replan_interval_s=30,60", "--vary", "packing=sticky,mwf"),
        ],
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    labels = {row["label"] for row in found["results"]}
    assert len(found["results"]) == 8
    assert len(labels) == 4
    assert found["recommended"]["label"] in labels
    assert found["recommended"]["label"] in found["front"]
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"sweep-candidates.csv", "sweep-results.csv", "sweep-front.svg", "sweep.json"} <= names
    capfd.readouterr()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--vary", "replan_interval_s"), "--vary: expected NAME=VALUE"),
        (("--policies", "nonsense"), "no policy is called nonsense"),
        (("--policies", "optimum"), "none of these simulates how late"),
        (("--table", "results"), "--table: expected delta://PATH"),
    ],
)
def test_what_cannot_be_swept_is_refused(options: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, [*SMALL, "--seeds", "1", *options])
    assert isinstance(done.exception, SettingsError)
    assert message in str(done.exception)
