"""What a person needs to look at a system that runs: addresses, a page, the services' errors."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from rich.text import Text

from binwright.cli.runner import ProgressConsole, own_command
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.server import HOST
from binwright.look.commands import live_page
from binwright.look.follower import watch_group
from binwright.look.group_view import GroupView
from binwright.look.page.server import PORT, OnOpened, Page
from binwright.protocol.errors import SettingsError
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.clock import loop_s
from binwright.runtime.http import Listener
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings
from binwright.runtime.spark_url import redacted_url

POLL_S = 0.5
AGAIN_S = 60.0  # before the same error is reported again
GROUP = Settings.model_fields["group"].default

_CONSOLE = re.compile(r"\S+ \S+ \[(?:error|critical)\s*\] (?P<event>\S+)\s*(?P<fields>.*)")
_REASON = re.compile(r"""reason=(?P<quote>['"])(?P<reason>.*?)(?P=quote)(?: \w+=|$)""")

Report = Callable[[str], None]


def addresses(settings: Settings, logs: Path) -> Mapping[str, str]:
    """Return where Kafka, Spark, tables and logs are, and the command that looks closer."""
    kafka = settings.kafka.bootstrap_servers
    group = "" if settings.group == GROUP else f" --group {settings.group}"
    token = settings.lake.token_file
    return {
        "Kafka": kafka,
        "group": settings.group,
        "Spark": ", ".join(map(redacted_url, settings.lake.servers)),
        **({} if token is None else {"Spark's token": f"in {token}"}),
        "tables": f"{settings.lake.path}/<topic>",
        "logs": str(logs),
        "look closer": f"{own_command()} status{group} --bootstrap-servers {kafka}",
    }


async def serve_page(settings: Settings, opened: OnOpened) -> None:
    """Serve the group's page until cancelled, at the usual port or, if that is taken, another."""

    async def at(port: int) -> None:
        page = Page(settings)
        listener = Listener(HOST, port, "--port")
        await page.serve(
            lambda: KafkaControlTopics(settings.kafka, read_only=True), listener, opened
        )

    try:
        await at(PORT)
    except SettingsError:  # somebody listens there
        await at(0)


@dataclass(slots=True)
class Panel:
    """A system in a terminal: its addresses, then its panel; the page and errors beside it.

    Attributes:
        console: Of the terminal.
        settings: Of the group.
        directory: Of the services' logs.
        view: Of the group.
        words: For the panel's title.
    """

    console: ProgressConsole
    settings: Settings
    directory: Path
    view: GroupView
    words: Callable[[], str]

    async def run(self, bus: ControlTopics) -> None:
        """Show it until cancelled; the group's topics must exist."""
        page: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        topics = self.settings.metadata_topic, self.settings.monitor.topic
        async with background_tasks(
            watch_group(bus, *topics, self.view),
            report_errors(self.directory, self._report_error),
            serve_page(self.settings, page.set_result),
        ):
            places = {**addresses(self.settings, self.directory), "page": await page}
            self.console.log("the services start")
            self.console.copyable("\n".join(f"{name}: {value}" for name, value in places.items()))
            below = f"{places['page']} · Ctrl-C ends it"
            await live_page.show(self.console, self.settings, self.view, self.words, below)

    def _report_error(self, text: str) -> None:
        self.console.log(Text(text, style="red"))


async def report_errors(directory: Path, report: Report) -> None:
    """Report each error that a service logs into `directory` from now on, until cancelled.

    Args:
        directory: Of the services' logs, `NAME.log`.
        report: Called with the service's name and the reason.
    """
    reported_at: dict[str, float] = {}
    logs = _Logs(directory)
    while True:
        for service, line in logs.new_lines():
            if (reason := error_in(line)) is None:
                continue
            text = f"{service}: {reason}"
            if loop_s() - reported_at.get(text, -AGAIN_S) >= AGAIN_S:
                reported_at[text] = loop_s()
                report(text)
        await asyncio.sleep(POLL_S)


class _Logs:
    """The logs of a directory, read from where they end at first."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read = {log: log.stat().st_size for log in directory.glob("*.log")}

    def new_lines(self) -> Iterator[tuple[str, str]]:
        """Yield whole lines that were appended, each with the service's name."""
        for log in sorted(self._directory.glob("*.log")):
            read = self._read.get(log, 0)
            with log.open("rb") as file:
                file.seek(read)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._read[log] = read + len(whole) + len(newline)
            for line in whole.decode(errors="replace").splitlines():
                yield log.stem, line


def error_in(line: str) -> str | None:
    """Return why, if a line of a log, as JSON or for the console, is an error; else None."""
    if line.startswith("{"):
        return _error_in_json(line)
    if (match := _CONSOLE.fullmatch(line)) is None:
        return None
    reason = _REASON.search(match["fields"])
    return reason["reason"] if reason else f"{match['event']} {match['fields']}".strip()


def _error_in_json(line: str) -> str | None:
    try:
        fields: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if fields.get("level") not in {"error", "critical"}:
        return None
    return str(fields.get("reason") or fields.get("event"))
