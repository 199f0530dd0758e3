"""`make bench NAME=page`: what the live page costs its server and a browser, by the group's size.

The server's figure is CPU seconds for one view (`SHARE` says how seldom it is made then), the
browser's the time that Chromium works for one drawing, with everything changing each time.
"""

import asyncio
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table
from tests.chromium import chromium, tab

from binwright.cli.terminal import Console
from binwright.local.server import reserve_port
from binwright.look.group_view import GroupView
from binwright.look.page.server import Page, document_paths
from binwright.protocol.metadata import Claim, Hello, Report, TableReport
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.http import Listener, Paths, Response, serve_http
from binwright.runtime.settings.group import load_settings

SIZES = ((100, 1_000), (1_000, 10_000), (1_000, 100_000))  # consumers, partitions
TOPICS = 50
RATE = 10_000.0
DRAWINGS, DRAWN_S = 5, 240.0  # the largest group is drawn each ten seconds or so


def measure_topic(view: GroupView, topic: str, count: int, number: int) -> None:
    """Apply one pass of a monitor, with rates that change from pass to pass."""
    rates = (BytesPerSecond(RATE + (n * 31 + number * 17) % 9_000) for n in range(count))
    measured = tuple(PartitionRate(n, rate, 30, 100, 0, 10.0) for n, rate in enumerate(rates))
    view.apply_measurement(
        Measurement(
            topic=topic,
            at_ms=wall_ms(),
            monitor="bench",
            number=number,
            interval_s=1,
            count=count,
            partitions=measured,
        )
    )


def group(consumers: int, partitions: int) -> GroupView:
    """Return a group in which every consumer reads as much, and the first ones write tables."""
    view, per_topic = GroupView(), partitions // TOPICS
    topics = [f"team-{number:02}.events.v1" for number in range(TOPICS)]
    every = [TopicPartition(topic, number) for number in range(per_topic) for topic in topics]
    view.apply(0, wall_ms(), Claim(controller="bench", limit=BytesPerSecond(2.4e6)))
    for slot in map(Slot, range(consumers)):
        view.apply(slot + 1, wall_ms(), Hello(slot=slot, process="bench", version="1"))
        written = topics[slot : slot + 1]
        report = Report(
            slot=slot,
            epoch=slot + 1,
            term=0,
            ready=True,
            reading=dict.fromkeys(every[slot::consumers], 90),
            writing={topic: TableReport(state="landing", committed={}) for topic in written},
        )
        view.apply(consumers + slot + 1, wall_ms(), report)
    for topic in topics:
        measure_topic(view, topic, per_topic, 0)
    return view


async def measure(browser: str, consumers: int, partitions: int) -> dict[str, Any]:
    """Return what one size costs."""
    page = Page(load_settings(group="bench", topic_patterns=("team-.*",)))
    page.live.view, page.live.problem = group(consumers, partitions), None
    passes, costs = itertools.count(1), []

    def view() -> Response:
        number = next(passes)
        for topic in {p.topic for p in page.live.view.ends}:
            measure_topic(page.live.view, topic, partitions // TOPICS, number)
        began, fresh = time.process_time(), Page(page.settings)
        fresh.live.view, fresh.live.problem = page.live.view, None
        answer = fresh.view_json()
        costs.append((time.process_time() - began, len(answer.body)))
        return answer

    with reserve_port() as free_port:
        port = free_port
    paths: Paths = {**document_paths(), "/view": view, "/history": page.history_json}
    async with serve_http(paths, Listener("127.0.0.1", port, "page")), tab(browser) as opened:
        await opened.size(1200, 900)
        await opened.send("Performance.enable")
        await opened.open(f"http://127.0.0.1:{port}/")
        await opened.until("document.querySelector('.block')", DRAWN_S)
        before, drawn = await busy_s(opened.send), len(costs)
        async with asyncio.timeout(DRAWN_S):
            while len(costs) < drawn + DRAWINGS:  # noqa: ASYNC110 - the browser asks
                await asyncio.sleep(0.1)
        spent = (await busy_s(opened.send) - before) / (len(costs) - drawn)
    return {
        "consumers": consumers,
        "partitions": partitions,
        "server_s": sum(cost for cost, _ in costs) / len(costs),
        "view_bytes": costs[-1][1],
        "browser_s": spent,
    }


async def busy_s(send: Any) -> float:
    """Return for how long the tab has worked."""
    metrics = (await send("Performance.getMetrics"))["metrics"]
    return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def rows() -> Iterator[dict[str, Any]]:
    """Yield what each size costs."""
    with tempfile.TemporaryDirectory() as place, chromium(Path(place)) as browser:
        for size in SIZES:
            yield asyncio.run(measure(browser, *size))


def main() -> None:
    """Print JSON, and a table on standard error."""
    every_size = list(rows())
    table = Table("consumers", "partitions", "view, CPU s", "kB", "drawing, s")
    for row in every_size:
        table.add_row(
            f"{row['consumers']:,}",
            f"{row['partitions']:,}",
            f"{row['server_s']:.3f}",
            f"{row['view_bytes'] / 1e3:,.0f}",
            f"{row['browser_s']:.3f}",
        )
    Console(stderr=True).print(table)
    sys.stdout.write(json.dumps(every_size, indent=2) + "\n")


if __name__ == "__main__":
    main()
