"""`binwright table erase`: a table's writer deletes rows of persons, by a message."""

from functools import partial
from typing import Annotated
from uuid import uuid4

import typer

from binwright.cli.moments import moment_text
from binwright.cli.options import Bootstrap, Group, Json, TableName
from binwright.look.commands.approve import user_name
from binwright.look.operations import STANDSTILL_S, Patience, run_operation
from binwright.look.work_texts import records_text
from binwright.protocol.errors import UserError
from binwright.protocol.metadata import TableOperation
from binwright.protocol.orders import CONDITION_LENGTH, REASON_LENGTH, OperationOrder
from binwright.runtime.clock import wall_ms
from binwright.tables.conditions import parse_condition


def checked(option: str, text: str) -> str:
    """Return a condition as it was given; raise `UserError` for one that is none, or too long."""
    if len(text) > CONDITION_LENGTH:
        raise UserError(f"{option}: a condition has at most {CONDITION_LENGTH} characters")
    try:
        if text:
            parse_condition(text)
    except ValueError as exc:
        raise UserError(f"{option}: {exc}") from exc
    return text


def receipt(table: str, done: TableOperation) -> tuple[str, ...]:
    """Return what was erased, when, and until when older versions had it, in lines."""
    lines = [f"the table {table}: {records_text(done)}"]
    if done.bad_left:
        lines.append(
            f"{done.bad_left} bad records were not looked at: the condition is on columns of rows. "
            "Name one on theirs with --bad-where"
        )
    if done.ended_ms:
        lines.append(
            f"erased at {moment_text(done.ended_ms)} by {done.by} ({done.reason}), as {done.id}"
        )
        lines.append(
            f"older versions of the table have it until {moment_text(done.files_until_ms)}; then "
            "its writer deletes their files. Kafka keeps the records as long as it keeps the "
            "topic's"
        )
    return tuple(lines)


def erase(
    table: TableName,
    *,
    where: Annotated[
        str,
        typer.Option(
            help="Which rows: comparisons of the table's columns with literals, in Spark's SQL. On "
            "_kafka alone (_kafka.offset = 7), it is of bad records, too."
        ),
    ] = "",
    bad_where: Annotated[
        str, typer.Option(help="Which bad records, by columns of their table: kind, value, …")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why, for those who look at it; without names.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; count what would be erased.")
    ] = False,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    json_: Json = False,
    timeout: Patience = STANDSTILL_S,
) -> None:
    """Delete rows from a table and its bad records, and later their files; print a receipt."""

    def ordered() -> OperationOrder:
        if not (where or bad_where):
            raise UserError("name what is to be erased: --where, or --bad-where")
        return OperationOrder(
            table=table,
            id=uuid4().hex,
            work="erase",
            where=checked("--where", where),
            bad_where=checked("--bad-where", bad_where),
            dry_run=dry_run,
            by=user_name(),
            reason=reason[:REASON_LENGTH],
            at_ms=wall_ms(),
        )

    run_operation(ordered, partial(receipt, table), group, bootstrap_servers, timeout, json_=json_)
