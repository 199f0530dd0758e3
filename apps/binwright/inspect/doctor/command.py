"""`binwright doctor`: what is wrong with settings, Kafka, rights, the lake and Spark."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Annotated

import typer
from rich.text import Text

from binwright.cli.options import Bootstrap, Group, Json, Lake, settings_at
from binwright.cli.runner import run_for_result
from binwright.cli.terminal import Console, print_json
from binwright.inspect.decide.doctor.findings import Finding, Status, fault, has_fault, ok, skipped
from binwright.inspect.decide.doctor.rights import SERVICES
from binwright.protocol.errors import SettingsError
from binwright.protocol.rights import Service
from binwright.runtime.run import EXIT_FAILED, EXIT_OK
from binwright.runtime.settings.group import Settings

STYLES: dict[Status, str] = {"ok": "green", "warning": "yellow", "fault": "red", "skipped": "dim"}
EXAMINATION = "binwright.inspect.doctor.examination"  # imports pyspark: that takes a second


def command(
    *,
    service: Annotated[
        Service | None,
        typer.Option(help="Whose rights the settings' user needs; else those of all three."),
    ] = None,
    bootstrap_servers: Bootstrap = None,
    group: Group = None,
    lake: Lake = None,
    spark: Annotated[
        str | None, typer.Option(help="Spark Connect, sc://HOST:PORT; else the settings'.")
    ] = None,
    json_: Json = False,
) -> None:
    """Check settings, Kafka, rights, topics, staging, Spark and the registry; change nothing.

    Exit code 1 if something does not work.
    """
    all_findings: list[Finding] = []

    def report(findings: Sequence[Finding]) -> None:
        all_findings.extend(findings)
        if not json_:
            _print(findings)

    try:
        settings = settings_at(bootstrap_servers, group=group, lake=lake, spark=spark)
    except SettingsError as exc:
        report([fault("settings", str(exc)), skipped("all else", "the settings are not valid")])
    else:
        report([ok("settings", f"valid, for the group {settings.group}")])
        services = SERVICES if service is None else (service,)
        run_for_result(lambda: _examined(settings, services, report))
    if json_:
        lines = {
            "ok": not has_fault(all_findings),
            "findings": [asdict(each) for each in all_findings],
        }
        print_json(lines)
    raise typer.Exit(EXIT_FAILED if has_fault(all_findings) else EXIT_OK)


async def _examined(
    settings: Settings, services: Sequence[Service], report: Callable[[Sequence[Finding]], None]
) -> None:
    module = await asyncio.to_thread(import_module, EXAMINATION)
    await module.examine(settings, services, report)


def _print(findings: Sequence[Finding]) -> None:
    console = Console(highlight=False)
    for each in findings:
        then = f". To do: {each.do}" if each.do else ""
        line = Text(f"{each.status:8} ", STYLES[each.status])
        line.append(f"{each.check}: {each.what}{then}", "none")
        console.print(line, soft_wrap=True)
