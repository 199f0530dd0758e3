"""`binwright table pause` and `resume`: by a message on the landing topic."""

import asyncio
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.options import CONTROLLER_S, Bootstrap, settings_at
from binwright.cli.runner import run_for_result
from binwright.kafka.control_records import landing_partition
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.messages import TableOrder
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.selection import LANDING_SUFFIX
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings import Settings
from binwright.views.commands.approve import user_name
from binwright.views.follower import GroupFollower, group_topic
from binwright.views.group_view import GroupView

READ_S = 0.5
DAY_MS = 24 * 3600 * 1000
RETENTION = "retention.ms"


async def follow(settings: Settings, group: str, order: TableOrder, timeout_s: float) -> str:
    """Publish an order, and wait until the table's writer follows it.

    Returns:
        What happens to the topic's records now.

    Raises:
        UserError: The group has no such table, or it is as wanted already.
        ExternalError: There is no such group, or no writer follows the order in time.
    """
    view = GroupView()
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(KafkaControlTopics(settings.kafka))
        topic = await group_topic(bus, group)
        follower = await stack.enter_async_context(GroupFollower(bus, {topic: view}))
        try:
            async with asyncio.timeout(timeout_s):
                await follower.catch_up()
                _check(group, order, view)
                where = group + LANDING_SUFFIX, landing_partition(order.topic)
                await publish_message(bus, *where, order)
                while is_paused(view, order.topic) is not order.paused:
                    await follower.read(READ_S)
                return await _consequence(bus, order)
        except TimeoutError as exc:
            raise ExternalError(
                f"the table of {order.topic} has not followed the order in {timeout_s:g} s: it "
                "does so once a consumer writes it; see `binwright status`"
            ) from exc


def is_paused(view: GroupView, topic: str) -> bool:
    """Return whether the table's writer says that it is paused."""
    return view.tables.by_topic[topic].report.state == "paused"


def _check(group: str, order: TableOrder, view: GroupView) -> None:
    if order.topic not in view.tables.by_topic:
        known = ", ".join(sorted(view.tables.by_topic)) or "none"
        raise UserError(f"group {group} has no table {order.topic}; it has: {known}")
    if is_paused(view, order.topic) is order.paused:
        raise UserError(f"the table {order.topic} {'is' if order.paused else 'is not'} paused")


async def _consequence(bus: ControlTopics, order: TableOrder) -> str:
    if not order.paused:
        return "it lands what has waited"
    config = (await bus.describe(order.topic, [RETENTION])).config
    kept = _kept(config.get(RETENTION))
    return f"its rows wait, staged and in Kafka, which keeps them {kept}"


def _kept(retention_ms: str | None) -> str:
    if retention_ms is None:  # whoever asks has no right to see it
        return f"as long as the topic's {RETENTION}"
    days = int(retention_ms) / DAY_MS
    return "for ever" if days < 0 else f"for {days:.3g} days"


Topic = Annotated[str, typer.Argument(help="The topic whose table it is.")]
Group = Annotated[str | None, typer.Option(help="Its group; unset: the settings' group.")]
Seconds = Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for its writer.")]


def pause(
    topic: Topic,
    *,
    reason: Annotated[str, typer.Option(help="Why, for those who look at it.")],
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = CONTROLLER_S,
) -> None:
    """Have a table land nothing until it is resumed; its topic is read on, and nothing is lost."""
    order = TableOrder(topic=topic, paused=True, by=user_name(), reason=reason, at_ms=wall_ms())
    _carry_out(order, group, bootstrap_servers, timeout)


def resume(
    topic: Topic,
    *,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = CONTROLLER_S,
) -> None:
    """Have a paused table land again."""
    order = TableOrder(topic=topic, paused=False, by=user_name(), at_ms=wall_ms())
    _carry_out(order, group, bootstrap_servers, timeout)


def _carry_out(order: TableOrder, group: str | None, servers: str | None, timeout_s: float) -> None:
    settings = settings_at(servers)
    done = run_for_result(lambda: follow(settings, group or settings.group, order, timeout_s))
    state = "is paused" if order.paused else "is resumed"
    Console().print(f"the table {order.topic} {state}: {done}")
