"""What people read of the work on a table that one of them has ordered."""

from collections.abc import Callable, Iterator, Mapping

from binwright.cli.moments import moment_text
from binwright.protocol.metadata import TableOperation


def operation_text(operation: TableOperation) -> str:
    """Return what was ordered, by whom and why, how far it is, and what became of records."""
    reason = f": {operation.reason}" if operation.reason else ""
    what = f"{operation.work}{' (dry run)' if operation.dry_run else ''} by {operation.by}"
    fault = f": {operation.fault}" if operation.fault else ""
    at = f" at {moment_text(operation.at_ms)}" if operation.at_ms else ""  # not of its entry's
    return f"{what}{at}{reason}; {operation.state}{fault}; {records_text(operation)}"


def records_text(operation: TableOperation) -> str:
    """Return what became of records."""
    return ", ".join(TEXTS.get(operation.work, _counts)(operation))


def _replayed(operation: TableOperation) -> Iterator[str]:
    """Yield what became of bad records, by their classes."""
    yield _by_class("would move" if operation.dry_run else "moved", operation.moved)
    yield _by_class("left", operation.left)
    if operation.skipped:
        yield f"{operation.skipped} skipped"
    if operation.masked:
        yield f"{operation.masked} without their values, masked"


def _by_class(what: str, counts: Mapping[str, int]) -> str:
    classes = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{sum(counts.values())} {what}{f' ({classes})' if classes else ''}"


def _erased(operation: TableOperation) -> Iterator[str]:
    would = "to erase" if operation.dry_run or operation.state == "running" else "erased"
    yield f"{operation.erased} rows {would}"
    yield f"{operation.bad_erased} bad records"
    if operation.bad_left:
        yield f"{operation.bad_left} bad records not looked at"
    if operation.files_until_ms:
        yield f"in older versions until {moment_text(operation.files_until_ms)}"


def _backfilled(operation: TableOperation) -> Iterator[str]:
    if operation.dry_run:
        yield f"{operation.to_go} offsets to back-fill"
        return
    yield f"{operation.rows} rows back-filled"
    yield f"{operation.bad} bad records"
    if operation.skipped:
        yield f"{operation.skipped} skipped"
    if operation.gone:
        yield f"{operation.gone} offsets left out, which Kafka has no more, or whose log was cut"
    if operation.to_go:
        yield f"{operation.to_go} offsets to go"


def _counts(operation: TableOperation) -> Iterator[str]:
    """Yield the counts of work that only a later version knows."""
    for name, count in operation.outcomes.items():
        yield f"{count} {name}"


TEXTS: Mapping[str, Callable[[TableOperation], Iterator[str]]] = {
    "replay": _replayed,
    "erase": _erased,
    "backfill": _backfilled,
}
