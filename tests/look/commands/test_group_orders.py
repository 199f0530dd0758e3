"""The commands of `binwright group` share their options."""

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.protocol.errors import SettingsError

BEGINNING = {
    "freeze": (),
    "pin": ("orders-3", "1"),
    "cordon": ("1",),
    "drain": ("1",),
    "scale": ("3",),
    "adopt": ("0",),
}
ENDING = {
    "unfreeze": (),
    "unpin": ("orders-3",),
    "uncordon": ("1",),
    "unscale": (),
    "unadopt": ("packing",),
}


@pytest.mark.parametrize("name", BEGINNING)
def test_what_begins_needs_a_reason(name: str) -> None:
    done = CliRunner().invoke(app, ["group", name, *BEGINNING[name]])
    assert done.exit_code == 2
    assert "--reason" in done.output


@pytest.mark.parametrize("name", BEGINNING)
def test_what_begins_may_end_by_itself(name: str) -> None:
    """A time that is none is refused before Kafka is asked."""
    options = ("--reason", "release", "--until", "never", "--group", "g", "--timeout", "1")
    done = CliRunner().invoke(app, ["group", name, *BEGINNING[name], *options])
    assert isinstance(done.exception, SettingsError)
    assert "never" in str(done.exception)


@pytest.mark.parametrize("name", ENDING)
def test_what_ends_something_has_no_end_of_its_own(name: str) -> None:
    done = CliRunner().invoke(app, ["group", name, *ENDING[name], "--until", "1h"])
    assert done.exit_code == 2
    assert "--until" in done.output
