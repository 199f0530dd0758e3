"""What browsers, programs and Prometheus are answered."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any

import orjson
import pytest
from tests.exposition import value
from tests.look.page.group import LIMIT, Group, page, table

from binwright.look.page import snapshot
from binwright.look.page.server import POINTS, QUESTIONS, STEP_S, Page, document_paths
from binwright.protocol.model import TopicPartition
from binwright.runtime.http import Response
from binwright.runtime.run import background_tasks

pytestmark = pytest.mark.looptime

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)


@contextlib.asynccontextmanager
async def following(group: Group, shown: Page) -> AsyncIterator[None]:
    connected = contextlib.nullcontext(group.bus)
    async with background_tasks(shown.live.run(lambda: connected), shown.sample_history()):
        await asyncio.sleep(3)
        yield


def body(response: Response) -> Any:
    return orjson.loads(response.body)


async def landing() -> Group:
    """Consumer 0 reads both partitions and writes the table; one moves to consumer 1."""
    group = Group()
    await group.claim()
    await group.measure([400.4, None])
    orders = table(committed={P: 40}, age_s=1.5, pending_bytes=9, rows=3, commits=2)
    await group.consumer(0, {P: 90, Q: 90}, writing={"orders": orders}, staged_bytes=9)
    await group.consumer(1, {})
    await group.plan({P: 0, Q: 1})
    await group.propose({P: 0, Q: 0}, {P: 1, Q: 0})
    return group


async def test_programs_get_the_status_and_prometheus_the_numbers() -> None:
    group, shown = await landing(), page()
    async with following(group, shown):
        assert body(shown.status_json())["controller"] == "c1"
        reply = shown.metrics().body.decode()
    of_table = {"group": "eu", "topic": "orders", "table": "orders"}
    assert value(reply, "table_pending_bytes", **of_table) == 9
    assert value(reply, "table_refused", **of_table) == 0
    assert value(reply, "consumer_staged_bytes", group="eu", slot="0") == 9
    assert value(reply, "move_pause_seconds_count", group="eu") == 0
    assert "# TYPE binwright_table_commits_total counter\n" in reply


async def test_the_page_gets_each_partition_with_its_rate_and_lag() -> None:
    group, shown = await landing(), page()
    async with following(group, shown):
        found = body(shown.view_json())
    assert found["topics"] == ["orders"]
    first, second = found["consumers"]
    assert first["partitions"] == [[0, 0, 400, 60], [0, 1, None, 100]]
    assert (first["load"], first["limit"], first["lag"]) == (400, LIMIT, 160)
    assert (second["slot"], second["partitions"]) == (1, [])
    assert found["moves"] == [[0, 1, 0, 1, "stopping"]]
    assert found["proposal"]["changes"] == [[0, 0, 0, 1]]
    assert found["tables"][0]["age_s"] > 1.5
    assert found["problem"] is None


@pytest.mark.parametrize(("fault", "lands"), [("", 1), ("Spark does not answer", 0)])
async def test_prometheus_gets_whether_a_table_lands(fault: str, lands: int) -> None:
    group, shown = Group(), page()
    await group.consumer(0, {P: 1}, writing={"orders": table(fault=fault)})
    async with following(group, shown):
        reply = shown.metrics().body.decode()
    labels = {"group": "eu", "topic": "orders", "table": "orders"}
    assert value(reply, "table_landing", **labels) == lands


async def test_prometheus_gets_the_number_of_consumers_that_live() -> None:
    """Those that are silent count no more: no controller may be there to declare them dead."""
    group, shown = await landing(), page()
    async with following(group, shown):
        assert value(shown.metrics().body.decode(), "group_consumers", group="eu") == 2
        await asyncio.sleep(11)
        assert value(shown.metrics().body.decode(), "group_consumers", group="eu") == 0


async def test_partitions_without_a_reader_have_their_rate_and_lag_too() -> None:
    group, shown = Group(), page()
    await group.measure([400.0])
    await group.consumer(0, {})
    async with following(group, shown):
        assert body(shown.view_json())["unread"] == [[0, 0, 400, 100]]


async def test_each_consumer_has_its_own_limit() -> None:
    group, shown = await landing(), page()
    await group.claim(slot_limits=((1, 5.0),))
    async with following(group, shown):
        limits = [each["limit"] for each in body(shown.view_json())["consumers"]]
        history = body(shown.history_json())
    assert limits == [LIMIT, 5.0]
    assert dict(zip(history["fields"], history["points"][0], strict=True))["limit"] == LIMIT + 5


async def test_topics_keep_their_numbers_when_partitions_move() -> None:
    """They decide on a topic's colour."""
    group, shown = Group(), page("a", "b")
    first, second = TopicPartition("a", 0), TopicPartition("b", 0)
    await group.consumer(0, {first: 1})
    await group.consumer(1, {second: 1})
    async with following(group, shown):
        before = body(shown.view_json())["topics"]
        await group.consumer(0, {second: 1})
        await group.consumer(1, {first: 1})
        await asyncio.sleep(3)
        assert body(shown.view_json())["topics"] == before == ["a", "b"]


