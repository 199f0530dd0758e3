"""`binwright page`: the live page in a browser, from the topics alone, wherever this runs.

Programs get the same at `/status` (JSON), and Prometheus at `/metrics`.
"""

import asyncio
import io
import time
from dataclasses import dataclass, field
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.markup import escape

from binwright.cli.options import Bootstrap, settings_at
from binwright.cli.screen import draw
from binwright.cli.work import run
from binwright.core.errors import WorldError
from binwright.core.ports import Bus
from binwright.lab.picture import Picture
from binwright.lab.samples import group_samples
from binwright.lab.spectator import spectate
from binwright.lab.status import Status, status
from binwright.shell.bus import KafkaBus
from binwright.shell.gauges import CONTENT_TYPE, exposition
from binwright.shell.http import Answer, answering
from binwright.shell.logs import configure
from binwright.shell.run import endless, first_cause, meanwhile
from binwright.shell.settings import Settings

WIDTH = 130  # characters
AGAIN_S = 1.0
HTML = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>binwright</title>
<style>
  body {{ background: #15171a; color: #d8d8d8; margin: 1.5rem; }}
  pre {{ font: 14px/1.35 ui-monospace, Menlo, Consolas, monospace; margin: 0; }}
</style>
<pre id="page">{page}</pre>
<script>
  setInterval(async () => {{
    try {{
      const told = await fetch("page", {{ signal: AbortSignal.timeout(5000) }});
      document.getElementById("page").innerHTML = await told.text();
      document.title = "binwright";
    }} catch (error) {{ document.title = "binwright (not there)"; }}
  }}, 1000);
</script>
</html>
"""


@dataclass
class Page:
    """A group as last reported, for browsers, programs and Prometheus."""

    settings: Settings
    picture: Picture = field(default_factory=Picture)
    trouble: str = "nobody has spoken yet"

    async def follow(self, bus: Bus) -> None:
        """Keep the picture up to date, for ever; where topics are missing, wait for them."""
        while True:
            self.picture, self.trouble = Picture(), ""
            topics = self.settings.metadata_topic, self.settings.monitor.topic
            try:
                await spectate(bus, *topics, self.picture)
            except (WorldError, ExceptionGroup) as exc:
                cause = first_cause(exc)
                if not isinstance(cause, WorldError):
                    raise
                self.trouble = str(cause)
            await asyncio.sleep(AGAIN_S)

    def html(self) -> Answer:
        """Return the page, which keeps itself up to date."""
        text = HTML.format(page=self.fragment().body.decode())
        return Answer(text.encode(), "text/html")

    def fragment(self) -> Answer:
        """Return what changes on the page."""
        console = Console(file=io.StringIO(), record=True, width=WIDTH, force_terminal=True)
        title = f"binwright · {self.settings.group}"
        told = f"{title} · {self.trouble}" if self.trouble else title
        console.print(draw(self.picture, self.settings.controller.limit_bytes_per_s, escape(told)))
        text = console.export_html(inline_styles=True, code_format="{code}")
        return Answer(text.encode(), "text/html")

    def facts(self) -> Answer:
        """Return what `binwright status --json` says of the group."""
        return Answer(orjson.dumps(self._status().facts()))

    def metrics(self) -> Answer:
        """Return the group's numbers, for Prometheus."""
        return Answer(exposition(group_samples(self._status())).encode(), CONTENT_TYPE)

    def _status(self) -> Status:
        now_ms = time.time_ns() // 1_000_000
        return status(self.settings.group, self.picture, now_ms, self.settings.landed)

    async def serve(self, address: str, port: int) -> None:
        """Follow the group and answer browsers, until cancelled.

        Raises:
            BrokerUnavailable: Kafka cannot be reached at the start.
            SettingsError: The port cannot be had.
        """
        paths = {
            "/": self.html,
            "/page": self.fragment,
            "/status": self.facts,
            "/metrics": self.metrics,
        }
        async with (
            KafkaBus(self.settings.kafka) as bus,
            answering(paths, address, port, "page"),
            meanwhile(endless(self.follow(bus))),
        ):
            await asyncio.Event().wait()


def command(
    *,
    address: Annotated[str, typer.Option(help="To listen on; 0.0.0.0 is all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="To listen on.")] = 8088,
    bootstrap_servers: Bootstrap = None,
) -> None:
    """Serve the live page of the settings' group to browsers, until Ctrl-C."""
    configure("error", "console")
    page = Page(settings_at(bootstrap_servers))
    Console(stderr=True, log_path=False).log(f"http://{address}:{port}")
    raise typer.Exit(run(lambda: page.serve(address, port)))
