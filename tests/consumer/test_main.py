"""The consumer process."""

import pytest

from binwright.consumer.__main__ import main


def test_a_process_has_a_label(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By it a fleet finds its processes."""
    monkeypatch.setenv("BINWRIGHT_MONITOR__INTERVAL_S", "-1")
    assert main(["--slot", "0", "--instance", "g@kafka:9092"]) == 2, "the options are accepted"
    assert "monitor.interval_s" in capsys.readouterr().err
