"""`binwright table backfill`: a table's writer lands what is before its beginning, by a message."""

from collections.abc import Iterator
from typing import Annotated
from uuid import uuid4

import typer

from binwright.cli.options import Bootstrap, Group, Json, TableName
from binwright.look.commands.approve import user_name
from binwright.look.commands.replay import since_ms
from binwright.look.operations import STANDSTILL_S, Patience, run_operation
from binwright.look.work_texts import records_text
from binwright.protocol.errors import SettingsError, UserError
from binwright.protocol.fields import checked_offset
from binwright.protocol.metadata import TableOperation
from binwright.protocol.model import TopicPartition
from binwright.protocol.orders import REASON_LENGTH, OperationOrder
from binwright.runtime.clock import wall_ms

EARLIEST = "earliest"
FORMS = "expected earliest, PARTITION=OFFSET as in orders-3=1200, or a time as 2026-11-26 or 2h"


def begin_of(text: str, now_ms: int) -> tuple[int, dict[TopicPartition, int]]:
    """Return from where on a table is filled: a time (ms, 0: any), and offsets, or none of them.

    Raises:
        UserError: The text is none of these.
        SettingsError: It is no time, or one that is not in the past.
    """
    if text == EARLIEST:
        return 0, {}
    if not text:
        raise UserError(f"--from is empty: {FORMS}")
    if "=" not in text:
        try:
            return since_ms(text, now_ms, "--from"), {}
        except SettingsError as exc:
            raise SettingsError(f"{exc}; else earliest, or offsets as in orders-3=1200") from exc
    offsets: dict[TopicPartition, int] = {}
    for each in text.split(","):
        partition, _, offset = each.strip().partition("=")
        try:
            p, from_ = TopicPartition.parse(partition), checked_offset("offset", int(offset))
        except ValueError as exc:
            raise UserError(f"--from: {each!r}: {FORMS}") from exc
        if p in offsets:
            raise UserError(f"--from: {p} is named twice")
        offsets[p] = from_
    return 0, offsets


def backfill(
    table: TableName,
    *,
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            help="earliest; a date, a time (UTC) or 2h, by the records' timestamps; or offsets of "
            "some partitions: orders-0=1200,orders-3=0.",
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why, for those who look at it.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; count the offsets.")
    ] = False,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    json_: Json = False,
    timeout: Patience = STANDSTILL_S,
) -> None:
    """Land what Kafka has of before a table's beginning, beside what is written now."""

    def ordered() -> OperationOrder:
        since, offsets = begin_of(from_, wall_ms())
        return OperationOrder(
            table=table,
            id=uuid4().hex,
            work="backfill",
            since_ms=since,
            offsets=offsets,
            dry_run=dry_run,
            by=user_name(),
            reason=reason[:REASON_LENGTH],
            at_ms=wall_ms(),
        )

    def lines(done: TableOperation) -> Iterator[str]:
        yield f"the table {table}: {records_text(done)}"

    run_operation(ordered, lines, group, bootstrap_servers, timeout, json_=json_)
