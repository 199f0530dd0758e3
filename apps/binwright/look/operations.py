"""Orders work on a table, and follows what its writer makes of it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from binwright.cli.options import settings_at
from binwright.cli.runner import progress_console, run_for_result
from binwright.cli.terminal import print_json
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.follower import Connect, followed
from binwright.look.group_view import GroupView
from binwright.look.orders_topic import publish_order
from binwright.look.table_status import check_known
from binwright.look.work_texts import records_text
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.metadata import TableOperation
from binwright.protocol.orders import OperationOrder
from binwright.runtime.clock import loop_s
from binwright.tables.operations import gives_way

READ_S = 0.5
STANDSTILL_S = 300.0

Patience = Annotated[
    float, typer.Option("--timeout", min=1, help="Seconds to wait while nothing changes.")
]


def run_operation(
    ordered: Callable[[], OperationOrder],
    lines: Callable[[TableOperation], Iterable[str]],
    group: str | None,
    bootstrap_servers: str | None,
    timeout_s: float,
    *,
    json_: bool,
) -> None:
    """Order work on a table from the command line, and show how far it is until it has ended.

    Then print it: as JSON, or these lines.
    """
    console = progress_console(json_=json_)

    async def work() -> TableOperation:
        settings, order = settings_at(bootstrap_servers), ordered()
        connect = partial(KafkaControlTopics, settings.kafka)
        done = await carry_out(
            connect,
            group or settings.group,
            order,
            timeout_s,
            lambda found: console.log(f"{found.state}: {records_text(found)}"),
        )
        if done.state == "failed":
            raise UserError(done.fault)
        return done

    done = run_for_result(work)
    if json_:
        print_json(asdict(done))
        return
    for line in lines(done):
        console.print(line)


async def carry_out(
    connect: Connect,
    group: str,
    order: OperationOrder,
    timeout_s: float,
    report: Callable[[TableOperation], None],
) -> TableOperation:
    """Order work on a table, and wait until its writer has ended it.

    Args:
        connect: Opens the bus.
        group: Its name.
        order: What is ordered.
        timeout_s: How long nothing may change, s. The work goes on without whoever waits.
        report: Is called with the state whenever it has changed.

    Raises:
        UserError: The group has no such table, it has other work to do, or has none of this kind;
            or another order has replaced this one.
        ExternalError: There is no such group, or no writer takes the order or goes on in time.
    """
    async with followed(connect, group) as (follower, view):
        try:
            async with asyncio.timeout(timeout_s):
                await follower.catch_up()
                check(group, order, view)
                await publish_order(follower.bus, group, order)
        except TimeoutError as exc:
            raise ExternalError(f"Kafka has not answered in {timeout_s:g} s") from exc
        known, changed_at = None, loop_s()
        while True:
            await follower.read(READ_S)
            found = operation_of(view, order.table)
            if found is not None and found.id == order.id and found != known:
                known, changed_at = found, loop_s()
                report(found)
                if found.state != "running":
                    return found
            elif found is not None and found.id != order.id and known is not None:
                raise UserError(f"the {order.work} gave way to a {found.work} by {found.by}")
            if loop_s() - changed_at > timeout_s:
                why = f": {known.fault}" if known and known.fault else ""
                raise ExternalError(
                    f"the {order.work} of the table {order.table} has not gone on for "
                    f"{timeout_s:g} s{why}; it does so once a consumer writes the table, whether "
                    "or not somebody waits: see `binwright table describe`"
                )


def operation_of(view: GroupView, table: str) -> TableOperation | None:
    """Return the work on a table as its writer has reported it; None: none, or no such table."""
    found = view.tables.by_name.get(table)
    return None if found is None else found.report.operation


def check(group: str, order: OperationOrder, view: GroupView) -> None:
    """Raise `UserError` where a table is not known, or has work to do; `ExternalError` if idle."""
    check_known(group, order.table, view.tables.by_name)
    if view.tables.by_name[order.table].writer is None:
        raise ExternalError(
            f"no consumer writes the table {order.table} of group {group}: is the group running?"
        )
    other = operation_of(view, order.table)
    if other is not None and other.state == "running" and not gives_way(other, order):
        raise UserError(f"the table {order.table} has a {other.work} by {other.by} to do first")
