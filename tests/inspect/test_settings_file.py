"""The settings file to start from, and the option that names one."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from binwright.cli.main import OPTION, VARIABLE, take_settings
from binwright.inspect.settings_file import PROGRAMS, text
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.loading import load
from binwright.runtime.settings.programs import FILE_VARIABLE, ProgramSettings

UNCOMMENTED = re.sub(r"^#(\w+ = .)", r"\1", text(), flags=re.MULTILINE)
"""The file with every default in force; inner tables stay comments."""


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_file_as_it_is_changes_nothing(
    program: type[ProgramSettings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "binwright.toml"
    file.write_text(text())
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    assert load(program) == program()


def test_every_default_in_it_is_one() -> None:
    without_inner = re.sub(r"(?ms)^#\[.*?(?=^\[|\Z)", "", UNCOMMENTED)
    tables = tomllib.loads(without_inner)
    assert tables["lake"].pop("path") == "lake"  # made absolute where it is given
    for program in PROGRAMS:
        own = {n: v for n, v in tables.items() if n in program.model_fields}
        assert load(program, **own) == load(program)


def test_every_setting_is_in_it_with_its_meaning() -> None:
    assert "# Age of rows when they land" in text()
    for program in PROGRAMS:
        for name in program.model_fields:
            assert f"#{name} = " in text() or f"[{name}]" in text()


def test_the_option_names_the_file_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "other.toml")
    assert take_settings(["status", OPTION, "a.toml", "--json"]) == ["status", "--json"]
    assert os.environ[VARIABLE] == str(tmp_path / "a.toml")
    assert take_settings([f"{OPTION}=b.toml", "top"]) == ["top"]
    assert os.environ[VARIABLE] == str(tmp_path / "b.toml")
    assert VARIABLE == FILE_VARIABLE
    with pytest.raises(SettingsError, match="names no file"):
        take_settings(["status", OPTION])


@pytest.mark.parametrize(("named", "path"), [("c.toml", "{}/c.toml"), ("/d.toml", "/d.toml")])
def test_services_in_other_directories_find_the_file_of_the_variable(
    named: str, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, named)
    assert take_settings(["up"]) == ["up"]
    assert os.environ[VARIABLE] == path.format(tmp_path)
    monkeypatch.delenv(VARIABLE)
    take_settings(["up"])
    assert VARIABLE not in os.environ
