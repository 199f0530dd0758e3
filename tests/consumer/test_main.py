"""The consumer process."""

import pytest

from binwright.consumer.__main__ import main


@pytest.mark.parametrize("option", ["--instance", "--realm"])
def test_the_label_of_a_process_has_a_deprecated_alias(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """A former controller starts its consumers with `--realm`."""
    monkeypatch.setenv("BINWRIGHT_MONITOR__INTERVAL_S", "-1")
    assert main(["--slot", "0", option, "g@kafka:9092"]) == 2, "the options are accepted"
    assert "monitor.interval_s" in capsys.readouterr().err
