"""Who has what: partitions and their readers, tables and their writers, by the same rules.

Both move by stop → acknowledge → start. The keys differ (a partition, a topic's name), so most here
is generic in them.
"""

from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, ValuesView
from copy import copy
from dataclasses import dataclass
from typing import Self, TypeVar

from immutables import Map

from binwright.core.model import Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class Released:
    """Nobody has it. The new owner begins at `offset`; None: it finds out itself where."""

    offset: int | None = None

    @property
    def slot(self) -> None:
        """Return who has it: nobody."""
        return


@dataclass(frozen=True, slots=True)
class Owned:
    """One process of one slot has it."""

    slot: Slot
    epoch: int


@dataclass(frozen=True, slots=True)
class Stopping:
    """A stop is out; until it is answered the previous owner counts as the owner."""

    slot: Slot
    epoch: int
    revision: int  # of the command
    sent_at: float


@dataclass(frozen=True, slots=True)
class Starting:
    """A start is out."""

    slot: Slot
    epoch: int
    revision: int  # of the command
    sent_at: float
    offset: int | None = None  # where it is to begin; None: it finds out itself


Order = Stopping | Starting
State = Released | Owned | Stopping | Starting
K = TypeVar("K")


class Ownership(Mapping[K, State]):
    """A persistent mapping from key to state that also knows what each slot has.

    A change costs by the keys that it names, however many there are.
    """

    __slots__ = ("_by_slot", "_free", "_ordered", "_states")

    def __init__(self, states: Mapping[K, State] | None = None) -> None:
        """Take these states; `changed` and `without` make others from it."""
        self._states: Map[K, State] = Map(states or {})
        by_slot: dict[Slot, set[K]] = {}
        for key, state in self._states.items():
            if state.slot is not None:
                by_slot.setdefault(state.slot, set()).add(key)
        self._by_slot = Map({slot: frozenset(keys) for slot, keys in by_slot.items()})
        self._free = Map({k: None for k, at in self._states.items() if isinstance(at, Released)})
        self._ordered = Map({k: None for k, at in self._states.items() if isinstance(at, Order)})

    def __getitem__(self, key: K) -> State:
        """Return the state of one key; raise `KeyError` if it is not known."""
        return self._states[key]

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, in no order that means anything."""
        return iter(self._states)

    def __len__(self) -> int:
        """Return how many keys are known."""
        return len(self._states)

    def __contains__(self, key: object) -> bool:
        """Tell whether a key is known; like the next two it is there for speed."""
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

    def of(self, slot: Slot) -> frozenset[K]:
        """Return what a slot owns, starts or stops."""
        return self._by_slot.get(slot, frozenset())

    @property
    def slots(self) -> frozenset[Slot]:
        """Return the slots that own, start or stop anything."""
        return frozenset(self._by_slot)

    @property
    def free(self) -> Collection[K]:
        """Return what nobody has."""
        return self._free.keys()

    @property
    def ordered(self) -> Collection[K]:
        """Return what is being stopped or started: an order is out."""
        return self._ordered.keys()

    def changed(self, changes: Mapping[K, State]) -> Self:
        """Return the mapping with these states; keys that are new are added."""
        return self._with(changes, ())

    def without(self, keys: Iterable[K]) -> Self:
        """Return the mapping without these keys."""
        return self._with({}, keys)

    def _with(self, changes: Mapping[K, State], away: Iterable[K]) -> Self:
        gone = frozenset(away)
        if not changes and not gone:
            return self
        touched: dict[Slot, set[K]] = {}
        states, free, ordered = self._states.mutate(), self._free.mutate(), self._ordered.mutate()
        for key in (*changes, *gone):
            before = states.get(key)
            if before is not None and before.slot is not None:
                touched.setdefault(before.slot, set(self.of(before.slot))).discard(key)
            free.pop(key, None)
            ordered.pop(key, None)
        for key in gone:
            del states[key]
        for key, state in changes.items():
            states[key] = state
            if state.slot is None:
                free[key] = None
                continue
            touched.setdefault(state.slot, set(self.of(state.slot))).add(key)
            if isinstance(state, Order):
                ordered[key] = None
        by_slot = self._by_slot.mutate()
        for slot, keys in touched.items():
            if keys:
                by_slot[slot] = frozenset(keys)
            else:
                by_slot.pop(slot, None)
        after = copy(self)
        after._states, after._by_slot = states.finish(), by_slot.finish()  # noqa: SLF001 - its own
        after._free, after._ordered = free.finish(), ordered.finish()  # noqa: SLF001 - its own
        return after


class Partitions(Ownership[TopicPartition]):
    """Partitions and their readers; knows the topics, too."""

    __slots__ = ("_highest",)

    def __init__(self, states: Mapping[TopicPartition, State] | None = None) -> None:
        """Take these states."""
        super().__init__(states)
        self._highest = Map(_highest(self))

    @property
    def topics(self) -> Collection[str]:
        """Return the topics that have partitions here."""
        return self._highest.keys()

    def highest(self) -> Iterable[tuple[str, int]]:
        """Return each topic's highest partition number."""
        return self._highest.items()

    def changed(self, changes: Mapping[TopicPartition, State]) -> Self:
        """Return the mapping with these states; keys that are new are added."""
        after = super().changed(changes)
        if len(after) != len(self):
            new = {
                topic: number
                for topic, number in _highest(p for p in changes if p not in self).items()
                if number > self._highest.get(topic, -1)
            }
            after._highest = self._highest.update(new)  # noqa: SLF001 - its own
        return after

    def without(self, keys: Iterable[TopicPartition]) -> Self:
        """Return the mapping without these keys; costs by all that are left."""
        after = super().without(keys)
        if after is not self:
            after._highest = Map(_highest(after))  # noqa: SLF001 - its own
        return after


def _highest(partitions: Iterable[TopicPartition]) -> dict[str, int]:
    found: dict[str, int] = {}
    for topic, number in partitions:
        if number > found.get(topic, -1):
            found[topic] = number
    return found


# --- answers -----------------------------------------------------------------------------------


def stopped(
    known: Ownership[K], slot: Slot, revision: int, following: Mapping[K, int | None]
) -> dict[K, State]:
    """Return what an answer to a stop changes: only what the stop that is out asked for."""
    return {
        key: Released(offset)
        for key, offset in following.items()
        if isinstance(at := known.get(key), Stopping) and (at.slot, at.revision) == (slot, revision)
    }


def started(known: Ownership[K], slot: Slot, revision: int, keys: Iterable[K]) -> dict[K, State]:
    """Return what an answer to a start changes: only what the start that is out asked for."""
    return {
        key: Owned(slot, at.epoch)
        for key in keys
        if isinstance(at := known.get(key), Starting) and (at.slot, at.revision) == (slot, revision)
    }


def unanswered(known: Ownership[K], sent_before: float) -> dict[tuple[Slot, int], dict[K, Order]]:
    """Return the orders that were sent by then and have no answer: (slot, revision) -> orders."""
    found: dict[tuple[Slot, int], dict[K, Order]] = {}
    for key in known.ordered:
        at = known[key]
        if isinstance(at, Order) and at.sent_at <= sent_before:
            found.setdefault((at.slot, at.revision), {})[key] = at
    return found
