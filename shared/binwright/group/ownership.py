"""Owners of partitions (their readers) and of tables (their writers), by the same rules.

Both move by stop → acknowledge → start. The keys differ (a partition, a topic's name), so most of
this module is generic in the key.
"""

from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, ValuesView
from copy import copy
from dataclasses import dataclass
from typing import Self, TypeVar

from immutables import Map

from binwright.protocol.model import Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class Released:
    """It has no owner. The next one starts at `offset`; None: the consumer looks it up."""

    offset: int | None = None

    @property
    def slot(self) -> None:
        """Return its slot: None."""
        return


@dataclass(frozen=True, slots=True)
class Owned:
    """One process of one slot owns it."""

    slot: Slot
    epoch: int


@dataclass(frozen=True, slots=True)
class Stopping:
    """A stop is sent; until the reply arrives the previous owner counts as the owner."""

    slot: Slot
    epoch: int
    revision: int  # of the command
    sent_at: float


@dataclass(frozen=True, slots=True)
class Starting:
    """A start is sent; its receiver counts as the owner."""

    slot: Slot
    epoch: int
    revision: int  # of the command
    sent_at: float
    offset: int | None = None  # where to start; None: the consumer looks it up


PendingCommand = Stopping | Starting
State = Released | Owned | Stopping | Starting
K = TypeVar("K")


class Ownership(Mapping[K, State]):
    """A persistent mapping from key to state, with an index of what each slot owns.

    A change costs O(keys changed), regardless of how many keys there are.
    """

    __slots__ = ("_by_slot", "_pending", "_released", "_states")

    def __init__(self, states: Mapping[K, State] | None = None) -> None:
        """Build the index of these states; `changed` and `without` derive new mappings."""
        self._states: Map[K, State] = Map(states or {})
        by_slot: dict[Slot, set[K]] = {}
        for key, state in self._states.items():
            if state.slot is not None:
                by_slot.setdefault(state.slot, set()).add(key)
        self._by_slot = Map({slot: frozenset(keys) for slot, keys in by_slot.items()})
        self._released = Map(
            {k: None for k, at in self._states.items() if isinstance(at, Released)}
        )
        self._pending = Map(
            {k: None for k, at in self._states.items() if isinstance(at, PendingCommand)}
        )

    def __getitem__(self, key: K) -> State:
        """Return the state of one key; raise `KeyError` if it is not known."""
        return self._states[key]

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, in no particular order."""
        return iter(self._states)

    def __len__(self) -> int:
        """Return how many keys are known."""
        return len(self._states)

    def __contains__(self, key: object) -> bool:
        """Return whether a key is known; defined for speed, as are the next two."""
        return key in self._states

    def values(self) -> ValuesView[State]:
        """Return the states."""
        return self._states.values()  # type: ignore[return-value] # as good as a view

    def items(self) -> ItemsView[K, State]:
        """Return the keys with their states."""
        return self._states.items()  # type: ignore[return-value] # as good as a view

    def __repr__(self) -> str:
        """Show the states."""
        return f"Ownership({dict(self._states)})"

    def owned_by(self, slot: Slot) -> frozenset[K]:
        """Return what a slot owns, starts or stops."""
        return self._by_slot.get(slot, frozenset())

    @property
    def slots(self) -> frozenset[Slot]:
        """Return the slots that own, start or stop anything."""
        return frozenset(self._by_slot)

    @property
    def released(self) -> Collection[K]:
        """Return the keys without an owner."""
        return self._released.keys()

    @property
    def pending(self) -> Collection[K]:
        """Return the keys with a stop or start that is not acknowledged yet."""
        return self._pending.keys()

    def changed(self, changes: Mapping[K, State]) -> Self:
        """Return the mapping with these states; new keys are added."""
        return self._with(changes, ())

    def without(self, keys: Iterable[K]) -> Self:
        """Return the mapping without these keys."""
        return self._with({}, keys)

    def _with(self, changes: Mapping[K, State], dropped: Iterable[K]) -> Self:
        removed = frozenset(dropped)
        if not changes and not removed:
            return self
        changed_slots: dict[Slot, set[K]] = {}
        states, released, pending = (
            self._states.mutate(),
            self._released.mutate(),
            self._pending.mutate(),
        )
        for key in (*changes, *removed):
            before = states.get(key)
            if before is not None and before.slot is not None:
                changed_slots.setdefault(before.slot, set(self.owned_by(before.slot))).discard(key)
            released.pop(key, None)
            pending.pop(key, None)
        for key in removed:
            del states[key]
        for key, state in changes.items():
            states[key] = state
            if state.slot is None:
                released[key] = None
                continue
            changed_slots.setdefault(state.slot, set(self.owned_by(state.slot))).add(key)
            if isinstance(state, PendingCommand):
                pending[key] = None
        by_slot = self._by_slot.mutate()
        for slot, keys in changed_slots.items():
            if keys:
                by_slot[slot] = frozenset(keys)
            else:
                by_slot.pop(slot, None)
        after = copy(self)
        after._states, after._by_slot = states.finish(), by_slot.finish()  # noqa: SLF001 - its own
        after._released, after._pending = released.finish(), pending.finish()  # noqa: SLF001 - its own
        return after


class PartitionOwnership(Ownership[TopicPartition]):
    """Partitions and their readers, with an index of the topics."""

    __slots__ = ("_highest",)

    def __init__(self, states: Mapping[TopicPartition, State] | None = None) -> None:
        """Build the indexes of these states."""
        super().__init__(states)
        self._highest = Map(_highest_numbers(self))

    @property
    def topics(self) -> Collection[str]:
        """Return the topics that have partitions here."""
        return self._highest.keys()

    def highest(self) -> Iterable[tuple[str, int]]:
        """Return each topic's highest partition number."""
        return self._highest.items()

    def changed(self, changes: Mapping[TopicPartition, State]) -> Self:
        """Return the mapping with these states; new keys are added."""
        after = super().changed(changes)
        if len(after) != len(self):
            new = {
                topic: number
                for topic, number in _highest_numbers(p for p in changes if p not in self).items()
                if number > self._highest.get(topic, -1)
            }
            after._highest = self._highest.update(new)  # noqa: SLF001 - its own
        return after

    def without(self, keys: Iterable[TopicPartition]) -> Self:
        """Return the mapping without these keys; O(remaining keys)."""
        after = super().without(keys)
        if after is not self:
            after._highest = Map(_highest_numbers(after))  # noqa: SLF001 - its own
        return after


