"""A piece of work on a table beside landing: what, who ordered it, why, when, and how far it is.

The table's stamps have it, so it outlives its writers: the newest one counts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, NamedTuple

from pydantic import PlainValidator, TypeAdapter

from binwright.protocol.fields import Number, Offset, Offsets
from binwright.protocol.metadata import TableOperation
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import TopicName
from binwright.protocol.orders import OperationOrder

REPLAY = "replay"
"""Bad records are decoded again; what decodes moves to the table."""
ERASE = "erase"
"""Rows that meet a condition are deleted, and what older versions have of them once it may be."""
BACKFILL = "backfill"
"""What Kafka has of before a table's beginning lands in it, from its beginning down."""
BY_ENTRY = "its entry"
"""Whose order it is that a new table is back-filled at once."""
MOST_NAME, MOST_WORDS = 100, 300  # characters of an order in stamps, and of a fault

Counts = Mapping[str, int]
"""Class of bad records -> how many."""
Places = Mapping[TopicPartition, tuple[int, int]]
"""Partition -> (first, next): offsets, not all of which need be meant."""


class Cursor(NamedTuple):
    """A place among bad records, in order of topics, partitions and offsets."""

    topic: TopicName
    partition: Number
    offset: Offset


_PLACES = TypeAdapter(tuple[tuple[TopicName, Number, Offset, Offset], ...])


def _read_places(plain: object) -> Places:
    return {
        TopicPartition(topic, partition): (first, end)
        for topic, partition, first, end in _PLACES.validate_python(plain)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(TableOperation):
    """What is reported of a work, and what only the table's writers need of it.

    `unsettled` has the offsets of records of which the table has the rows, since the commit with
    this stamp, and which may still be in the table of bad records: nothing else is done before they
    are not (†).
    """

    classes: tuple[str, ...] = ()  # of bad records; empty: all of them
    since_ms: Number = 0  # only those that landed then or later
    after: Cursor | None = None  # up to where all is done; None: nothing is
    earlier_until_ms: Number = 0
    """As `files_until_ms`, of rows that earlier work deleted: the earliest of what was to come."""
    unsettled: Annotated[Places, PlainValidator(_read_places)] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    """Partition -> from where on it is back-filled; empty: all are, as far as `since_ms`."""
    ranges: Annotated[Places, PlainValidator(_read_places)] = field(default_factory=dict)
    """Partition -> (first, where the table begins by now): what is to be back-filled still; empty:
    it is not known."""
    given_up: Annotated[Places, PlainValidator(_read_places)] = field(default_factory=dict)
    """Partition -> (first, where the table begins) of back-fills that had not ended: bad records
    may have landed there without the rows beside them, so no replay takes them (†)."""

    def with_ranges(self, ranges: Places) -> "Operation":
        """Return it with these ranges to back-fill, and no others: without any it is done."""
        to_go = sum(end - first for first, end in ranges.values())
        return replace(self, ranges=ranges, to_go=to_go, state=self.state if ranges else "done")

    def without_ranges(self, partitions: Collection[TopicPartition]) -> "Operation":
        """Return it without what is left of these partitions, which is given up."""
        given_up = {p: ends for p, ends in self.given_up.items() if p not in partitions}
        left = replace(self, given_up=given_up)
        if self.ranges.keys().isdisjoint(partitions):
            return left
        left = left.with_ranges({p: e for p, e in self.ranges.items() if p not in partitions})
        return replace(left, gone=self.gone + self.to_go - left.to_go)

    def followed_by(self, new: "Operation") -> "Operation":
        """Return the next work with what it takes over from this one."""
        return replace(
            new,
            files_until_ms=self.files_until_ms,  # what was erased is in older versions still
            earlier_until_ms=self.earlier_until_ms,
            given_up={**self.given_up, **self.ranges},
        )

    def deletes(self, at_ms: int, until_ms: int) -> "Operation":
        """Return it as it deletes rows from now on, which older versions have `until_ms`."""
        later = [at for at in (self.earlier_until_ms, self.files_until_ms) if at > at_ms]
        return replace(self, earlier_until_ms=min(later, default=0), files_until_ms=until_ms)

    @property
    def note(self) -> str:
        """Return what commits for it say of themselves, for people."""
        return f"binwright {self.work} {self.id}"

    def reported(self) -> TableOperation:
        """Return what the writer's consumer reports of it."""
        return TableOperation(
            **{each.name: getattr(self, each.name) for each in fields(TableOperation)}
        )

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON, without what is as in a new one."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["after"] = [*(self.after or ())]
        for name in ("unsettled", "ranges", "given_up"):
            values[name] = [[*p, *ends] for p, ends in sorted(values[name].items())]
        values["offsets"] = {str(p): offset for p, offset in sorted(self.offsets.items())}
        return {name: value for name, value in values.items() if value not in (0, "", (), {}, [])}


def ordered(order: OperationOrder) -> Operation:
    """Return what an order begins: its words are cut, since every stamp has them."""
    begun = Operation(
        id=order.id,
        work=order.work,
        by=order.by,
        reason=order.reason,
        at_ms=order.at_ms,
        classes=order.classes,
        since_ms=order.since_ms,
        offsets=order.offsets,
        dry_run=order.dry_run,
        state="running",
    )
    return _with_few_words(begun)


_OPERATION = TypeAdapter(Operation)


def read_operation(plain: Any) -> Operation:
    """Return an operation from plain values.

    Raises:
        ValueError: They are not of one.
    """
    return _with_few_words(_OPERATION.validate_python(plain))


def _with_few_words(of: Operation) -> Operation:
    by, reason, fault = of.by[:MOST_NAME], of.reason[:MOST_WORDS], of.fault[:MOST_WORDS]
    return replace(of, by=by, reason=reason, fault=fault)


def gives_way(operation: TableOperation, order: OperationOrder) -> bool:
    """Whether another order replaces what runs.

    So it does of a back-fill, since a table has no gap wherever one ends; but while its steps do
    not fail a dry run does not. And of an erasure that did nothing, and whose steps fail: its
    condition may be one that never ends.
    """
    if operation.work == BACKFILL:
        # What was ordered of an earlier table of the name is no newer than what an entry orders.
        is_newer = operation.by != BY_ENTRY or order.at_ms > operation.at_ms
        return bool(operation.fault) or (is_newer and not order.dry_run)
    did_nothing = not (operation.erased or operation.bad_erased)
    return operation.work == ERASE and bool(operation.fault) and did_nothing


def added(counts: Counts, more: Counts) -> Counts:
    """Return the sums of both, by class."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in sorted({*counts, *more})}
