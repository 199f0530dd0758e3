"""Output of libraries does not mix with the JSON of a command."""

import os
import subprocess
import sys

import pytest

from binwright.cli.console import STDOUT, to_stderr

PROGRAM = """
import ctypes
from binwright.cli.console import to_stderr
with to_stderr():
    ctypes.CDLL(None).puts(b"of the solver")
print("of the command")
"""


def test_output_of_c_code_goes_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with to_stderr():
        os.write(STDOUT, b"solver\n")
    os.write(STDOUT, b"{}\n")

    assert capfd.readouterr() == ("{}\n", "solver\n")


def test_what_the_c_library_has_in_its_buffer_goes_to_standard_error() -> None:
    done = subprocess.run(
        (sys.executable, "-c", PROGRAM), capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("of the command\n", "of the solver\n")
