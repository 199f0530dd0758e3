"""What `binwright calibrate` accepts and prints."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.lab.commands import calibrate
from binwright.lab.timings.capacity import ReadCapacity, StagedBytes, capacity
from binwright.protocol.errors import SettingsError
from binwright.protocol.metadata import MeasuredCapacity
from binwright.protocol.model import BytesPerSecond

READ = capacity("test 1", 32, [StagedBytes(n * 0.1, "a", 10**6) for n in range(80)])
OWN = MeasuredCapacity(bytes_per_s=BytesPerSecond(9.5e6), spread=0.031, used=1.0, seconds=40.0)


def printed(monkeypatch: pytest.MonkeyPatch, read: list[ReadCapacity | None], *options: str) -> str:
    monkeypatch.setattr(calibrate, "run_for_result", lambda _: read)
    done = CliRunner().invoke(app, ["calibrate", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_what_was_read_stands_beside_what_the_consumer_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert READ is not None
    read = [replace(READ, own=OWN), READ, None]
    found = json.loads(printed(monkeypatch, read, "--conditions", "1,landing,3", "--json"))
    assert [row["condition"] for row in found] == ["test 1", "test 1, landing", "test 3"]
    assert found[0]["read, MB/s"] == pytest.approx(10.0, abs=0.2)
    assert found[0]["measured by itself, MB/s"] == 9.5
    assert found[0]["difference"] == pytest.approx(-0.05, abs=0.02)
    assert found[0]["of the paper's"] == pytest.approx(4.2, abs=0.1)
    assert found[1]["measured by itself, MB/s"] is None
    assert {v for name, v in found[2].items() if name != "condition"} == {None}


def test_a_slow_start_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The consumer takes the median of its windows, so it is compared to that of the cycles."""
    slow = [StagedBytes(float(n), "a", 10**6) for n in range(-20, 0)]
    quick = [StagedBytes(n * 0.1, "a", 10**6) for n in range(400)]
    read = capacity("test 1", 32, [*slow, *quick])
    assert read is not None
    (found,) = json.loads(
        printed(monkeypatch, [replace(read, own=OWN)], "--conditions", "1", "--json")
    )
    assert found["read, MB/s"] < 8
    assert found["median, MB/s"] == pytest.approx(10.0, abs=0.1)
    assert found["difference"] == pytest.approx(-0.05, abs=0.01)


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [("4", "expected 1, 2, 3, landing, got '4'"), (" , ", "name at least one")],
)
def test_an_unknown_condition_is_named(conditions: str, reason: str) -> None:
    done = CliRunner().invoke(app, ["calibrate", "--conditions", conditions])
    assert isinstance(done.exception, SettingsError)
    assert reason in str(done.exception)
