"""`binwright table pause` and `resume`: by a message on the orders topic."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from binwright.cli.options import CONTROLLER_S, Bootstrap, Group, TableName, settings_at
from binwright.cli.runner import run_for_result
from binwright.cli.terminal import Console
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.commands.approve import user_name
from binwright.look.follower import Connect, followed
from binwright.look.group_view import GroupView
from binwright.look.orders_topic import publish_order
from binwright.look.table_status import check_known
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.orders import TableOrder
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.clock import wall_ms

READ_S = 0.5
DAY_MS = 24 * 3600 * 1000
RETENTION = "retention.ms"


async def follow(connect: Connect, group: str, order: TableOrder, timeout_s: float) -> str:
    """Publish an order, and wait until the table's writer follows it.

    Returns:
        What happens to the topic's records now.

    Raises:
        UserError: The group has no such table, or it is as wanted already.
        ExternalError: There is no such group, or no writer follows the order in time.
    """
    async with followed(connect, group) as (follower, view):
        bus = follower.bus
        try:
            async with asyncio.timeout(timeout_s):
                await follower.catch_up()
                _check(group, order, view)
                await publish_order(bus, group, order)
                while is_paused(view, order.table) is not order.paused:
                    await follower.read(READ_S)
                return await _consequence(bus, order, view.tables.by_name[order.table].topics)
        except TimeoutError as exc:
            raise ExternalError(
                f"the table {order.table} has not followed the order in {timeout_s:g} s: it "
                "does so once a consumer writes it; see `binwright status`"
            ) from exc


def is_paused(view: GroupView, table: str) -> bool:
    """Return whether the table's writer says that it is paused."""
    return view.tables.by_name[table].report.state == "paused"


def _check(group: str, order: TableOrder, view: GroupView) -> None:
    check_known(group, order.table, view.tables.by_name)
    if is_paused(view, order.table) is order.paused:
        raise UserError(f"the table {order.table} {'is' if order.paused else 'is not'} paused")


async def _consequence(bus: ControlTopics, order: TableOrder, topics: Sequence[str]) -> str:
    if not order.paused:
        return "it lands what has waited"
    retentions = [
        (await bus.describe(topic, [RETENTION])).config.get(RETENTION) for topic in topics
    ]
    kept = dict.fromkeys(map(_kept, retentions))
    return f"its rows wait, staged and in Kafka, which keeps them {', '.join(kept)}"


def _kept(retention_ms: str | None) -> str:
    if retention_ms is None:  # whoever asks has no right to see it
        return f"as long as the topic's {RETENTION}"
    days = int(retention_ms) / DAY_MS
    return "for ever" if days < 0 else f"for {days:.3g} days"


Seconds = Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for its writer.")]


def pause(
    table: TableName,
    *,
    reason: Annotated[str, typer.Option(help="Why, for those who look at it.")],
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = CONTROLLER_S,
) -> None:
    """Have a table land nothing until it is resumed; its topic is read on, and nothing is lost."""
    order = TableOrder(topic=table, paused=True, by=user_name(), reason=reason, at_ms=wall_ms())
    _carry_out(order, group, bootstrap_servers, timeout)


def resume(
    table: TableName,
    *,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = CONTROLLER_S,
) -> None:
    """Have a paused table land again."""
    order = TableOrder(topic=table, paused=False, by=user_name(), at_ms=wall_ms())
    _carry_out(order, group, bootstrap_servers, timeout)


def _carry_out(order: TableOrder, group: str | None, servers: str | None, timeout_s: float) -> None:
    settings = settings_at(servers)
    connect = partial(KafkaControlTopics, settings.kafka)
    done = run_for_result(lambda: follow(connect, group or settings.group, order, timeout_s))
    state = "is paused" if order.paused else "is resumed"
    Console().print(f"the table {order.table} {state}: {done}")
