"""All experiments on one page, and their files beside it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.lab.commands.report import EXPERIMENTS
from binwright.protocol.errors import SettingsError


@pytest.mark.nightly
def test_the_report_has_every_experiment_and_its_files(tmp_path: Path) -> None:
    output = tmp_path / "report"
    done = CliRunner().invoke(
        app,
        [
            *("lab", "report", "--rows", "2", "--jobs", "1", "--output", str(output)),
            *("--only", "latency,packings,simulation"),  # `slo` takes minutes
        ],
    )
    assert done.exit_code == 0, done.output
    page = (output / "index.html").read_text()
    assert page.count("<section ") == len(EXPERIMENTS)  # without one, with the overview
    for name in ("latency", "packings", "simulation"):
        assert list((output / name).glob("*.csv"))
        assert list((output / name).glob("*.svg"))
    assert "Figures 9 to 12" in page
    assert "Figures 5 to 8" in page
    published = (output / "published" / "published-groups.csv").read_text()
    assert "Not run." not in published
    assert "Not run." in (output / "published" / "published-queues.csv").read_text()


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["lab", "report", "--output", str(tmp_path / "file")])
    assert isinstance(done.exception, FileExistsError)


def test_an_experiment_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["lab", "report", "--only", "slo,weather", "--output", str(tmp_path)]
    )
    assert isinstance(done.exception, SettingsError)
    assert str(done.exception).startswith("--only: weather; there are: latency,")
