"""Write docs/images/{status,top,panel}.svg, as a terminal of 80 columns shows a system that runs.

Start one and a load on it, then run this:

    binwright up --topics orders --lake ./lake
    binwright load --topics orders --bootstrap-servers KAFKA --bytes-per-s 2000000
    python -m tools.terminal_images KAFKA
"""

import asyncio
import io
import re
from pathlib import Path

import typer
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import RenderableType

from binwright.cli.options import settings_at
from binwright.cli.terminal import Console
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.commands import live_page, status_page, top
from binwright.look.follower import GroupFollower
from binwright.look.group_view import GroupView
from binwright.look.status import status
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, HEIGHT = 80, 24
ROWS = 12
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""Without fonts from elsewhere: the reader's own monospaced one is used."""


def terminal() -> Console:
    """Return a terminal that keeps what it shows."""
    return Console(record=True, width=WIDTH, height=HEIGHT, force_terminal=True, file=io.StringIO())


def save(console: Console, page: RenderableType, name: str, command: str) -> None:
    """Write what the terminal shows of a page, under the command's name."""
    console.print(page)
    console.save_svg(str(IMAGES / f"{name}.svg"), title=command, code_format=FORMAT, unique_id=name)


async def pictures(settings: Settings) -> None:
    """Read the group and the rates up to now, and write the three pictures."""
    view = GroupView()
    async with KafkaControlTopics(settings.kafka, read_only=True) as bus:
        topics = {settings.metadata_topic: view}
        async with GroupFollower(bus, topics, settings.monitor.topic) as follower:
            await follower.catch_up()
    found = status(settings.group, view, wall_ms(), settings.landed_topics)
    save(terminal(), status_page.draw([found], WIDTH), "status", "binwright status")
    console = terminal()
    below = "http://127.0.0.1:8088 · Ctrl-C ends it"
    panel = live_page.draw(console, found, view, "binwright up", below)
    save(console, panel, "panel", "binwright up --topics orders --lake ./lake")

    options = top.TopOptions("rate", None, topics=False, limit=None)
    rates = await top.Top(Console(), settings, options, once=True).run()
    now = asyncio.get_running_loop().time()
    save(terminal(), top.draw(rates, options, ROWS, now, WIDTH), "top", "binwright top")


def main(bootstrap_servers: str) -> None:
    """Take the pictures of the group of the settings at a Kafka."""
    asyncio.run(pictures(settings_at(bootstrap_servers)))


if __name__ == "__main__":
    typer.run(main)
