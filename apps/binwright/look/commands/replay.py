"""`binwright table replay`: a table's writer decodes bad records again, by a message."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, get_args
from uuid import uuid4

import typer

from binwright.cli.moments import parse_moment
from binwright.cli.options import Bootstrap, Group, Json, TableName
from binwright.look.commands.approve import user_name
from binwright.look.operations import STANDSTILL_S, Patience, run_operation
from binwright.look.work_texts import records_text
from binwright.protocol.errors import SettingsError, UserError
from binwright.protocol.fields import LATEST_MS
from binwright.protocol.metadata import TableOperation
from binwright.protocol.orders import REASON_LENGTH, BadKind, OperationOrder
from binwright.runtime.clock import wall_ms

AGO = re.compile(r"(\d+)(s|m|h|d)")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def since_ms(text: str, now_ms: int, option: str = "--since") -> int:
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
        raise SettingsError(f"{option}: {text!r} is no time: {wanted}") from exc
    if not 0 <= at_ms <= min(now_ms, LATEST_MS):
        raise SettingsError(f"{option}: {text} is not in the past")
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
    timeout: Patience = STANDSTILL_S,
) -> None:
    """Decode a table's bad records again, by today's settings; what decodes becomes rows."""

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

    def lines(done: TableOperation) -> Iterator[str]:
        yield f"the table {table}: {records_text(done)}"
        if done.masked:
            yield (
                f"{done.masked} bad records have no value, as the table's mask hides it: they stay "
                "as they are; Kafka may have them still"
            )

    run_operation(ordered, lines, group, bootstrap_servers, timeout, json_=json_)
