"""Where a converted stream goes."""

import os
from pathlib import Path

import pytest

from binwright.protocol.errors import StreamError
from binwright.recordings.commands.destination import open_output


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "made"
    with open_output(str(file)) as output:
        output.write(b"1")
        assert not file.exists()
    assert file.read_bytes() == b"1"
    with open_output(str(file)) as output:
        output.write(b"2")
        output.flush()
        assert file.read_bytes() == b"1"
    assert file.read_bytes() == b"2"


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "made"
    file.write_bytes(b"1")
    with pytest.raises(ZeroDivisionError), open_output(str(file)) as output:
        output.write(b"%d" % (1 // 0))
    assert [each.name for each in tmp_path.iterdir()] == ["made"]
    assert file.read_bytes() == b"1"


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with open_output(str(pipe)) as output:
            output.write(b"1")
        assert os.read(reading, 9) == b"1"
    finally:
        os.close(reading)
    assert pipe.is_fifo()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with open_output(str(tmp_path / "link")) as output:
        output.write(b"1")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"1"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="nowhere/x"), open_output(f"{tmp_path}/nowhere/x"):
        pass
