"""The stamp in a commit's metadata: what is committed, by which writer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from binwright.protocol.fields import checked_offset
from binwright.protocol.ports.lake import Table

_KIND = "binwright-stamp/3"
_PARTITIONS = 1 << 31
NO_ORDER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The `userMetadata` of a commit by a table's writer.

    `committed` holds the partitions that the commit changed, or all partitions if it is `full`.
    Announcements before offset `needed_from` of the landing topic with id `landing_id` are no
    longer needed. A claim has sequence 0 and no offsets. The newest stamp says whether a person has
    paused the table.
    """

    group: str
    cluster: str
    writer: str  # unique to a claim
    sequence: int
    topic_id: str | None = None
    landing_id: str | None = None
    needed_from: int = 0
    committed: Mapping[int, int] = field(default_factory=dict)
    cuts: Mapping[int, int] = field(default_factory=dict)
    full: bool = False
    paused: str = ""  # who paused the table, when and why; empty: it lands
    order: int = NO_ORDER  # offset in the landing topic of the newest `TableOrder` that counts

    def encode(self) -> str:
        """Return JSON text; equal stamps are equal text."""
        values: dict[str, Any] = {"kind": _KIND}
        values |= {name: getattr(self, name) for name in self.__slots__}
        if self.order == NO_ORDER and not self.paused:
            del values["paused"], values["order"]
        for name in ("committed", "cuts"):
            values[name] = {str(p): offset for p, offset in sorted(values[name].items())}
        return orjson.dumps(values).decode()


def read_stamp(text: str | None, table: Table) -> Stamp | None:
    """Parse a commit's `userMetadata`; None if it is not a stamp of this group and cluster.

    Never raises: other writers of the table may put anything into their commits. A stamp with a
    field of another type, or a number out of range, is none.
    """
    try:
        parsed = orjson.loads(text or "")
        if (parsed["kind"], parsed["group"], parsed["cluster"]) != (
            _KIND,
            table.group,
            table.cluster,
        ):
            return None
        return Stamp(
            group=table.group,
            cluster=table.cluster,
            writer=_text(parsed["writer"]),
            sequence=checked_offset("sequence", parsed["sequence"]),
            topic_id=_optional_text(parsed["topic_id"]),
            landing_id=_optional_text(parsed["landing_id"]),
            needed_from=checked_offset("needed_from", parsed["needed_from"]),
            committed=_offsets(parsed["committed"]),
            cuts=_offsets(parsed["cuts"]),
            full=parsed["full"] is True,
            paused=_text(parsed.get("paused", "")),
            order=_order(parsed.get("order", NO_ORDER)),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _order(value: Any) -> int:
    return NO_ORDER if value == NO_ORDER else checked_offset("order", value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _offsets(value: Any) -> Mapping[int, int]:
    offsets = {int(p): checked_offset(p, offset) for p, offset in value.items()}
    if not all(0 <= partition < _PARTITIONS for partition in offsets):
        raise ValueError("not a partition")
    return offsets
