"""A service says at its start that others may read its password."""

from pathlib import Path

import pytest

from binwright.runtime.run import EXIT_OK
from binwright.runtime.serve import serve
from binwright.runtime.settings.loading import readable_password
from binwright.runtime.settings.programs import ProgramSettings

USER = """[kafka]
security_protocol = "SASL_SSL"
sasl_username = "monitor"
"""


@pytest.mark.parametrize(
    ("setting", "mode"),
    [
        ('sasl_password = "x"', 0o644),
        ('sasl_password = "x"', 0o640),
        ('sasl_password_file = "x"', 0o644),
    ],
)
def test_a_password_that_all_may_read_is_warned_of(
    setting: str,
    mode: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def work(settings: ProgramSettings) -> None:
        assert settings.kafka.sasl_username == "monitor"

    file = tmp_path / "binwright.toml"
    file.write_text(USER + setting)
    file.chmod(mode)
    readable = (setting, mode) == ('sasl_password = "x"', 0o644)
    assert readable_password() is None
    monkeypatch.setenv("BINWRIGHT_SETTINGS", str(file))
    assert serve(work, ProgramSettings) == EXIT_OK
    assert ("password.readable" in capsys.readouterr().err) == readable
    assert readable_password() == (file if readable else None)
