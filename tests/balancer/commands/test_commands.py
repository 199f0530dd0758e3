"""What is refused before any cluster is asked."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from binwright.balancer.commands.plan import numbers
from binwright.cli.main import app
from binwright.protocol.errors import PlacementError, SettingsError


def test_the_commands_are_listed() -> None:
    done = CliRunner().invoke(app, ["brokers", "--help"])
    for name in ("status", "plan", "drain", "apply", "cancel", "simulate"):
        assert name in done.stdout


def test_a_plan_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["brokers", "apply", str(tmp_path / "none.json")])
    assert isinstance(done.exception, PlacementError)


def test_a_description_with_a_fault_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text("headroom = 2")
    done = CliRunner().invoke(app, ["brokers", "plan", "--describe", str(file)])
    assert isinstance(done.exception, SettingsError)


@pytest.mark.parametrize("option", ["orders", "orders=x", "=5", "orders=0"])
def test_a_retention_is_a_topic_and_seconds(option: str) -> None:
    done = CliRunner().invoke(app, ["brokers", "simulate", "--retention", option])
    assert isinstance(done.exception, PlacementError)


def test_brokers_are_numbers() -> None:
    assert numbers("1, 3") == (1, 3)
    with pytest.raises(PlacementError):
        numbers("one")
