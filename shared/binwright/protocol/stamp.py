"""What identifies each commit to a table: its app id, its version, and the stamp in its metadata.

Delta skips a commit whose version is not above the last one of the same app id, so the claim of a
later epoch fences all commits of earlier ones (†). The stamp says what is committed, by which
writer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from binwright.protocol.ports.lake import Table

COMMITS_PER_EPOCH = 1 << 24
_KIND = "binwright-stamp/2"


def app_id(table: Table) -> str:
    """Return the Delta app id under which all writers of the table commit."""
    return f"binwright/{table.group}/{table.topic}"


def txn_version(epoch: int, sequence: int = 0) -> int:
    """Return the app id's version of a writer's commit; 0 is its claim.

    Raises:
        ValueError: The epoch has no such number: claim a new epoch.
    """
    if not 0 <= sequence < COMMITS_PER_EPOCH:
        raise ValueError(f"an epoch has {COMMITS_PER_EPOCH} commits, this would be {sequence}")
    return epoch * COMMITS_PER_EPOCH + sequence


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
