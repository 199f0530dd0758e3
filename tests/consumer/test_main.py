"""The consumer process."""

import json
from pathlib import Path

import pytest

from binwright.consumer.__main__ import main


def test_a_process_has_a_label(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By it a fleet finds its processes."""
    monkeypatch.setenv("BINWRIGHT_MONITOR__INTERVAL_S", "-1")
    assert main(["--slot", "0", "--instance", "g@kafka:9092"]) == 2, "the options are accepted"
    assert "monitor.interval_s" in capsys.readouterr().err


def test_a_process_does_not_start_without_the_secret_of_a_mask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mask = {"key": "sha256", "key_file": str(tmp_path / "none")}
    tables = [{"topics": ["a"], "format": "raw", "mask": mask}]
    monkeypatch.setenv("BINWRIGHT_TABLES", json.dumps(tables))
    assert main(["--slot", "0"]) == 2
    assert "tables.mask.key_file" in capsys.readouterr().err
