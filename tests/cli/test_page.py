"""The live page in a browser."""

import asyncio

import aiohttp
import pytest

from binwright.cli.page import Page
from binwright.core import wire
from binwright.core.messages import Claim, Hello, Report, TableReport
from binwright.core.model import Slot, TopicPartition
from binwright.embedded.ports import reserved
from binwright.shell.http import answering
from binwright.shell.run import meanwhile
from binwright.shell.settings import load_settings
from binwright.testing.bus import FakeBus

TOPICS = {"eu.metadata": 1, "binwright.metrics": 1}


def page() -> Page:
    return Page(load_settings(group="eu", topics=("orders",)))


async def claimed(bus: FakeBus, name: str) -> None:
    await bus.publish("eu.metadata", 0, b"claim", wire.encode(Claim(controller=name)))


@pytest.mark.looptime
async def test_it_shows_what_the_topics_say() -> None:
    bus, shown = FakeBus(TOPICS), page()
    await claimed(bus, "c1")
    async with meanwhile(shown.follow(bus)):
        await asyncio.sleep(3)
    assert "binwright · eu" in shown.html().body.decode()
    assert "a controller claims (term 0)" in shown.fragment().body.decode()
    assert b'"controller":"c1"' in shown.facts().body


async def landing(bus: FakeBus) -> None:
    hello = Hello(slot=Slot(0), process="a", version="1")
    epoch = await bus.publish("eu.metadata", 0, b"hello", wire.encode(hello))
    orders = TopicPartition("orders", 0)
    table = TableReport(state="landing", committed={orders: 7}, age_s=1.5, pending_bytes=9)
    report = Report(
        slot=Slot(0),
        epoch=epoch,
        term=0,
        ready=True,
        reading={orders: 8},
        writing={"orders": table},
        staged_bytes=9,
    )
    await bus.publish("eu.metadata", 0, b"report", wire.encode(report))


@pytest.mark.looptime
async def test_it_has_a_line_for_each_table() -> None:
    bus, shown = FakeBus(TOPICS), page()
    await claimed(bus, "c1")
    await landing(bus)
    async with meanwhile(shown.follow(bus)):
        await asyncio.sleep(3)
    told = shown.fragment().body.decode()
    assert "1.5 s" in told
    assert "consumer 0 writes the table orders" in told


@pytest.mark.looptime
async def test_prometheus_gets_the_numbers_of_consumers_and_tables() -> None:
    bus, shown = FakeBus(TOPICS), page()
    await claimed(bus, "c1")
    await landing(bus)
    async with meanwhile(shown.follow(bus)):
        await asyncio.sleep(3)
    told = shown.metrics().body.decode()
    assert '\nbinwright_table_pending_bytes{group="eu",topic="orders"} 9\n' in told
    assert '\nbinwright_table_refused{group="eu",topic="orders"} 0\n' in told
    assert '\nbinwright_consumer_staged_bytes{group="eu",slot="0"} 9\n' in told
    assert "# TYPE binwright_table_commits_total counter\n" in told


@pytest.mark.looptime
async def test_topics_that_are_not_there_yet_are_told_and_waited_for() -> None:
    bus, shown = FakeBus(), page()
    async with meanwhile(shown.follow(bus)):
        await asyncio.sleep(3)
        assert "eu.metadata" in shown.trouble
        for topic in TOPICS:
            await bus.ensure(topic, 1, {})
        await claimed(bus, "c1")
        await asyncio.sleep(3)
    assert "a controller claims" in shown.fragment().body.decode()
    assert not shown.trouble


def test_what_others_write_is_text_and_no_markup() -> None:
    shown = page()
    shown.trouble = "<script>[red]"
    told = shown.fragment().body.decode()
    assert "<script>" not in told
    assert "[red]" in told


async def test_browsers_get_it() -> None:
    with reserved() as port:
        free = port
    shown = page()
    async with (
        answering({"/": shown.html}, "127.0.0.1", free, "page"),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{free}/") as answer,
    ):
        assert answer.status == 200
        assert answer.content_type == "text/html"
        assert "<title>binwright</title>" in await answer.text()
