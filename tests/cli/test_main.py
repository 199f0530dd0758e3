"""The command line as a whole."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from binwright.cli.main import COMMANDS, app

HEAVY = ["pyspark", "pyarrow", "scipy", "numpy", "kubernetes_asyncio", "matplotlib"]


def binwright(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "binwright.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_tells_what_it_does(name: str) -> None:
    told = CliRunner().invoke(app, [name, "--help"])
    assert told.exit_code == 0
    assert f"{name} [OPTIONS]" in told.output


def test_the_help_names_all_commands() -> None:
    told = CliRunner().invoke(app, ["--help"])
    assert told.exit_code == 0
    assert all(f" {name} " in told.output for name in COMMANDS)


def test_the_version_is_told() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert told.exit_code == 0
    assert told.output.startswith("binwright 0.")


def test_a_command_that_is_none_is_told_with_the_usage() -> None:
    told = CliRunner().invoke(app, ["statsu"])
    assert told.exit_code == 2
    assert "statsu" in told.output


@pytest.mark.parametrize("command", [["status"], ["approve", "7"]])
def test_an_unreachable_kafka_is_one_sentence(command: list[str]) -> None:
    told = binwright(*command, "--bootstrap-servers", "127.0.0.1:9")
    assert (told.returncode, told.stdout) == (1, "")
    (line,) = told.stderr.splitlines()
    assert line.startswith("binwright: Kafka cannot be used: 127.0.0.1:9: ")
    assert "Check that a broker listens at kafka.bootstrap_servers" in line


@pytest.mark.parametrize("module", ["status", "approve", "reference"])
def test_a_small_command_imports_no_library_that_it_does_not_use(module: str) -> None:
    """Two seconds of a processor passed before `status` said that Kafka was away."""
    asked = f"import sys, json, binwright.cli.main, binwright.cli.{module}"
    code = f"{asked}; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(told.stdout) == []
