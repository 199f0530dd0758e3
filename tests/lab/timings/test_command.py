"""`binwright lab timings` refuses what it cannot run before anything is started."""

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.protocol.errors import BinwrightError


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--since", "2026-11-23T04:00:00"), "go with --running"),
        (("--packing", "unheard-of"), "unheard-of"),
        (
            ("--running", "--since", "2026-11-23T05:00:00", "--until", "2026-11-23T04:00:00"),
            "--since must be before --until",
        ),
    ],
)
def test_a_fault_of_the_options_is_named(options: tuple[str, ...], reason: str) -> None:
    done = CliRunner().invoke(app, ["lab", "timings", *options])
    assert isinstance(done.exception, BinwrightError)
    assert reason in str(done.exception)
