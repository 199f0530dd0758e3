"""Draw the board of deploy/grafana without Grafana: its queries, in their places, of a Prometheus.

    python -m tools.board_image http://127.0.0.1:9090 board.svg --group orders --minutes 30

Grafana draws the same lines with its own axes and colours.
"""

import asyncio
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import typer
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, Formatter, StrMethodFormatter

from binwright.lab.report.files import save_svg

BOARD = Path(__file__).parents[1] / "deploy" / "grafana" / "binwright.json"
REQUEST_S = 30.0
POINTS = 60  # of a line
CELL = 0.5, 0.3  # inches of a unit of the board's grid
UNITS: Mapping[str, Callable[[], Formatter]] = {
    "s": partial(EngFormatter, "s"),
    "Bps": partial(EngFormatter, "B/s"),
    "short": partial(StrMethodFormatter, "{x:,g}"),
}
"""Grafana's units that the board has -> how an axis shows them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series: its name in the legend, seconds of wall-clock time, and values; NaN: a gap."""

    name: str
    times_s: list[float]
    values: list[float]


def panels() -> list[dict[str, Any]]:
    """Return the board's panels as Grafana gets them."""
    found: list[dict[str, Any]] = json.loads(BOARD.read_text())["panels"]
    return found


def expression(target: Mapping[str, str], group: str, interval: str) -> str:
    """Return a target's query with the board's variables filled in, as Grafana does it."""
    return target["expr"].replace("$__rate_interval", interval).replace("$group", group)


async def ask(prometheus: str, what: str, parameters: Mapping[str, str]) -> Any:
    """Return what Prometheus' API has; raise `ValueError` with its reason if it refuses."""
    timeout = aiohttp.ClientTimeout(total=REQUEST_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as client,
        client.get(f"{prometheus}/api/v1/{what}", params=parameters) as response,
    ):
        answer = await response.json()
    if answer["status"] != "success":
        raise ValueError(f"{prometheus} refuses {what}: {answer.get('error')}")
    return answer["data"]


async def lines(
    prometheus: str, panel: Mapping[str, Any], group: str, since_s: float, until_s: float
) -> list[Line]:
    """Return a panel's lines in a span of wall-clock time; what is no number is left out."""
    step_s = max(1.0, (until_s - since_s) / POINTS)
    interval = f"{max(60, math.ceil(4 * step_s))}s"
    span = {"start": str(since_s), "end": str(until_s), "step": str(step_s)}
    return [
        line
        for target in panel["targets"]
        for found in (
            await ask(
                prometheus,
                "query_range",
                {"query": expression(target, group, interval), **span},
            )
        )["result"]
        if (line := _line(target["legendFormat"], found, step_s)).values
    ]


def _line(legend: str, found: Mapping[str, Any], step_s: float) -> Line:
    name = legend
    for label, value in found["metric"].items():
        name = name.replace(f"{{{{{label}}}}}", value)
    line = Line(name, [], [])
    for at, value in ((float(at), float(value)) for at, value in found["values"]):
        if not math.isfinite(value):
            continue
        if line.times_s and at - line.times_s[-1] > 1.5 * step_s:
            line.times_s.append(at - step_s)  # a gap, as Grafana draws it
            line.values.append(math.nan)
        line.times_s.append(at)
        line.values.append(value)
    return line


def draw(
    found: Sequence[tuple[Mapping[str, Any], Sequence[Line]]], since_s: float, until_s: float
) -> Figure:
    """Return the board: each panel with its lines, minutes of the span below it."""
    places = [panel["gridPos"] for panel, _ in found]
    width = max(place["x"] + place["w"] for place in places)
    height = max(place["y"] + place["h"] for place in places)
    figure = Figure(figsize=(width * CELL[0], height * CELL[1]), layout="constrained")
    grid = figure.add_gridspec(height, width)
    for panel, each in found:
        place = panel["gridPos"]
        axes = figure.add_subplot(
            grid[place["y"] : place["y"] + place["h"], place["x"] : place["x"] + place["w"]]
        )
        for line in each:
            minutes = [(at - since_s) / 60 for at in line.times_s]
            axes.plot(minutes, line.values, label=line.name, linewidth=1.2)
        defaults = panel["fieldConfig"]["defaults"]
        axes.set_title(panel["title"], loc="left", fontsize=9, fontweight="bold")
        axes.set_ylim(bottom=defaults.get("min"))  # None: as low as the values are
        axes.set_xlim(0, (until_s - since_s) / 60)
        axes.yaxis.set_major_formatter(UNITS[defaults["unit"]]())
        axes.locator_params(nbins=4)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        if each:
            axes.legend(fontsize=6, ncols=3, loc="upper left", framealpha=0.6)
    figure.supxlabel("minutes", fontsize=8)
    return figure


async def write(prometheus: str, file: Path, group: str, since_s: float, until_s: float) -> None:
    """Write the board of a span of wall-clock time as SVG."""
    found = [(each, await lines(prometheus, each, group, since_s, until_s)) for each in panels()]
    save_svg(draw(found, since_s, until_s), file)


def main(
    prometheus: Annotated[str, typer.Argument(help="Its address.")],
    file: Annotated[Path, typer.Argument(help="The SVG file to write.")],
    group: Annotated[str, typer.Option(help="A group, or a regular expression of several.")] = ".*",
    minutes: Annotated[float, typer.Option(min=1, help="Up to now.")] = 60.0,
) -> None:
    """Draw the board from a Prometheus."""
    now_s = time.time()
    asyncio.run(write(prometheus, file, group, now_s - 60 * minutes, now_s))


if __name__ == "__main__":
    typer.run(main)
