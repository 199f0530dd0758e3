"""`binwright lab slo` prints tables or JSON, and writes tables and figures."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.lab.slo.report import EQUAL_SLA_COLUMNS
from binwright.protocol.errors import SettingsError, StreamError

FAST = ("--seeds", "1", "--jobs", "1")


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["lab", "slo", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def load(tmp_path: Path) -> Path:
    file = tmp_path / "load.csv"
    file.write_text(
        "rate\n" + "\n".join(str(30 + 3 * min(second, 120 - second)) for second in range(120))
    )
    return file


def test_a_workload_of_ones_own_is_simulated_with_every_policy(load: Path) -> None:
    found = json.loads(run("--workload", str(load), *FAST, "--json"))["tables"]
    rows = {row["policy"]: row for row in found["slo-workload"]["rows"]}

    assert list(rows) == [
        *("Algorithm 1", "Algorithm 1, 10 s apart", "Algorithm 2", "Algorithm 2, 10 s apart"),
        *("Optimal", "Linear", "Overprovision"),
        *("KEDA, lag", "HPA, CPU"),
        *("binwright", "binwright, default", "binwright, incremental"),
    ]
    assert rows["binwright"]["SLA, %"] > 98
    assert len(found["slo-ours"]["rows"]) == 6


def test_the_group_of_a_workload_of_ones_own_can_be_described(load: Path) -> None:
    """Half the work, and twice the time for it: fewer replicas."""
    options = ("--service-ms", "2.5", "--sla-ms", "1000", "--burst-ms", "100", "--partitions", "3")
    usual, light = (
        json.loads(run("--workload", str(load), *FAST, "--json", *more))["tables"]
        for more in ((), options)
    )
    minutes = [
        {row["policy"]: row["replica-minutes"] for row in one["slo-workload"]["rows"]}["binwright"]
        for one in (usual, light)
    ]

    assert minutes[1] < 0.7 * minutes[0]


@pytest.mark.nightly
def test_the_first_workload_has_the_papers_values_and_figures(tmp_path: Path) -> None:
    printed = run("--workload", "w1", *FAST, "--output", str(tmp_path))

    assert "w1: Table 2: workload 1" in printed
    assert "The scaler beside KEDA's lag rule at the same SLA" in printed
    # In a pipe every column is whole, and so is its heading.
    for heading in (*EQUAL_SLA_COLUMNS, "minutes, difference, %", "better in both"):
        assert heading in printed
    assert "CLOSER 2024" in printed
    for number, name in (
        *((4, "latencies-w1"), (5, "consumers"), (9, "heartbeat"), (10, "algorithm-1")),
        *((11, "rebalance-500ms"), (12, "rebalance-2s")),
    ):
        assert (tmp_path / f"slo-fig{number}-{name}.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "slo-w1.csv").open() as file:
        rows = {row["policy"]: row for row in csv.DictReader(file)}
    assert rows["Optimal"]["replica-minutes"] == "32.72"
    assert rows["Overprovision"]["replica-minutes"] == "50.0"
    with (tmp_path / "slo-published.csv").open() as file:
        published = {row["what"]: row for row in csv.DictReader(file)}
    assert published["w1, Algorithm 2: in time"]["published"] == "97.4"
    assert published["w1, Optimal: replica-minutes"]["within"] == "yes"


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (("--workload", "missing.csv"), StreamError, "missing.csv"),
        (("--workload", "w1", "--partitions", "3"), SettingsError, "of your own, not for w1"),
    ],
)
def test_a_wrong_option_is_refused_with_the_reason(
    arguments: tuple[str, ...], error: type[Exception], reason: str
) -> None:
    done = CliRunner().invoke(app, ["lab", "slo", *arguments])

    assert isinstance(done.exception, error)
    assert reason in str(done.exception)
