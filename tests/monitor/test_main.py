"""The monitor as a process."""

import pytest

from binwright.core.errors import SettingsError
from binwright.monitor.__main__ import main, run
from binwright.shell.settings import MonitorSettings, Settings


async def test_without_topics_a_person_is_told_how_to_name_them() -> None:
    with pytest.raises(SettingsError) as caught:
        await run(Settings(monitor=MonitorSettings(groups=False)))
    assert "topics = [" in str(caught.value)
    assert "BINWRIGHT_TOPICS='[" in str(caught.value)


def test_settings_that_do_not_hold_end_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BINWRIGHT_MONITOR__INTERVAL_S", "-1")
    assert main([]) == 2
    assert "monitor.interval_s" in capsys.readouterr().err


def test_it_tells_what_it_is_and_takes_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "BINWRIGHT_SETTINGS" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["--fast"])
