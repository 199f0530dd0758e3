"""The stamp in the metadata of each commit to a table: what is committed, and by which writer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from binwright.protocol.ports.lake import Table

_KIND = "binwright-stamp/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The `userMetadata` of a commit by a table's writer.

    `committed` holds the partitions that the commit changed, or all partitions if it is `full`.
    Announcements before offset `needed_from` of the landing topic with id `landing_id` are no
    longer needed. A claim has sequence 0 and no offsets.
    """

    group: str
    cluster: str
    writer: str  # unique to a writer's claim
    epoch: int
    sequence: int
    topic_id: str | None = None
    landing_id: str | None = None
    needed_from: int = 0
    committed: Mapping[int, int] = field(default_factory=dict)
    cuts: Mapping[int, int] = field(default_factory=dict)
    full: bool = False

    def encode(self) -> str:
        """Return JSON text; equal stamps are equal text."""
        values: dict[str, Any] = {"kind": _KIND}
        values |= {name: getattr(self, name) for name in self.__slots__}
        for name in ("committed", "cuts"):
            values[name] = {str(p): offset for p, offset in sorted(values[name].items())}
        return orjson.dumps(values).decode()


def read_stamp(text: str | None, table: Table) -> Stamp | None:
    """Parse a commit's `userMetadata`; None if it is not a stamp of this group and cluster.

    Never raises: other writers of the table may put anything into their commits.
    """
    try:
        parsed = orjson.loads(text or "")
        if (parsed["kind"], parsed["group"], parsed["cluster"]) != (
            _KIND,
            table.group,
            table.cluster,
        ):
            return None
        values = {name: parsed[name] for name in Stamp.__slots__}
        for name in ("committed", "cuts"):
            values[name] = {int(p): int(offset) for p, offset in parsed[name].items()}
        return Stamp(**values)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
