"""`binwright table replay`: a table's writer decodes bad records again, by a message."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, get_args
from uuid import uuid4

import typer

from binwright.cli.moments import parse_moment
from binwright.cli.options import Bootstrap, Group, Json, TableName, settings_at
from binwright.cli.runner import progress_console, run_for_result
from binwright.cli.terminal import print_json
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.commands.approve import user_name
from binwright.look.follower import Connect, followed
from binwright.look.group_view import GroupView
from binwright.look.orders_topic import publish_order
from binwright.look.table_status import check_known, records_text
from binwright.protocol.errors import ExternalError, SettingsError, UserError
from binwright.protocol.fields import LATEST_MS
from binwright.protocol.metadata import TableOperation
from binwright.protocol.orders import REASON_LENGTH, BadKind, OperationOrder
from binwright.runtime.clock import loop_s, wall_ms

READ_S = 0.5
STANDSTILL_S = 300.0
AGO = re.compile(r"(\d+)(s|m|h|d)")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


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
        UserError: The group has no such table, it has other work to do, or has none of this kind.
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
    if other is not None and other.state == "running":
        raise UserError(f"the table {order.table} has a {other.work} by {other.by} to do first")


def since_ms(text: str, now_ms: int) -> int:
    """Return a moment in the past: `2h`, `18:00` (UTC), a date, or a date with a time; ms.

    Raises:
        SettingsError: It is none.
    """
    if not text:
        return 0
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    try:
        moment = parse_moment(f"{text}T00" if DATE.fullmatch(text) else text, now, AGO, sign=-1)
        at_ms = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError) as exc:
        wanted = "expected 2026-11-26, 2026-11-26T14:02, 14:02 (UTC) or 2h"
        raise SettingsError(f"--since: {text!r} is no time: {wanted}") from exc
    if not 0 <= at_ms <= min(now_ms, LATEST_MS):
        raise SettingsError(f"--since: {text} is not in the past")
    return at_ms


def classes_named(names: Sequence[str]) -> tuple[BadKind, ...]:
    """Return classes of bad records; raise `UserError` for one that there is not."""
    known: tuple[BadKind, ...] = get_args(BadKind)
    if unknown := [name for name in names if name not in known]:
        raise UserError(
            f"there is no class {unknown[0]!r} of bad records; there are: {', '.join(known)}"
        )
    return tuple(name for name in known if name in names)


def replay(
    table: TableName,
    *,
    class_: Annotated[
        list[str] | None,
        typer.Option("--class", help="Only bad records of this class; may be repeated."),
    ] = None,
    since: Annotated[
        str, typer.Option(help="Only those that landed since: a date, a time (UTC), or 2h.")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why, for those who look at it.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; count what would move.")
    ] = False,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    json_: Json = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds to wait while nothing changes.")
    ] = STANDSTILL_S,
) -> None:
    """Decode a table's bad records again, by today's settings; what decodes becomes rows."""
    console = progress_console(json_=json_)

    def ordered() -> OperationOrder:
        return OperationOrder(
            table=table,
            id=uuid4().hex,
            work="replay",
            classes=classes_named(class_ or ()),
            since_ms=since_ms(since, wall_ms()),
            dry_run=dry_run,
            by=user_name(),
            reason=reason[:REASON_LENGTH],
            at_ms=wall_ms(),
        )

    async def work() -> TableOperation:
        settings, order = settings_at(bootstrap_servers), ordered()
        connect = partial(KafkaControlTopics, settings.kafka)
        done = await carry_out(
            connect,
            group or settings.group,
            order,
            timeout,
            lambda found: console.log(f"{found.state}: {records_text(found)}"),
        )
        if done.state == "failed":
            raise UserError(done.fault)
        return done

    done = run_for_result(work)
    if json_:
        print_json(asdict(done))
        return
    console.print(f"the table {table}: {records_text(done)}")
    if done.masked:
        console.print(
            f"{done.masked} bad records have no value, as the table's mask hides it: they stay as "
            "they are; Kafka may have them still"
        )