async def test_browsers_share_a_view_that_is_a_second_old_at_most() -> None:
    group, shown = await landing(), page()
    async with following(group, shown):
        before = shown.view_json().body
        await group.consumer(2, {})
        await asyncio.sleep(0.9)
        assert shown.view_json().body == before
        await asyncio.sleep(0.2)
        assert len(body(shown.view_json())["consumers"]) == 3


async def test_a_view_that_takes_long_is_made_as_rarely() -> None:
    """The larger the group, the older its view: it costs a tenth of a core, whatever it holds."""
    took = iter([0.0, 0.5])  # s
    shown = page()
    shown.stopwatch = lambda: next(took, 0.5)
    before = shown.view_json().body
    await asyncio.sleep(4.9)
    assert shown.view_json().body == before
    await asyncio.sleep(0.2)
    assert shown.view_json().body != before


async def test_each_question_is_answered_once_from_one_look_at_the_group() -> None:
    """So who asks again and again, or about all there is, costs no more than a page."""
    group, shown = await landing(), page()
    async with following(group, shown):
        looks, clock = [0], shown.now_ms

        def looked() -> int:
            looks[0] += 1
            return clock()

        shown.now_ms = looked
        first = shown.explanation_json("consumer 0")
        for what in ("", "consumer 1", "orders", "orders-0", *(f"consumer 1{n}" for n in range(9))):
            assert shown.explanation_json(what).status == HTTPStatus.OK
            assert shown.explanation_json("nothing").status == HTTPStatus.NOT_FOUND
        assert shown.explanation_json("consumer 0") is first
        assert looks == [1]
        await asyncio.sleep(1.1)
        assert shown.explanation_json("consumer 0") is not first


async def test_the_longer_questions_take_the_older_the_group_that_they_are_about() -> None:
    took = iter([0.0, 0.0, 0.0, 0.5])  # s: the look, and the answer
    shown = page()
    shown.stopwatch = lambda: next(took, 0.5)
    first = shown.explanation_json("")
    await asyncio.sleep(5.9)
    assert shown.explanation_json("") is first
    await asyncio.sleep(0.2)
    assert shown.explanation_json("") is not first


async def test_of_questions_without_end_a_thousand_are_answered() -> None:
    shown = page()
    for number in range(QUESTIONS):
        assert shown.explanation_json("0" * number + "1").status == HTTPStatus.OK
    assert shown.explanation_json("2").status == HTTPStatus.TOO_MANY_REQUESTS
    assert shown.explanation_json("1").status == HTTPStatus.OK
    await asyncio.sleep(600)
    assert shown.explanation_json("2").status == HTTPStatus.OK


async def test_an_hour_is_remembered_and_not_more() -> None:
    group, shown = await landing(), page()
    async with following(group, shown):
        await asyncio.sleep(STEP_S * POINTS + 100)
        points = body(shown.history_json())["points"]
    assert len(points) == POINTS
    assert points[-1][0] - points[0][0] == pytest.approx(3_600_000, rel=0.01)


async def test_what_is_not_known_is_not_remembered() -> None:
    group, shown = await landing(), page()
    group.bus.patience_s = 5.0
    async with following(group, shown):
        await group.bus.go_down()
        await asyncio.sleep(20)
        before = len(body(shown.history_json())["points"])
        await asyncio.sleep(100)
        assert len(body(shown.history_json())["points"]) == before
        await group.bus.come_up()
        await asyncio.sleep(20)
        assert len(body(shown.history_json())["points"]) > before


async def test_every_field_is_described() -> None:
    group, shown = await landing(), page()
    async with following(group, shown):
        view, history = body(shown.view_json()), body(shown.history_json())
    described = set(re.findall(r"`([a-z_]+)`", str(snapshot.__doc__)))
    names = {*fields(view), *fields(history), *history["fields"]}
    assert names - described == set()


def fields(value: object) -> set[str]:
    """Return the names of all fields in a value of JSON."""
    match value:
        case Mapping():
            return {*value, *(name for inner in value.values() for name in fields(inner))}
        case list():
            return {name for inner in value for name in fields(inner)}
        case _:
            return set()


def test_the_document_is_served_with_a_policy_that_allows_nothing_else() -> None:
    paths = document_paths()
    assert {"/", "/page.css", "/page.js", "/icon.svg"} <= set(paths)
    for path, ask in paths.items():
        headers = ask().headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'"), path
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert paths["/page.js"]().content_type == "text/javascript"
    assert paths["/"]().content_type == "text/html"
