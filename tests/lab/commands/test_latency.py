"""`binwright lab latency`, as a user runs it."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from binwright.cli.main import app
from binwright.protocol.errors import PackingError, SettingsError, StreamError

SMALL = ("--partitions", "8", "--rows", "6", "--jobs", "1")
RECORDED = Path(__file__).parents[4] / "shared" / "data" / "measurements_5.json"
FIGURES = [f"latency-figure-{number}" for number in (5, 6, 7, 8)]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["lab", "latency", *arguments])


def run(*arguments: str) -> Result:
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    return done


def test_json_alone_is_on_standard_output() -> None:
    done = run(*SMALL, "--algorithms", "mwf,kd_3", "--json")
    found = json.loads(done.stdout)

    assert [one["algorithm"] for one in found["packings"]] == ["mwf", "kd_3"]
    assert found["model"] == {"limit": 133.0, "interval_s": 30.0, "rebalance_s": 5.0}
    assert found["recorded"] is False
    assert "packings" in done.stderr  # the progress bar


def test_the_parameters_are_those_of_the_options() -> None:
    options = ("--limit", "200", "--interval-s", "60", "--rebalance-s", "3")
    found = json.loads(run(*SMALL, *options, "--algorithms", "mwf", "--json").stdout)

    assert found["model"] == {"limit": 200.0, "interval_s": 60.0, "rebalance_s": 3.0}
    assert found["packings"][0]["max_s"] == 3


def test_ours_and_the_published_values_are_printed() -> None:
    text = " ".join(run(*SMALL, "--algorithms", "kafka,paper,sticky").stdout.split())

    assert "kd_32 32.00" not in text  # eight partitions: eight consumers at most
    assert "sticky" in text
    assert "mwf: p90 of samples > 0, in the text s 4.52 4.51" in text
    assert "arXiv 2402.06085" in text
    assert "Figure 5" not in text.replace("Figures 5 to 8", "")  # a stream of another size


def test_files_are_written_the_same_each_time(tmp_path: Path) -> None:
    # The paper's size, so that published values stand beside ours.
    arguments = ("--algorithms", "kd_15,kd_27,mwf", "--jobs", "1", "--output")
    for name in ("one", "two"):
        run(*arguments, str(tmp_path / name))
    files = sorted(file.name for file in (tmp_path / "one").iterdir())

    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    for name in FIGURES:
        assert (tmp_path / "one" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "published, recorded stream" in (tmp_path / "one" / f"{name}.svg").read_text() or (
            name == FIGURES[0]
        )
    with (tmp_path / "one" / "latency-published.csv").open() as file:
        rows = list(csv.DictReader(file))
    longest = [row["what"] for row in rows if row["figure"] == "Figure 5"]
    assert longest == ["kd_15: longest", "kd_27: longest", "mwf: longest"]
    assert "| kd_15 |" in (tmp_path / "one" / "latency.md").read_text()


def test_a_recorded_stream_is_read(tmp_path: Path) -> None:
    file = tmp_path / "stream.json"
    file.write_text('[{"a": {"0": 60, "1": 90}}, {"a": {"0": 60, "1": 90}}]')
    arguments = ("--stream", str(file), "--algorithms", "kd_1", "--json")
    (found,) = json.loads(run(*arguments).stdout)["packings"]

    assert found["total"] == 30 * 150
    assert found["max_s"] == pytest.approx(30 * (150 / 133 - 1), rel=0.01)


def test_bytes_that_the_model_cannot_read_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "stream.json"
    file.write_text('[{"a": {"0": 140}}, {"a": {"0": 140, "1": 10}}]')
    arguments = ("--stream", str(file), "--algorithms", "kd_1", "--output", str(tmp_path))
    (found,) = json.loads(run(*arguments, "--json").stdout)["packings"]

    assert found["unread"] == 300
    with (tmp_path / "latency.csv").open() as table:
        assert next(csv.DictReader(table))["unread"] == "300"


def test_the_recorded_stream_of_the_paper_has_differences(tmp_path: Path) -> None:
    if not RECORDED.exists():
        pytest.skip(f"the paper's recorded stream has no licence and is not here: {RECORDED}")
    arguments = ("--stream", str(RECORDED), "--algorithms", "kd_15,mwf")
    run(*arguments, "--jobs", "1", "--output", str(tmp_path))

    with (tmp_path / "latency-published.csv").open() as file:
        rows = {row["what"]: row for row in csv.DictReader(file)}
    assert rows["kd_15: p90 of samples > 0"]["ours"] == "217.325"
    ours = [row for what, row in rows.items() if what.startswith("kd_15: ")]
    assert {float(row["difference"]) for row in ours} == {0.0}


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (("--algorithms", "best"), PackingError, "no packing is called 'best'"),
        (("--histogram", "best"), PackingError, "no packing is called 'best'"),
        (("--algorithms", ","), SettingsError, "--algorithms: name at least one"),
        (("--limit", "0"), SettingsError, "the latency model needs a limit"),
        (("--stream", "missing.json"), StreamError, "missing.json"),
    ],
)
def test_a_wrong_option_is_refused_with_the_reason(
    arguments: tuple[str, ...], error: type[Exception], reason: str
) -> None:
    done = invoke(*arguments)

    assert isinstance(done.exception, error)
    assert reason in str(done.exception)
