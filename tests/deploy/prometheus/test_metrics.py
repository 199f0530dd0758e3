"""Prometheus takes what each service answers at `/metrics`, and finds no fault with the names."""

import asyncio
from collections.abc import Collection

import aiohttp
import pytest
from tests.prometheus_programs import check
from tools.reference.metrics import declared

from binwright.local.server import reserve_port
from binwright.runtime.exposition import histogram
from binwright.runtime.health import serve_health
from binwright.runtime.metrics import READY, UP, Metric, Sample
from binwright.runtime.settings.health import HealthSettings

HOSTILE = 'a "b"\\c\nd{}, é'


async def scraped(metrics: Collection[Metric], label: str = "") -> tuple[str, str]:
    """Return what a service with these metrics answers over HTTP: the text, and its type."""
    labels = {each.name: dict.fromkeys(each.labels, label) for each in metrics}
    samples = [
        Sample(each, 12_345_678.25, labels[each.name]) for each in metrics if not each.bounds
    ]
    with reserve_port() as port:
        free = port
    async with serve_health(HealthSettings(port=free)) as health, aiohttp.ClientSession() as client:
        health.collectors.append(lambda: samples)
        for metric in (each for each in metrics if each.bounds):
            observed = histogram(metric, health.registry).labels(**labels[metric.name])
            for seconds in (0.01, 7.0, 1000.0):
                observed.observe(seconds)
        async with client.get(f"http://127.0.0.1:{free}/metrics") as answer:
            return await answer.text(), answer.headers["Content-Type"]


@pytest.mark.parametrize("label", ["orders", HOSTILE])
async def test_prometheus_takes_every_metric_with_any_label(label: str) -> None:
    own = {UP, READY}
    text, content_type = await scraped(set(declared().values()) - own, label)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    done = await asyncio.to_thread(check, "check", "metrics", stdin=text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


async def test_prometheus_refuses_what_is_no_exposition() -> None:
    """So that the test above can fail."""
    text, _ = await scraped([])
    text = text.replace("binwright_up 1.0", "binwright_up one")
    done = await asyncio.to_thread(check, "check", "metrics", stdin=text)
    assert done.returncode != 0
