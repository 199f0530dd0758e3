"""`binwright init` refuses before it asks, and asks only in a terminal."""

import re
import subprocess
from pathlib import Path

import pytest

from binwright.inspect.init.command import _write
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.programs import FILE_VARIABLE

from .terminal import answered, init

AWAY = ("--brokers", "127.0.0.1:9")


def ran(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command without a terminal."""
    return init(arguments, home, subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ((), "--bootstrap-servers, --topics, --lake"),
        ((*AWAY, "--lake", "lake"), "--topics"),
        (("--topics", "orders"), "--bootstrap-servers, --lake"),
    ],
)
def test_without_a_terminal_it_names_the_options_that_are_missing(
    given: tuple[str, ...], missing: str, tmp_path: Path
) -> None:
    done = ran(tmp_path, *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"binwright: name {missing}: there is no terminal to ask in\n"


def test_variables_count_as_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:9")
    monkeypatch.setenv("BINWRIGHT_LAKE__PATH", "/lake")
    monkeypatch.setenv("BINWRIGHT_TOPICS", '["orders"]')
    done = ran(tmp_path)
    assert done.returncode == 1
    assert "Kafka cannot be used: 127.0.0.1:9" in done.stderr
    assert not [*tmp_path.iterdir()]


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "binwright.toml"
    file.write_text("group = 'mine'\n")
    done = ran(tmp_path)
    assert (done.returncode, done.stderr.count("binwright.toml exists")) == (2, 1)
    assert "(--force)" in done.stderr
    forced = ran(tmp_path, "--force", *AWAY, "--lake", "lake", "--topics", "orders")
    assert "Kafka cannot be used" in forced.stderr
    assert file.read_text() == "group = 'mine'\n"


def test_the_file_of_the_settings_is_the_one_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not exist, and what it holds is not read."""
    done = ran(tmp_path, "--settings", "new.toml")
    assert "there is no terminal to ask in" in done.stderr
    (tmp_path / "old.toml").write_text("[no TOML")
    monkeypatch.setenv(FILE_VARIABLE, "old.toml")
    assert "old.toml exists" in ran(tmp_path).stderr
    assert "there is no terminal" in ran(tmp_path, "--force").stderr


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    assert "there is no directory away" in ran(tmp_path, "--output", "away/x.toml").stderr


def test_a_connection_that_cannot_be_is_refused_by_the_settings(tmp_path: Path) -> None:
    done = ran(tmp_path, *AWAY, "--sasl-username", "ann", "--lake", "lake", "--topics", "orders")
    assert done.returncode == 2
    assert "sasl_username would be ignored" in done.stderr


def test_a_terminal_is_asked_for_what_is_missing(tmp_path: Path) -> None:
    done = answered(tmp_path, ["127.0.0.1:9", "", "mine"], "--topics", "orders")
    assert done.returncode == 1
    asked = re.findall(r"([A-Z][^:\[]*) \[([^\]]*)\]:", done.stderr)
    assert asked == [
        ("Kafka's address", "localhost:9092"),
        ("Where the tables will be", "lake"),
        ("The group's name", "binwright"),
    ]
    assert "Kafka cannot be used: 127.0.0.1:9" in done.stderr


def test_a_terminal_is_asked_for_nothing_that_is_named(tmp_path: Path) -> None:
    done = answered(tmp_path, [], *AWAY, "--topics", "orders", "--lake", "lake")
    assert done.stderr.startswith("binwright: Kafka cannot be used")


def test_what_cannot_be_loaded_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "binwright.toml"
    monkeypatch.setenv("BINWRIGHT_LOG_LEVEL", "loud")
    with pytest.raises(SettingsError, match="log_level"):
        _write(file, 'group = "mine"\n', force=False)
    assert not file.exists()
