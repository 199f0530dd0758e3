"""All experiments on one page, and their files beside it."""

from pathlib import Path

from typer.testing import CliRunner

from binwright.cli.lab.report import EXPERIMENTS
from binwright.cli.main import app


def test_the_report_has_every_experiment_and_its_files(tmp_path: Path) -> None:
    output = tmp_path / "report"
    done = CliRunner().invoke(
        app, ["lab", "report", "--rows", "2", "--jobs", "1", "--output", str(output)]
    )
    assert done.exit_code == 0, done.output
    page = (output / "index.html").read_text()
    assert page.count("<section ") == len(EXPERIMENTS)
    for name, _ in EXPERIMENTS:
        assert list((output / name).glob("*.csv"))
        assert list((output / name).glob("*.svg"))
    assert "Figures 9 to 12" in page
    assert "Figures 5 to 8" in page


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["lab", "report", "--output", str(tmp_path / "file")])
    assert isinstance(done.exception, FileExistsError)
