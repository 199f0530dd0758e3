"""The command line as a whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders import measurement
from typer.testing import CliRunner

from binwright.cli.main import COMMANDS, app
from binwright.protocol import wire
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings.programs import FILE_VARIABLE
from binwright.streams.recording import header_line

HEAVY = {
    *("pyspark", "pyarrow", "scipy", "numpy", "kubernetes_asyncio", "matplotlib"),
    "urllib.request",
}
CLIENTS = {"aiokafka", "grpc", "aiohttp"}
AS_BINWRIGHT = "import sys; sys.argv[0] = 'binwright'; from binwright.cli.main import main; main()"
AWAY = ("--bootstrap-servers", "127.0.0.1:9")  # nothing listens there


def binwright(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "binwright.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_text(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert f"{name} [OPTIONS]" in result.output


def test_the_help_lists_all_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(f" {name} " in result.output for name in COMMANDS)


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.startswith("binwright 0.")


def test_an_unknown_command_is_named_with_the_usage() -> None:
    result = CliRunner().invoke(app, ["statsu"])
    assert result.exit_code == 2
    assert "statsu" in result.output


def check_one_sentence(ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith("binwright: Kafka cannot be used: 127.0.0.1:9: ")
    assert "Check that a broker listens at kafka.bootstrap_servers" in line


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["status", "--watch"],
        ["approve", "7"],
        ["audit", "--topics", "orders"],
        ["init", "--topics", "orders", "--lake", "lake"],
        ["load", "--topics", "orders"],
        ["record", "--to", "recorded.jsonl"],
        ["top"],
        ["up", "--topics", "orders"],
    ],
)
def test_an_unreachable_kafka_is_reported_in_one_sentence(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is printed: no log line, no unclosed client, no server that starts."""
    monkeypatch.chdir(tmp_path)
    ran = binwright(*command, *AWAY)
    assert ran.stdout == ""
    check_one_sentence(ran)


def test_replay_reports_an_unreachable_kafka_once_it_has_read_the_recording(
    tmp_path: Path,
) -> None:
    file = tmp_path / "recorded.jsonl"
    rates = (PartitionRate(0, BytesPerSecond(1.0), 30, 1, 0, 10.0),)
    line = wire.encode(measurement("orders", rates)) + b"\n"
    file.write_bytes(header_line(BytesPerSecond(10)) + line)
    check_one_sentence(binwright("replay", str(file), *AWAY))


@pytest.mark.parametrize("command", ["audit", "up"])
def test_kafka_of_the_settings_file_is_used_and_none_is_embedded(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('topics = ["orders"]\n[kafka]\nbootstrap_servers = "127.0.0.1:9"\n')
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    check_one_sentence(binwright(command))


def test_a_cluster_is_refused_where_the_settings_name_a_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BINWRIGHT_LAKE__SPARK", "sc://spark:15002")
    ran = binwright("up", "--topics", "orders", "--cluster")
    assert ran.returncode == 2
    assert "--cluster is about the embedded Spark, but sc://spark:15002 is named" in ran.stderr


def modules_in(report: str) -> set[str]:
    """Return the modules that Python reports as imported."""
    lines = (line for line in report.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def imported_by(*arguments: str) -> set[str]:
    """Return the modules that a command imports."""
    command = [sys.executable, "-X", "importtime", "-m", "binwright.cli", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return modules_in(ran.stderr)


@pytest.mark.parametrize(
    "command",
    [
        ["status", *AWAY],
        ["approve", "7", *AWAY],
        ["top", "--once", *AWAY],
        ["init", "--topics", "orders", "--lake", "lake", *AWAY],
        ["settings"],
    ],
)
def test_a_small_command_imports_no_library_that_it_does_not_use(command: list[str]) -> None:
    imported = imported_by(*command)
    assert "binwright.runtime.settings" in imported
    assert imported.isdisjoint(HEAVY)


@pytest.mark.parametrize("name", ["latency", "packing", "paper", "report", "slo", "sweep"])
def test_the_lab_is_had_without_sparks_client(name: str) -> None:
    imported = imported_by("lab", name, "--help")
    assert "binwright.lab.commands.options" in imported
    assert imported.isdisjoint({"pyspark", "pyarrow", "pandas", "grpc"})


def test_a_package_that_is_not_installed_is_named_in_one_sentence() -> None:
    without = "import sys; sys.modules['pyspark'] = None\n" + AS_BINWRIGHT
    ran = subprocess.run(
        [sys.executable, "-c", without, "audit", "--topics", "orders"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert line.startswith("binwright: this needs the package pyspark, which is missing")


def test_the_help_and_the_version_import_no_command() -> None:
    """They are what a person types first: importing all commands takes a second and a half."""
    for option in ("--help", "--version"):
        imported = imported_by(option)
        modules = {where.partition(":")[0] for where in COMMANDS.values()}
        apps = {
            "binwright.balancer.commands",
            "binwright.inspect.schema_app",
            "binwright.lab.commands.app",
            "binwright.look.commands.table",
        }
        assert "binwright.cli.main" in imported
        assert imported.isdisjoint(HEAVY | CLIENTS | modules - apps)


def completed(words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as bash does that wants to know what may stand for the last word."""
    place = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-c", AS_BINWRIGHT],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **place, "_BINWRIGHT_COMPLETE": "complete_bash"},
    )


@pytest.mark.parametrize(
    ("words", "fitting"),
    [
        ("binwright sta", ["status"]),
        ("binwright --settings x.toml table li", ["list"]),
        ("binwright init --sasl-u", ["--sasl-username"]),
    ],
)
def test_shells_complete_commands_and_options(words: str, fitting: list[str]) -> None:
    assert completed(words).stdout.split() == fitting


def test_completing_the_name_of_a_command_imports_none() -> None:
    """A person waits for it at every press of the key."""
    ran = completed("binwright s")
    assert set(ran.stdout.split()) == {name for name in COMMANDS if name.startswith("s")}
    assert modules_in(ran.stderr).isdisjoint(HEAVY | CLIENTS)


def test_status_imports_messages_and_views_only_once_kafka_answers() -> None:
    """These take a quarter of the CPU that `status` needs to say that Kafka is away."""
    imported = imported_by("status", *AWAY)
    assert "binwright.kafka.control_topics" in imported
    late = (
        "binwright.protocol.orders",
        "binwright.controller.decide",
        "binwright.look.follower",
    )
    assert [module for module in sorted(imported) if module.startswith(late)] == []


@pytest.mark.parametrize("form", [("--spark", "{}"), ("--spark={}",)])
def test_a_token_on_the_command_line_is_warned_of_and_not_shown(form: tuple[str, ...]) -> None:
    url = "sc://127.0.0.1:9/;use_ssl=true;token=s3cret"
    done = binwright("table", "describe", "t", *(each.format(url) for each in form), *AWAY)
    assert "list of processes" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout
    plain = binwright("table", "describe", "t", "--spark", "sc://127.0.0.1:9", *AWAY)
    assert "list of processes" not in plain.stderr
