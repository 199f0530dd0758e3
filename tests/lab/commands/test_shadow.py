"""`binwright shadow rank`, as a person runs it."""

import json
from pathlib import Path

import pytest
import yaml
from tests.lab.shadow.builders import busy, recorded_group, steady, write
from typer.testing import CliRunner

from binwright.cli.main import app

KEDA = """
kind: ScaledObject
metadata: {name: orders-keda}
spec:
  scaleTargetRef: {name: billing}
  triggers: [{type: kafka, metadata: {consumerGroup: GROUP, lagThreshold: "2000"}}]
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("shadow") / "groups.jsonl"
    write(
        file,
        recorded_group("orders", busy(500, 3_000), steady(4)),
        recorded_group("late", busy(500, 2_500), steady(2)),
        recorded_group("idle", steady(0), steady(2)),
    )
    return file


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["shadow", "rank", *arguments, "--jobs", "1"])
    assert done.exit_code == code, done.output
    return done.stdout


def test_groups_are_ranked_and_what_is_not_known_is_named(recording: Path) -> None:
    shown = run(str(recording))
    rows = [line.split() for line in shown.splitlines()]
    assert [row[0] for row in rows[1:3]] == ["orders", "late"]
    assert "≥" in rows[1]
    assert "≥" not in rows[2]
    assert "--capacity GROUP=RECORDS_PER_S" in shown
    assert "Not compared: idle: it has read nothing." in shown


def test_everything_is_there_for_programs(recording: Path) -> None:
    found = json.loads(run(str(recording), "--json", "--capacity", "orders=2000"))
    first, second = found["groups"]
    assert first["capacity"] == {"records_per_s": 2_000.0, "basis": "given"}
    assert second["capacity"]["basis"] == "measured"
    assert first["costs"]["as_is"]["replica_minutes"] == pytest.approx(4 * 3_590 / 60)
    assert first["saved_replica_minutes"] > 0
    assert second["within_as_committed"] < 0.7
    assert found["others"] == {"it has read nothing": ["idle"]}


def test_objects_are_written_and_nothing_is_replaced(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "keda").mkdir()
    for name, group in (("a.yaml", "orders"), ("b.yml", "unrecorded")):
        (tmp_path / "keda" / name).write_text(KEDA.replace("GROUP", group))
    out = tmp_path / "objects"
    options = (str(recording), "--keda", str(tmp_path / "keda"), "--write", str(out))
    run(*options)
    found = {file.name: yaml.safe_load(file.read_text()) for file in out.iterdir()}
    assert {name: one["spec"]["group"] for name, one in found.items()} == {
        "orders.yaml": "orders",
        "late.yaml": "late",
        "unrecorded.yaml": "unrecorded",
    }
    assert found["orders.yaml"]["spec"]["workload"]["name"] == "billing"
    assert found["orders.yaml"]["spec"]["beforeReplicas"] == 4.0
    before = (out / "orders.yaml").read_text()
    run(*options, code=1)
    assert (out / "orders.yaml").read_text() == before


@pytest.mark.parametrize("capacity", ["orders=", "orders=-4", "many", "orders=inf"])
def test_a_capacity_that_is_none_is_refused(recording: Path, capacity: str) -> None:
    run(str(recording), "--capacity", capacity, code=1)


def test_other_files_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kind: {")
    run(str(other), code=1)
    run(str(tmp_path / "none"), code=1)
    run(str(other), "--keda", str(other), code=1)
