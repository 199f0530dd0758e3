"""What the page looks like, and the way through it without a mouse."""

import pytest
from tests.chromium import Tab
from tests.look.page.group import Group, page, table
from tests.look.page.test_page import Shown, showing, two_consumers

from binwright.protocol.model import TopicPartition

BACK = "getComputedStyle(document.documentElement).backgroundColor"
# WCAG's contrast of each text with what is behind it: [contrast, text] of those below 4.5.
FAINT = """
(() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const found = getComputedStyle(at).backgroundColor;
      if (!found.endsWith(', 0)')) return found;
    }
  };
  const found = [];
  for (const node of document.querySelectorAll('body *')) {
    const text = [...node.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!text || !node.checkVisibility() || node.closest('[aria-disabled=true]')) continue;
    const pair = [light(getComputedStyle(node).color), light(behind(node))].sort();
    const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < 4.5) found.push([contrast, node.textContent]);
  }
  return found;
})()
"""


async def everything() -> Group:
    """Every colour of a block, every kind of message, and each state of a table."""
    group = await two_consumers()
    topics = [f"topic-{number}" for number in range(8)]
    first = [TopicPartition(topic, 0) for topic in topics]
    for topic in topics:
        await group.measure([90_000.0, 10.0, 10.0, 10.0], topic)
    small = [TopicPartition(topics[0], n) for n in (1, 2, 3)]
    states = {
        topics[0]: table(state="refused", fault="a column is missing"),
        topics[1]: table(state="claiming"),
    }
    await group.consumer(2, dict.fromkeys([*first, *small], 5), writing=states)
    await group.consumer(3, {}, ready=False)
    await group.plan({**dict.fromkeys(first, 2), first[0]: 1, first[1]: 4})
    await group.propose(dict.fromkeys(first, 2), dict.fromkeys(first, 1))
    return group


def every_topic() -> tuple[str, ...]:
    return ("orders", *(f"topic-{number}" for number in range(8)))


async def drawn(shown: Shown) -> Tab:
    await shown.tab.until("document.querySelectorAll('.ghost').length === 2")
    return shown.tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_text_can_be_read_in_light_and_in_dark(browser: str, scheme: str) -> None:
    async with showing(browser, await everything(), page(*every_topic())) as shown:
        await shown.tab.prefer(prefers_color_scheme=scheme)
        opened = await drawn(shown)
        assert await opened.value(FAINT) == []
        assert (
            await opened.value(BACK)
            == {
                "light": "rgb(255, 255, 255)",
                "dark": "rgb(20, 23, 27)",
            }[scheme]
        )


async def test_the_switch_overrides_the_system_and_is_remembered(browser: str) -> None:
    async with showing(browser, await two_consumers(), page()) as shown:
        opened = shown.tab
        await opened.prefer(prefers_color_scheme="light")
        await opened.until("document.querySelector('.block')")
        await opened.value("theme.value = 'dark'; theme.dispatchEvent(new Event('change'))")
        assert await opened.value(BACK) == "rgb(20, 23, 27)"
        await opened.open(shown.address)
        await opened.until("document.querySelector('.block')")
        assert await opened.value(f"[theme.value, {BACK}]") == ["dark", "rgb(20, 23, 27)"]


async def test_a_narrow_screen_needs_no_scrolling_sideways(browser: str) -> None:
    async with showing(browser, await everything(), page(*every_topic())) as shown:
        await shown.tab.size(320, 800)
        opened = await drawn(shown)
        width, wide = await opened.value(
            "[innerWidth, [...document.querySelectorAll('body *')]"
            ".filter(e => e.checkVisibility() && !e.closest('.skip, .blocks')"
            "   && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML)]"
        )
        assert (width, wide) == (320, [])
        assert await opened.value("document.documentElement.scrollWidth <= 320")
        # Neither bars beside their names nor tables of eight columns could be read here.
        widths = await opened.value(
            "['.track', '#tables td', '#partitions td'].map(found =>"
            " document.querySelector(found).getBoundingClientRect().width)"
        )
        assert min(widths) > 250


async def test_who_wants_less_motion_gets_none(browser: str) -> None:
    async with showing(browser, await two_consumers(), page()) as shown:
        opened = shown.tab
        await opened.until("document.querySelector('.block')")
        moving = "getComputedStyle(document.querySelector('.block')).transitionDuration"
        assert await opened.value(moving) == "0.4s"
        await opened.prefer(prefers_reduced_motion="reduce")
        assert await opened.value(moving) == "0s"


LABEL = "document.activeElement.ariaLabel?.split(',')[0] ?? document.activeElement.id"


async def test_the_bars_are_walked_by_keys(browser: str) -> None:
    async with showing(browser, await two_consumers(), page()) as shown:
        opened = shown.tab
        await opened.until("document.querySelectorAll('.block').length === 4")
        found = []
        for _ in range(5):
            await opened.press("Tab")
            found.append(await opened.value(LABEL))
        assert found == ["", "theme", "order", "find", "consumer 0"]
        outline = "getComputedStyle(document.activeElement).outlineWidth"
        assert await opened.value(outline) == "3px"

        for key, at in (
            ("ArrowRight", "orders-0"),
            ("ArrowRight", "orders-1"),
            ("ArrowDown", "orders-3"),
            ("ArrowUp", "orders-0"),
            ("End", "orders-2"),
            ("ArrowRight", "orders-2"),
            ("Home", "consumer 0"),
            ("ArrowDown", "consumer 1"),
        ):
            await opened.press(key)
            assert await opened.value(LABEL) == at, key
        inspected = await opened.value("document.getElementById('inspector').textContent")
        assert inspected.startswith("consumer 1, ready, 200 kB/s, 20 % of its limit")

        await opened.press("Enter")
        assert await opened.value("document.activeElement.id") == "partitions-title"
        listed = "document.querySelector('#partitions tbody').innerText"
        assert (await opened.value(listed)).split("\t")[:2] == ["orders-3", "consumer 1"]


async def test_tab_leaves_the_bars_at_once(browser: str) -> None:
    async with showing(browser, await two_consumers(), page()) as shown:
        opened = shown.tab
        await opened.until("document.querySelectorAll('.block').length === 4")
        await opened.value("document.querySelector('#bars [tabindex=\"0\"]').focus()")
        await opened.press("ArrowRight", "Tab")
        assert not await opened.value("bars.contains(document.activeElement)")
        assert await opened.value("document.querySelectorAll('#bars [tabindex=\"0\"]').length") == 1


async def test_the_focus_stays_at_the_consumer_whose_partition_moves_away(browser: str) -> None:
    group = await two_consumers()
    orders = [TopicPartition("orders", number) for number in range(4)]
    async with showing(browser, group, page()) as shown:
        opened = shown.tab
        await opened.until("document.querySelectorAll('.block').length === 4")
        await opened.value("document.querySelectorAll('.block')[1].focus()")
        assert await opened.value(LABEL) == "orders-1"
        await group.consumer(1, dict.fromkeys((orders[1], orders[3]), 90))
        await group.consumer(0, dict.fromkeys((orders[0], orders[2]), 90))
        await opened.until("document.querySelectorAll('.bar')[1].innerText.includes('orders-1')")
        assert await opened.value(LABEL) == "consumer 0"
