"""Output of libraries does not mix with the JSON of a command."""

import os

import pytest

from binwright.ops.console import STDOUT, to_stderr


def test_output_of_c_code_goes_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with to_stderr():
        os.write(STDOUT, b"solver\n")
    os.write(STDOUT, b"{}\n")

    assert capfd.readouterr() == ("{}\n", "solver\n")
