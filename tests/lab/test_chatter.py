"""What others print does not get between a program and its JSON."""

import os

import pytest

from binwright.lab.chatter import STDOUT, to_stderr


def test_what_is_written_below_python_goes_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with to_stderr():
        os.write(STDOUT, b"chatter\n")
    os.write(STDOUT, b"{}\n")

    assert capfd.readouterr() == ("{}\n", "chatter\n")
