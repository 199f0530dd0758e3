"""Prometheus takes what each service answers at `/metrics`, and finds no fault with the names."""

import asyncio
from collections.abc import Collection

import aiohttp
import pytest
from tests.prometheus_programs import check

from binwright.local.server import reserve_port
from binwright.runtime.health import serve_health
from binwright.runtime.metrics import METRICS, Sample, histogram
from binwright.runtime.settings import HealthSettings

HOSTILE = 'a "b"\\c\nd{}, é'


async def scraped(names: Collection[str], label: str = "") -> tuple[str, str]:
    """Return what a service with these metrics answers over HTTP: the text, and its type."""
    labels = {name: dict.fromkeys(METRICS[name].labels, label) for name in names}
    samples = [
        Sample(name, 12_345_678.25, labels[name]) for name in names if not METRICS[name].bounds
    ]
    with reserve_port() as port:
        free = port
    async with serve_health(HealthSettings(port=free)) as health, aiohttp.ClientSession() as client:
        health.collectors.append(lambda: samples)
        for name in names:
            if METRICS[name].bounds:
                observed = histogram(name, health.registry).labels(**labels[name])
                for seconds in (0.01, 7.0, 1000.0):
                    observed.observe(seconds)
        async with client.get(f"http://127.0.0.1:{free}/metrics") as answer:
            return await answer.text(), answer.headers["Content-Type"]


@pytest.mark.parametrize("label", ["orders", HOSTILE])
async def test_prometheus_takes_every_metric_with_any_label(label: str) -> None:
    own = {"binwright_up", "binwright_ready"}
    text, content_type = await scraped(METRICS.keys() - own, label)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    done = await asyncio.to_thread(check, "check", "metrics", stdin=text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


async def test_prometheus_refuses_what_is_no_exposition() -> None:
    """So that the test above can fail."""
    text, _ = await scraped([])
    text = text.replace("binwright_up 1.0", "binwright_up one")
    done = await asyncio.to_thread(check, "check", "metrics", stdin=text)
    assert done.returncode != 0
