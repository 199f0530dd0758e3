"""What a person is told of a system that runs."""

import asyncio
from io import StringIO
from pathlib import Path

import pytest

from binwright.cli.runner import ProgressConsole, own_command
from binwright.local.attach import addresses, error_in, report_errors
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import load_settings

pytestmark = pytest.mark.looptime

ERROR = (
    "2026-11-24 03:57:33 [error    ] staging.unavailable            "
    "reason='the staging location s3://a cannot be written: OSError' slot=0"
)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (ERROR, "the staging location s3://a cannot be written: OSError"),
        ("2026 x [error    ] table.refused   reason=\"it's another's\"", "it's another's"),
        ("2026 x [critical ] loop.stuck   name=report", "loop.stuck name=report"),
        ('{"level": "error", "event": "a.b", "reason": "no room"}', "no room"),
        ('{"level": "error", "event": "a.b"}', "a.b"),
        ('{"level": "info", "event": "a.b", "reason": "no room"}', None),
        ('{"level": "err', None),
        ("2026 x [warning  ] process.ended   code=1", None),
        ("Traceback (most recent call last):", None),
    ],
)
def test_errors_are_read_from_lines_of_both_kinds(line: str, reason: str | None) -> None:
    assert error_in(line) == reason


async def test_new_errors_of_services_are_reported_once_a_minute(tmp_path: Path) -> None:
    log, reported = tmp_path / "consumer-0.log", list[str]()
    log.write_text(ERROR.replace("s3://a", "earlier") + "\n")
    async with background_tasks(report_errors(tmp_path, reported.append)):
        await asyncio.sleep(1)
        with log.open("a") as file:
            file.write(f"{ERROR}\n{ERROR}\nhalf a li")
        await asyncio.sleep(1)
        assert reported == [
            "consumer-0: the staging location s3://a cannot be written: OSError",
        ]
        with log.open("a") as file:
            file.write(f"ne\n{ERROR}\n")
        await asyncio.sleep(1)
        assert len(reported) == 1
        await asyncio.sleep(60)
        with log.open("a") as file:
            file.write(f"{ERROR}\n")
        await asyncio.sleep(1)
        assert len(reported) == 2


def test_what_is_to_be_copied_has_no_newline_in_a_narrow_terminal() -> None:
    console = ProgressConsole(width=20, file=StringIO(), force_terminal=True)
    console.copyable("binwright status --bootstrap-servers here:9092")
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue() == "binwright status --bootstrap-servers here:9092\n"


def test_the_command_is_named_as_it_was_called_where_the_shell_does_not_find_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", [".venv/bin/binwright", "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_command() == ".venv/bin/binwright"
    program = tmp_path / "binwright"
    program.touch(mode=0o755)
    assert own_command() == "binwright"


def test_the_command_to_look_closer_names_a_group_of_another_name() -> None:
    kafka = {"bootstrap_servers": "here:9092"}
    own = addresses(load_settings(kafka=kafka), Path("/logs"))
    assert own["look closer"] == "binwright status --bootstrap-servers here:9092"
    other = addresses(load_settings(group="pay", kafka=kafka), Path("/logs"))
    assert other["look closer"] == "binwright status --group pay --bootstrap-servers here:9092"
