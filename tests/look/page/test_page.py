"""The page in a real browser, fed by what a group's processes would report."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from tests.chromium import Tab, tab
from tests.look.page.group import LIMIT, TOPICS, Group, page, port, serving, table

from binwright.look.page.server import Page
from binwright.protocol.metadata import Held
from binwright.protocol.model import TopicPartition
from binwright.protocol.orders import FreezeOrder
from binwright.testing.control_topics import FakeControlTopics

P = [TopicPartition("orders", number) for number in range(4)]
RATES = (400_000.0, 300_000.0, 500_000.0, 200_000.0)
HOSTILE = "<img src=x onerror=hacked=1>\"'&amp;\u202e</script>__proto__"


@dataclass
class Shown:
    """A group, its page, and a tab that shows it."""

    group: Group
    page: Page
    tab: Tab
    address: str


@contextlib.asynccontextmanager
async def showing(browser: str, group: Group, shown: Page) -> AsyncIterator[Shown]:
    async with serving(shown, group.bus, port()) as address, tab(browser) as opened:
        await opened.size(1200, 900)
        await opened.open(address)
        yield Shown(group, shown, opened, address)


async def two_consumers() -> Group:
    """Consumer 0 is over its limit and writes the table; 1 reads one partition."""
    group = Group()
    await group.claim()
    orders = table(age_s=2.5, pending_bytes=3_000_000, rows=1234, commits=7, committed={P[0]: 40})
    await group.measure(RATES)
    await group.consumer(0, {P[0]: 90, P[1]: 90, P[2]: 90}, writing={"orders": orders})
    await group.consumer(1, {P[3]: 90})
    return group


def block(name: str) -> str:
    return f"""document.querySelector('.block[aria-label^="{name},"]')"""


async def test_consumers_are_bars_and_partitions_are_blocks_as_wide_as_their_rates(
    browser: str,
) -> None:
    async with showing(browser, await two_consumers(), page()) as shown:
        await shown.tab.until("document.querySelectorAll('.bar').length === 2")
        names = await shown.tab.value(
            "[...document.querySelectorAll('.bar')].map("
            "bar => [...bar.querySelectorAll('.block')].map(block => block.textContent))"
        )
        assert names == [["orders-0", "orders-1", "orders-2"], ["orders-3"]]
        widths = await shown.tab.value(
            "[...document.querySelectorAll('.block')].map(block => parseFloat(block.style.width))"
        )
        assert [width / widths[0] for width in widths] == pytest.approx([1, 0.75, 1.25, 0.5], 1e-3)
        label = await shown.tab.value(f"{block('orders-0')}.getAttribute('aria-label')")
        assert label == "orders-0, consumer 0, 400 kB/s, lag 60 records"
        assert not shown.tab.errors


async def test_the_limit_is_a_line_and_a_bar_beyond_it_is_marked(browser: str) -> None:
    async with showing(browser, await two_consumers(), page()) as shown:
        await shown.tab.until("document.querySelectorAll('.bar').length === 2")
        ends = await shown.tab.value(
            "[...document.querySelectorAll('.bar')].map(bar => ["
            "bar.querySelector('.limit').getBoundingClientRect().left,"
            "[...bar.querySelectorAll('.block')].at(-1).getBoundingClientRect().right])"
        )
        (limit, over), (same, within) = ends
        assert limit == pytest.approx(same, abs=2)
        assert over > limit > within
        loads = "[...document.querySelectorAll('.load')].map(load => load.textContent)"
        assert await shown.tab.value(loads) == ["1.2 MB/s, 120 %, over its limit", "200 kB/s, 20 %"]


async def test_a_move_is_seen_where_it_begins_and_where_it_ends(browser: str) -> None:
    group = await two_consumers()
    await group.plan({P[0]: 0, P[1]: 1, P[2]: 0, P[3]: 1}, "consumer 0 is over its limit")
    async with showing(browser, group, page()) as shown:
        await shown.tab.until("document.querySelector('.moving')")
        leaves = await shown.tab.value("document.querySelector('.moving').ariaLabel")
        assert leaves.endswith("moves to consumer 1 (stopping)")
        comes = await shown.tab.value("document.querySelector('.ghost').ariaLabel")
        assert comes == "orders-1, comes to consumer 1 from consumer 0 (stopping)"
        listed = "document.querySelector('#moves-list tbody').innerText"
        assert "consumer 0\tconsumer 1\tstopping" in await shown.tab.value(listed)
        plan = await shown.tab.value("document.getElementById('plan').innerText")
        assert "consumer 0 is over its limit" in plan

        await group.consumer(0, {P[0]: 90, P[2]: 90})
        await group.consumer(1, {P[1]: 90, P[3]: 90})
        await shown.tab.until("document.getElementById('moves').hidden")
        held = "document.querySelectorAll('.bar')[1].querySelector('.blocks').innerText"
        assert "orders-1" in await shown.tab.value(held)
        assert not await shown.tab.value("document.querySelector('.moving, .ghost')")


async def test_a_consumer_that_a_plan_waits_for_has_an_empty_bar(browser: str) -> None:
    group = await two_consumers()
    await group.plan({P[0]: 0, P[1]: 0, P[2]: 2, P[3]: 1})
    async with showing(browser, group, page()) as shown:
        await shown.tab.until("document.querySelectorAll('.bar').length === 3")
        bar = await shown.tab.value("document.querySelectorAll('.bar')[2].innerText")
        assert "consumer 2" in bar
        assert "awaited" in bar
        assert "orders-2" in bar


async def test_a_row_is_explained_by_its_button(browser: str) -> None:
    group = await two_consumers()
    async with showing(browser, group, page()) as shown:
        ask = "document.querySelector('#partitions tbody button[data-what=\"orders-3\"]')"
        await shown.tab.until(ask)
        label = await shown.tab.value(f"{ask}.ariaLabel")
        assert label == "Why orders-3?"
        await shown.tab.value(f"{ask}.click()")
        answer = "document.getElementById('why-answer').innerText"
        await shown.tab.until(f"{answer}.includes('consumer 1 reads it')")
        assert "orders-3" in await shown.tab.value(answer)
        assert await shown.tab.value("document.activeElement.id") == "why-title"
        assert not shown.tab.errors


async def test_questions_are_typed_and_wrong_ones_are_refused(browser: str) -> None:
    async with showing(browser, await two_consumers(), page()) as shown:
        await shown.tab.until("document.querySelectorAll('.bar').length === 2")
        answer = "document.getElementById('why-answer').innerText"
        await shown.tab.value("document.getElementById('why-ask').click()")
        await shown.tab.until(f"{answer}.includes('in 4 partitions, read by 2 consumers')")
        what = "document.getElementById('why-what')"
        await shown.tab.value(f"{what}.value = {HOSTILE!r}, 0")
        await shown.tab.value(
            f"{what}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter'}}))"
        )
        await shown.tab.until(f"{answer}.includes('no table, topic, partition, consumer or plan')")
        assert not await shown.tab.value("window.hacked === 1")


async def test_tables_show_writer_state_age_lag_and_fault(browser: str) -> None:
    group = await two_consumers()
    refused = table(state="refused", fault="column id is no string")
    await group.consumer(1, {P[3]: 90}, writing={"orders": refused})
    async with showing(browser, group, page()) as shown:
        row = await shown.tab.until("document.querySelector('#tables tbody tr')?.innerText")
        assert row.split("\t")[:3] == [
            "orders",
            "✕ refused: column id is no string",
            "consumer 1",
        ]
        message = await shown.tab.until("document.querySelector('.message.fault')?.textContent")
        assert message == "1 table takes nothing: see the faults below."


async def test_a_waiting_plan_shows_how_to_approve_it(browser: str) -> None:
    group = await two_consumers()
    number = await group.propose(
        {P[0]: 0, P[1]: 0, P[2]: 0, P[3]: 1}, {P[0]: 0, P[1]: 1, P[2]: 0, P[3]: 1}
    )
    async with showing(browser, group, page()) as shown:
        await shown.tab.until("!document.getElementById('proposal').hidden")
        message = await shown.tab.value("document.getElementById('proposal').innerText")
        assert f"Plan {number} waits for approval" in message
        assert f"binwright approve {number} --group eu" in message
        assert "orders-1\tconsumer 0\tconsumer 1" in message


async def test_names_are_text_whatever_they_hold(browser: str) -> None:
    group = Group()
    await group.claim(HOSTILE)
    await group.measure([500_000.0])
    faulty = table(state="refused", fault=HOSTILE)
    await group.consumer(0, {P[0]: 90}, writing={"orders": faulty})
    await group.plan({P[0]: 1}, HOSTILE)
    async with showing(browser, group, page(pattern=True)) as shown:
        await shown.tab.until("document.querySelector('.block')")
        names = await shown.tab.value(
            "['#controller', '#tables', '#plan-reasons li', '#news']"
            ".map(found => document.querySelector(found))"
            ".map(found => found.title + found.textContent)"
        )
        assert all(HOSTILE in name for name in names), names
        await shown.tab.value("document.querySelector('.block').focus()")
        await shown.tab.until("performance.getEntriesByName(location.href + 'view').length > 2")
        assert await shown.tab.value("[document.querySelector('img'), typeof hacked]") == [
            None,
            "undefined",
        ]
        assert not shown.tab.errors


async def test_nothing_is_loaded_from_elsewhere_and_the_browser_would_refuse_it(
    browser: str,
) -> None:
    async with showing(browser, await two_consumers(), page()) as shown:
        await shown.tab.until("document.querySelector('.block')")
        await shown.tab.until("performance.getEntriesByName(location.href + 'view').length > 1")
        assert {r.startswith(shown.address) for r in shown.tab.requests} == {True}
        refused = await shown.tab.value(
            "new Promise(found => {"
            "  const directives = [];"
            "  addEventListener('securitypolicyviolation', event => {"
            "    directives.push(event.effectiveDirective);"
            "    if (directives.length === 3) found(directives.sort());"
            "  });"
            "  fetch('http://127.0.0.1:1/').catch(() => {});"
            "  new Image().src = 'http://127.0.0.1:1/';"
            "  try { document.body.innerHTML = '<b>'; } catch {}"
            "  setTimeout(() => found(directives), 5000);"
            "})"
        )
        assert refused == ["connect-src", "img-src", "require-trusted-types-for"]


async def test_a_server_outage_is_shown_and_the_page_recovers(
    browser: str,
) -> None:
    group, at = await two_consumers(), port()
    async with tab(browser) as opened:
        async with serving(page(), group.bus, at) as address:
            await opened.open(address)
            await opened.until("document.querySelectorAll('.bar').length === 2")
        message = await opened.until("document.querySelector('.message.fault')?.textContent")
        while "server of this page" not in message:
            message = await opened.until("document.querySelector('.message.fault')?.textContent")
        assert "has not answered since" in message
        assert await opened.value("document.title") == "(!) binwright · eu"
        assert await opened.value("document.querySelectorAll('.bar').length") == 2
        await group.consumer(2, {})
        async with serving(page(), group.bus, at):
            await opened.until("document.querySelectorAll('.bar').length === 3")
            await opened.until("!document.documentElement.hasAttribute('data-lost')")
            shown = await opened.value("document.getElementById('messages').textContent")
            assert "server of this page" not in shown


async def test_an_unreachable_kafka_is_shown_and_the_last_state_stays(browser: str) -> None:
    group = Group(FakeControlTopics(TOPICS, patience_s=1.0))
    await group.claim()
    await group.consumer(0, {P[0]: 90})
    async with showing(browser, group, page()) as shown:
        await shown.tab.until("document.querySelector('.block')")
        await group.bus.go_down()
        await shown.tab.until(
            "document.getElementById('messages').textContent.startsWith('Kafka cannot be reached')"
        )
        assert await shown.tab.value("document.querySelector('.block') !== null")
        await group.bus.come_up()
        await shown.tab.until("!document.documentElement.hasAttribute('data-lost')")


@pytest.mark.parametrize(
    ("topics", "message"),
    [({}, "There is no group “eu” on this Kafka yet"), (TOPICS, "nothing has been reported")],
)
async def test_a_missing_group_is_shown(browser: str, topics: dict[str, int], message: str) -> None:
    async with showing(browser, Group(FakeControlTopics(topics)), page()) as shown:
        text = "document.getElementById('messages').textContent"
        await shown.tab.until(f"{text}.includes('{message}')")
        assert await shown.tab.value("document.getElementById('group-view').hidden")


async def test_without_a_monitor_blocks_are_equally_wide_with_the_reason(
    browser: str,
) -> None:
    group = Group()
    await group.claim()
    await group.consumer(0, {P[0]: 90, P[1]: 90})
    async with showing(browser, group, page()) as shown:
        await shown.tab.until("document.querySelectorAll('.block').length === 2")
        widths = await shown.tab.value(
            "[...document.querySelectorAll('.block')].map(block => block.style.width)"
        )
        assert len(set(widths)) == 1
        message = await shown.tab.value("document.getElementById('messages').textContent")
        assert "No monitor has measured" in message


async def test_a_large_group_is_shown_in_pages_and_found_by_words(browser: str) -> None:
    """1,000 consumers and 10,000 partitions cost the document what 50 bars cost."""
    group, consumers = Group(), 1000
    await group.claim()
    await group.measure([20_000.0 + number for number in range(10 * consumers)])
    for slot in range(consumers):
        first = 10 * slot
        reading = {TopicPartition("orders", n): 90 for n in range(first, first + 10)}
        await group.consumer(slot, reading)
    async with showing(browser, group, page()) as shown, asyncio.timeout(60):
        await shown.tab.until("document.querySelectorAll('.bar').length === 50")
        assert await shown.tab.value("document.querySelectorAll('*').length") < 2_000
        pages = "document.querySelector('#consumers .pager span').textContent"
        assert await shown.tab.value(pages) == "1 to 50 of 1,000"
        await shown.tab.value("document.querySelector('#bars [tabindex=\"0\"]').focus()")
        await shown.tab.press("PageDown")
        assert await shown.tab.value("document.activeElement.innerText.split('\\n')[0]") == (
            "consumer 50"
        )
        await shown.tab.value(
            "document.getElementById('find').value = 'orders-9995';"
            "document.getElementById('find').dispatchEvent(new Event('input'))"
        )
        bars = "[...document.querySelectorAll('.bar b')].map(bar => bar.textContent)"
        assert await shown.tab.value(bars) == ["consumer 999"]


async def test_small_partitions_are_one_block_together(browser: str) -> None:
    group = Group()
    await group.claim()
    await group.measure([LIMIT / 2, *[LIMIT / 1000] * 20])
    await group.consumer(0, {TopicPartition("orders", n): 90 for n in range(21)})
    async with showing(browser, group, page()) as shown:
        await shown.tab.until("document.querySelector('.merged')")
        labels = await shown.tab.value(
            "[...document.querySelectorAll('.block')].map(block => block.ariaLabel)"
        )
        assert labels == [
            "orders-0, consumer 0, 500 kB/s, lag 100 records",
            "20 small partitions, consumer 0, 20 kB/s, lag 2,000 records; Enter lists them",
        ]


async def test_the_charts_show_what_was_before_the_page_was_opened(browser: str) -> None:
    group, before = await two_consumers(), page()
    async with serving(before, group.bus, port()) as address, tab(browser) as opened:
        async with asyncio.timeout(20):
            while before.live.problem:  # noqa: ASYNC110 - the topics are being read
                await asyncio.sleep(0.01)
        for second in range(0, 600, 5):
            found = before._status(before.now_ms())
            at_ms = before.now_ms() - 1000 * (600 - second)
            before.history.add(at_ms, found)
        await opened.open(address)
        path = "document.querySelector('.plot path').getAttribute('d')"
        await opened.until(f"(({path}) ?? '').split('L').length > 100")
        await opened.value("document.querySelector('.plot').focus()")
        await opened.press("Home")
        first = await opened.value("document.querySelector('.plot').ariaValueText")
        assert first.endswith("written 1.4 MB/s, staged 2.0 kB/s, limit of all 2.0 MB/s")
        assert await opened.value("document.querySelector('.plot').ariaValueNow") == "0"


async def test_orders_and_what_they_hold_back_are_listed_as_text(browser: str) -> None:
    group = await two_consumers()
    async with showing(browser, group, page()) as shown:
        await shown.tab.until("document.querySelectorAll('.bar').length === 2")
        assert await shown.tab.value("document.getElementById('orders').hidden")
        await group.give(FreezeOrder(frozen=True, by="alice", reason=HOSTILE))
        await group.post(Held(term=0, reasons=(f"frozen; waits: {HOSTILE}",)))
        await shown.tab.until("!document.getElementById('orders').hidden")
        found = await shown.tab.value(
            "['orders-list', 'held-list'].map(id => document.getElementById(id).innerText)"
        )
        assert found[0].startswith("moves are frozen, by alice, ")
        assert "onerror=hacked" in found[0]
        assert found[1].startswith("frozen; waits: <img src=x onerror=hacked=1>")
        await group.give(FreezeOrder(frozen=False, by="alice"))
        await group.post(Held(term=0, reasons=()))
        await shown.tab.until("document.getElementById('orders').hidden")
        assert await shown.tab.value("typeof hacked") == "undefined"
        assert not shown.tab.errors
