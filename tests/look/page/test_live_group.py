"""A group's view is kept up to date through outages, and by whatever topics there are."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.look.page.group import GROUP, METADATA, METRICS, TOPICS, Group, page

from binwright.look.page.live_group import LiveGroup
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import ControlTopics, Record
from binwright.runtime.run import background_tasks
from binwright.testing.control_topics import FakeControlTopics, loop_ms

pytestmark = pytest.mark.looptime

P = TopicPartition("orders", 0)


@contextlib.asynccontextmanager
async def followed(bus: FakeControlTopics) -> AsyncIterator[LiveGroup]:
    live = page().live
    async with background_tasks(live.run(lambda: contextlib.nullcontext(bus))):
        yield live


def kind(live: LiveGroup) -> str | None:
    return None if live.problem is None else live.problem.kind


async def test_it_shows_the_content_of_the_topics() -> None:
    group = Group()
    await group.claim("c1")
    await group.measure([5.0])
    async with followed(group.bus) as live:
        assert kind(live) == "reading"
        await asyncio.sleep(3)
        assert kind(live) is None
        assert live.view.leadership is not None
        assert live.view.leadership.controller == "c1"
        assert live.view.rates == {P: 5.0}


class SlowControlTopics(FakeControlTopics):
    """Each read takes a while."""

    async def fetch(
        self, topic: str, partition: int, offset: int, timeout_s: float
    ) -> Sequence[Record]:
        await asyncio.sleep(1)
        return await super().fetch(topic, partition, offset, timeout_s)


async def test_what_is_old_is_not_shown_while_it_is_read() -> None:
    """A day's records take seconds: a consumer that said goodbye since must not seem to run."""
    group = Group(SlowControlTopics(TOPICS))
    for slot in range(600):  # more records than one read returns
        await group.consumer(slot, {})
    async with followed(group.bus) as live:
        await asyncio.sleep(2.5)
        assert kind(live) == "reading"
        assert not live.view.reports
        await asyncio.sleep(3)
        assert kind(live) is None
        assert len(live.view.reports) == 600


async def test_a_missing_group_is_reported_and_waited_for() -> None:
    group = Group(FakeControlTopics())
    async with followed(group.bus) as live:
        await asyncio.sleep(3)
        assert kind(live) == "missing"
        assert live.problem is not None
        assert "group eu" in live.problem.text
        await group.bus.ensure(METADATA, 1, {})
        await group.claim()
        await asyncio.sleep(3)
        assert kind(live) is None
        assert live.view.leadership is not None


async def test_consumers_are_shown_without_a_monitor_and_rates_when_one_comes() -> None:
    group = Group(FakeControlTopics({METADATA: 1}))
    await group.consumer(0, {P: 5})
    async with followed(group.bus) as live:
        await asyncio.sleep(3)
        assert list(live.view.reports) == [0]
        assert live.rates_age_s(loop_ms()) is None
        assert live.rates_stale(loop_ms())
        await group.bus.ensure(METRICS, 1, {})
        await group.measure([5.0])
        await asyncio.sleep(3)
        assert live.view.rates == {P: 5.0}


async def test_what_was_known_stays_while_kafka_is_away() -> None:
    group = Group(FakeControlTopics(TOPICS, patience_s=5))
    await group.consumer(0, {P: 5})
    async with followed(group.bus) as live:
        await asyncio.sleep(3)
        await group.bus.go_down()
        await asyncio.sleep(20)
        assert kind(live) == "unreachable"
        assert list(live.view.reports) == [0]
        await group.bus.come_up()
        await group.consumer(1, {})
        await asyncio.sleep(5)
        assert kind(live) is None
        assert list(live.view.reports) == [0, 1]


async def test_an_unreachable_kafka_is_reported_and_waited_for() -> None:
    bus = FakeControlTopics(TOPICS, patience_s=5)
    await bus.go_down()
    async with followed(bus) as live:
        await asyncio.sleep(20)
        assert kind(live) == "unreachable"
        await bus.come_up()
        await asyncio.sleep(20)
        assert kind(live) is None


async def test_a_recreated_group_is_read_again() -> None:
    group = Group()
    for slot in (0, 1):
        await group.consumer(slot, {P: 5})
    async with followed(group.bus) as live:
        await asyncio.sleep(3)
        group.bus.delete(METADATA)
        await asyncio.sleep(5)
        assert kind(live) == "missing"
        assert list(live.view.reports) == [0, 1]
        await group.bus.ensure(METADATA, 1, {})
        await Group(group.bus).consumer(7, {})
        await asyncio.sleep(5)
        assert list(live.view.reports) == [7]


def pauses(live: LiveGroup, part: str) -> float | None:
    name = f"binwright_move_pause_seconds_{part}"
    return live.registry.get_sample_value(name, {"group": GROUP})


async def test_pauses_of_moves_count_once_each_and_not_those_before_it_followed() -> None:
    """Else Prometheus would see old moves as new ones each time that the topic is read again."""
    group = Group()
    await group.consumer(0, {P: 5})
    await group.consumer(1, {})
    await asyncio.sleep(60)
    await group.move(P, 0, 1, pause_s=50.0)
    async with followed(group.bus) as live:
        await asyncio.sleep(3)
        assert (len(live.view.moves), pauses(live, "count")) == (1, 0)
        await group.move(P, 1, 0, pause_s=1.5)
        await asyncio.sleep(3)
        assert (len(live.view.moves), pauses(live, "count")) == (2, 1)
        assert pauses(live, "sum") == pytest.approx(1.5, abs=0.1)


async def test_settings_that_do_not_hold_end_it() -> None:
    def connect() -> contextlib.AbstractAsyncContextManager[ControlTopics]:
        raise SettingsError("kafka.ssl_cafile: no such file")

    with pytest.raises(SettingsError):
        await page().live.run(connect)


async def test_rates_are_stale_when_no_monitor_measures_the_groups_topics() -> None:
    group = Group()
    await group.measure([5.0])
    async with followed(group.bus) as live:
        await asyncio.sleep(9)
        assert not live.rates_stale(loop_ms())
        await asyncio.sleep(2)
        await group.measure([5.0], "another-groups")
        await asyncio.sleep(1)
        assert live.rates_stale(loop_ms())
        assert live.rates_age_s(loop_ms()) == 12.0
        assert live.settings.group == GROUP
        await group.measure([6.0])
        await asyncio.sleep(1)
        assert not live.rates_stale(loop_ms())
