"""The monitor process."""

import pytest

from binwright.monitor.__main__ import main, run
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.monitor import MonitorSettings


async def test_without_topics_the_error_names_the_settings() -> None:
    with pytest.raises(SettingsError) as caught:
        await run(Settings(monitor=MonitorSettings(groups=False)))
    assert "topics = [" in str(caught.value)
    assert "BINWRIGHT_TOPICS='[" in str(caught.value)


def test_invalid_settings_end_with_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BINWRIGHT_MONITOR__INTERVAL_S", "-1")
    assert main([]) == 2
    assert "monitor.interval_s" in capsys.readouterr().err


def test_help_is_printed_and_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "BINWRIGHT_SETTINGS" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["--fast"])
