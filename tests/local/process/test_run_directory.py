"""An interrupted start takes away what it made, and nothing else."""

import asyncio
from pathlib import Path

import pytest

from binwright.local.process.run_directory import run_directory
from binwright.protocol.errors import EmbeddedError


def interrupt(directory: Path, error: BaseException) -> None:
    def start() -> None:
        with run_directory(directory) as home:
            (home / "data").mkdir()
            (home / "log").touch()
            raise error

    with pytest.raises(type(error)):
        start()


def test_a_cancelled_start_leaves_no_directory_nor_those_above_it(tmp_path: Path) -> None:
    interrupt(tmp_path / "a" / "b", asyncio.CancelledError())
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "theirs").touch()
    interrupt(tmp_path, asyncio.CancelledError())
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_the_log_stays_after_an_embedded_error(tmp_path: Path) -> None:
    interrupt(tmp_path / "a", EmbeddedError("look into the log"))
    assert (tmp_path / "a" / "log").exists()