def _highest_numbers(partitions: Iterable[TopicPartition]) -> dict[str, int]:
    highest: dict[str, int] = {}
    for topic, number in partitions:
        if number > highest.get(topic, -1):
            highest[topic] = number
    return highest


# --- replies -----------------------------------------------------------------------------------


def acknowledge_stop(
    known: Ownership[K], slot: Slot, revision: int, next_offsets: Mapping[K, int | None]
) -> dict[K, State]:
    """Return the states that a reply to a stop changes: keys of that pending stop only."""
    return {
        key: Released(offset)
        for key, offset in next_offsets.items()
        if isinstance(at := known.get(key), Stopping) and (at.slot, at.revision) == (slot, revision)
    }


def acknowledge_start(
    known: Ownership[K], slot: Slot, revision: int, keys: Iterable[K]
) -> dict[K, State]:
    """Return the states that a reply to a start changes: keys of that pending start only."""
    return {
        key: Owned(slot, at.epoch)
        for key in keys
        if isinstance(at := known.get(key), Starting) and (at.slot, at.revision) == (slot, revision)
    }


def unacknowledged(
    known: Ownership[K], sent_before: float
) -> dict[tuple[Slot, int], dict[K, PendingCommand]]:
    """Return the pending commands sent at `sent_before` or earlier, by slot and revision."""
    pending: dict[tuple[Slot, int], dict[K, PendingCommand]] = {}
    for key in known.pending:
        at = known[key]
        if isinstance(at, PendingCommand) and at.sent_at <= sent_before:
            pending.setdefault((at.slot, at.revision), {})[key] = at
    return pending
