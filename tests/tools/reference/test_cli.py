"""The page of commands has every parameter of every command, in its section."""

from typing import Any

import pytest
import typer
from tools.reference.cli import _commands, _entry, _parameters, page

from binwright.cli.main import app

PAGE = page()
COMMANDS = list(_commands(typer.main.get_command(app), "binwright"))


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_parameter_is_described_there_or_with_those_of_many_commands(
    name: str, command: Any
) -> None:
    own, many = section(name), section("Options of many commands")
    for parameter in _parameters(command):
        spelled, _, meaning = _entry(parameter)
        assert spelled in own
        assert meaning in own or meaning in many
