"""Which change of each key is the newest, as a table of keys should have it."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from binwright.protocol.model import TopicPartition

Key = tuple[Hashable, ...]


class Place(NamedTuple):
    """Where a record is."""

    partition: TopicPartition
    offset: int


class Change(NamedTuple):
    """What a record does to the row of its key."""

    place: Place
    at_ms: int  # of the record; 0: it has no time
    sequence: tuple[Any, ...]  # by which changes are ordered first
    deletes: bool

    @property
    def order(self) -> tuple[Any, ...]:
        """Return by what it is compared with one of another partition; None comes first."""
        return (*((part is not None, part) for part in self.sequence), self.at_ms)


@dataclass(slots=True)
class NewestChanges:
    """The newest changes of keys, by all records that were added.

    Attributes:
        bad: Bad records, with their times, which change nothing. A place alone may be that of a
            record of before a cut of the log.
        ends: Behind these offsets records came after the table was looked at, or while it was: of
            keys that they change it is not known what the table should have.
    """

    bad: frozenset[tuple[Place, int]] = frozenset()
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    _of_keys: dict[Key, list[Change]] = field(default_factory=dict)  # one of each partition
    _changing: set[Key] = field(default_factory=set)  # behind the ends
    _gone_back: set[Key] = field(default_factory=set)  # in one, as time goes

    def add(self, key: Key, change: Change) -> None:
        """Add a change; those of a partition are added in order of their offsets."""
        if change.place.offset >= self.ends.get(change.place.partition, inf):
            self._changing.add(key)
            return
        if (change.place, change.at_ms) in self.bad:
            return
        of_key = self._of_keys.setdefault(key, [])
        for at, known in enumerate(of_key):
            if known.place.partition == change.place.partition:
                if change.order[:-1] >= known.order[:-1]:
                    of_key[at] = change
                    if change.order < known.order:
                        self._gone_back.add(key)
                return
        of_key.append(change)

    def newest(self) -> Iterator[tuple[Key, Sequence[Change]]]:
        """Yield keys with the newest change of each: several, where nothing tells them apart.

        So it is where times go back in a partition, and the key is in another, too: then it depends
        on which landed first.
        """
        for key, of_key in self._of_keys.items():
            if key in self._changing:
                continue
            newest = max(change.order for change in of_key)
            like = newest[:-1] if key in self._gone_back else newest
            yield key, [change for change in of_key if change.order[: len(like)] == like]


@dataclass(slots=True)
class KeyFindings:
    """How the rows of a table of keys differ from the newest changes of these."""

    lost: list[Place] = field(default_factory=list)  # newest changes without their row
    stale: list[Place] = field(default_factory=list)  # rows of other changes of their keys
    erased: list[Place] = field(default_factory=list)  # newest changes whose rows were erased
    expired: list[Place] = field(default_factory=list)  # that are older than the table keeps rows


def compare_keys(
    changes: NewestChanges,
    rows: Mapping[Key, Place],
    *,
    erased: frozenset[Place] = frozenset(),
    kept_since_ms: int | None = None,
) -> KeyFindings:
    """Compare the newest changes with the rows of a table.

    Args:
        changes: Of all keys that the topics have.
        rows: Key -> the place of its row's change.
        erased: Places whose rows a person had erased.
        kept_since_ms: Rows of older changes may have been deleted; None: none were.
    """
    found = KeyFindings()
    for key, newest in changes.newest():
        row, places = rows.get(key), {change.place for change in newest}
        last = newest[0]
        if row in places and not all(change.deletes for change in newest):
            continue
        if row is not None and row not in erased:
            found.stale.append(row)
        if any(change.deletes for change in newest):
            continue
        if places & erased:
            found.erased.append(last.place)
        elif kept_since_ms is not None and 0 < last.at_ms < kept_since_ms:
            found.expired.append(last.place)
        else:
            found.lost.append(last.place)
    return found
