"""A piece of work on a table beside landing: what, who ordered it, why, when, and how far it is.

The table's stamps have it, so it outlives its writers: the newest one counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from binwright.protocol.fields import checked_offset
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import topic_name
from binwright.protocol.orders import OperationOrder

REPLAY = "replay"
"""Bad records are decoded again; what decodes moves to the table."""
MOST_NAME, MOST_WORDS = 100, 300  # characters of an order in stamps, and of a fault

Counts = Mapping[str, int]
"""Class of bad records -> how many."""
Places = Mapping[TopicPartition, tuple[int, int]]
"""Partition -> (first, next): offsets, not all of which need be meant."""
OperationState = Literal["running", "done", "failed"]


class Cursor(NamedTuple):
    """A place among bad records, in order of topics, partitions and offsets."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What a person ordered, and what has become of it.

    `unsettled` has the offsets of records of which the table has the rows, since the commit with
    this stamp, and which may still be in the table of bad records: nothing else is done before they
    are not (†).
    """

    id: str
    work: str = REPLAY
    by: str = ""
    reason: str = ""
    at_ms: int = 0  # wall clock, of the order
    classes: tuple[str, ...] = ()  # of bad records; empty: all of them
    since_ms: int = 0  # only those that landed then or later
    dry_run: bool = False  # nothing changes but the counts
    state: OperationState = "running"
    fault: str = ""  # why it has failed, or goes on later
    after: Cursor | None = None  # up to where all is done; None: nothing is
    unsettled: Places = field(default_factory=dict)
    moved: Counts = field(default_factory=dict)  # by the class that they had
    left: Counts = field(default_factory=dict)  # likewise: they are bad records as before
    skipped: int = 0  # records that are in no table now, as the settings want
    masked: int = 0  # bad records without their values: they cannot be decoded again

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON, without what is as in a new one."""
        values: dict[str, Any] = {
            name: value
            for name in self.__slots__
            if name not in {"after", "unsettled"}
            and (value := getattr(self, name)) not in (0, "", (), {})
        }
        if self.after is not None:
            values["after"] = [*self.after]
        if self.unsettled:
            values["unsettled"] = [[*p, *ends] for p, ends in sorted(self.unsettled.items())]
        return values


def ordered(order: OperationOrder) -> Operation:
    """Return what an order begins: its words are cut, since every stamp has them."""
    return Operation(
        id=order.id,
        work=order.work,
        by=order.by[:MOST_NAME],
        reason=order.reason[:MOST_WORDS],
        at_ms=order.at_ms,
        classes=order.classes,
        since_ms=order.since_ms,
        dry_run=order.dry_run,
    )


def read_operation(plain: Any) -> Operation:
    """Return an operation from plain values.

    Raises:
        ValueError, TypeError, KeyError: They are not of one.
    """
    after = plain.get("after")
    state = plain["state"]
    if state not in get_args(OperationState):
        raise ValueError("not a state")
    return Operation(
        id=_text(plain["id"]),
        work=_text(plain["work"]),
        by=_text(plain.get("by", ""))[:MOST_NAME],
        reason=_text(plain.get("reason", ""))[:MOST_WORDS],
        at_ms=checked_offset("at_ms", plain.get("at_ms", 0)),
        classes=tuple(map(_text, plain.get("classes", ()))),
        since_ms=checked_offset("since_ms", plain.get("since_ms", 0)),
        dry_run=plain.get("dry_run") is True,
        state=state,
        fault=_text(plain.get("fault", ""))[:MOST_WORDS],
        after=None if after is None else _cursor(*after),
        unsettled={
            TopicPartition(*_cursor(topic, p, first)[:2]): (first, checked_offset("next", end))
            for topic, p, first, end in plain.get("unsettled", ())
        },
        moved=_counts(plain.get("moved", {})),
        left=_counts(plain.get("left", {})),
        skipped=checked_offset("skipped", plain.get("skipped", 0)),
        masked=checked_offset("masked", plain.get("masked", 0)),
    )


def added(counts: Counts, more: Counts) -> Counts:
    """Return the sums of both, by class."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in sorted({*counts, *more})}


def _cursor(topic: Any, partition: Any, offset: Any) -> Cursor:
    number = checked_offset("partition", partition)
    return Cursor(topic_name(_text(topic)), number, checked_offset("offset", offset))


def _counts(plain: Mapping[Any, Any]) -> Counts:
    return {_text(name): checked_offset(name, count) for name, count in plain.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
