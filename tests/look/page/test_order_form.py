"""Orders that are given in a real browser, and those that another site's page tries to give."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from tests.chromium import Tab, tab
from tests.look.page.group import TOPICS, Group, page, port, serving
from tests.look.page.test_page import two_consumers

from binwright.local.server import HOST
from binwright.look.page.order_desk import OrderDesk
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.group import load_settings
from binwright.runtime.web import basic_login
from binwright.testing.control_topics import FakeControlTopics

TOKEN = "of this test"  # noqa: S105 - of this test
RESULT = "document.getElementById('give-result').textContent"
ORDERS = "[...document.querySelectorAll('#orders-list li')].map(line => line.textContent)"


@dataclass
class Steered:
    """A group, a tab that shows its page, and the orders that were given."""

    group: Group
    tab: Tab
    address: str
    given: Sequence[str]

    async def choose(self, order: str, **fields: str) -> None:
        """Choose an order, and fill its fields."""
        await self.tab.value(
            f"(() => {{ const form = document.getElementById('give-form');"
            f"form.elements.order.value = '{order}';"
            "form.elements.order.dispatchEvent(new Event('change')); })()"
        )
        for name, value in fields.items():
            found = f"document.getElementById('give-form').elements.{name}"
            assert await self.tab.value(f"{found}.checkVisibility()"), name
            await self.tab.value(f"{found}.value = '{value}'")

    async def press(self) -> None:
        await self.tab.value("document.querySelector('#give-form button').focus()")
        await self.tab.press("Enter")


@contextlib.asynccontextmanager
async def steered(browser: str, directory: Path) -> AsyncIterator[Steered]:
    """Show the page of a group to a browser that keeps its token, as for a user and password."""
    group, token, given = await two_consumers(), directory / "token", list[str]()
    token.write_text(TOKEN)

    def connect() -> contextlib.nullcontext[FakeControlTopics]:
        return contextlib.nullcontext(group.bus)

    settings = load_settings(group="eu", topics=("orders",))
    desk = OrderDesk(settings, connect, given.append)
    async with (
        serving(page(desk=desk), group.bus, port(), token) as address,
        tab(browser) as opened,
    ):
        login = {"Authorization": basic_login("ann", TOKEN)}
        await opened.send("Network.setExtraHTTPHeaders", headers=login)
        await opened.open(address)
        await opened.until("!document.getElementById('give').hidden")
        yield Steered(group, opened, address, given)


async def test_an_order_is_given_by_keys_and_shown(browser: str, tmp_path: Path) -> None:
    async with steered(browser, tmp_path) as shown:
        await shown.choose("pin", what="orders-1", number="1", reason="its cache", until="2h")
        await shown.press()
        await shown.tab.until(f"{RESULT} === 'orders-1 is pinned to consumer 1.'")
        await shown.tab.until(f"{ORDERS}.some(line => line.includes('ann by the page'))")
        assert await shown.tab.value("document.activeElement.type") == "submit"
        await shown.choose("unpin", what="orders-1")
        await shown.press()
        await shown.tab.until(f"{RESULT}.includes('is lifted')")
        await shown.tab.until(f"!{ORDERS}.length")
        assert len(shown.given) == 2
        assert not shown.tab.errors


async def test_what_is_wrong_with_an_order_is_shown(browser: str, tmp_path: Path) -> None:
    async with steered(browser, tmp_path) as shown:
        await shown.choose("pin", what="elsewhere-1", number="1", reason="r")
        await shown.press()
        await shown.tab.until(f"{RESULT}.startsWith('Not done: elsewhere-1: no partition')")
        await shown.choose("freeze", reason="")
        await shown.press()
        assert await shown.tab.value("document.querySelector('#give-form :invalid').name") == (
            "reason"
        )
        assert not shown.given


async def test_every_order_has_its_fields(browser: str, tmp_path: Path) -> None:
    """As the commands have them: what is not asked for is not shown."""
    async with steered(browser, tmp_path) as shown:
        found = {}
        for order in await shown.tab.value(
            "[...document.getElementById('give-form').elements.order.options].map(o => o.value)"
        ):
            await shown.choose(order)
            found[order] = await shown.tab.value(
                "[...document.querySelectorAll('#give-form input')]"
                ".filter(i => i.checkVisibility()).map(i => i.name)"
            )
        assert found == {
            "freeze": ["reason", "until"],
            "unfreeze": [],
            "pin": ["what", "number", "reason", "until"],
            "unpin": ["what"],
            "cordon": ["number", "reason", "until"],
            "drain": ["number", "reason", "until"],
            "uncordon": ["number"],
            "scale": ["number", "reason", "until"],
            "unscale": [],
            "adopt": ["number", "reason", "until"],
            "unadopt": ["what"],
            "pause": ["what", "reason"],
            "resume": ["what"],
            "approve": ["number"],
        }


async def test_a_plan_that_waits_leads_to_its_approval(browser: str, tmp_path: Path) -> None:
    async with steered(browser, tmp_path) as shown:
        orders = TopicPartition("orders", 0)
        number = await shown.group.propose({orders: 0}, {orders: 1})
        await shown.tab.until("document.getElementById('proposal-approve').checkVisibility()")
        await shown.tab.value("document.getElementById('proposal-approve').click()")
        form = "document.getElementById('give-form').elements"
        chosen = await shown.tab.value(f"[{form}.order.value, {form}.number.value]")
        assert chosen == ["approve", str(number)]
        assert await shown.tab.value("document.activeElement.type") == "submit"


async def test_a_page_that_takes_no_orders_shows_no_form(browser: str) -> None:
    group = await two_consumers()
    async with serving(page(), group.bus, port()) as address, tab(browser) as opened:
        await opened.open(address)
        await opened.until("document.querySelectorAll('.bar').length === 2")
        assert await opened.value("document.getElementById('give').hidden")


async def test_a_page_of_another_site_gives_no_order(browser: str, tmp_path: Path) -> None:
    """The browser sends the password that it keeps, whoever asks for the request."""
    async with steered(browser, tmp_path) as shown:
        ends = {topic: await shown.group.bus.end(topic, 0) for topic in TOPICS}
        async with another_site() as site:
            await shown.tab.open(site)
            for kind in ("text/plain", "application/json"):
                await shown.tab.value(
                    f"fetch('{shown.address}orders', {{method: 'POST', mode: 'no-cors',"
                    f" headers: {{'Content-Type': '{kind}'}},"
                    """ body: '{"order": "freeze", "reason": "r"}'}).then(() => 1, () => 0)"""
                )
        assert {topic: await shown.group.bus.end(topic, 0) for topic in TOPICS} == ends
        assert not shown.given


@contextlib.asynccontextmanager
async def another_site() -> AsyncIterator[str]:
    async def serve(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>x</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        at = port()
        await web.TCPSite(runner, HOST, at).start()
        yield f"http://{HOST}:{at}/"
    finally:
        await runner.cleanup()
