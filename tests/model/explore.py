"""Breadth-first search through the states of a world, for the shortest trace of a violation."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from marshal import dumps
from typing import Any, Generic, NamedTuple, TypeVar

World = TypeVar("World")
Plain = Any  # nested tuples of numbers and text
Label = tuple[object, ...]


class InvariantViolation(Exception):
    """An invariant is violated."""


class Step(NamedTuple, Generic[World]):
    """A possible next step; its label is joined only when a trace is printed."""

    label: Label
    successor: Callable[[], World]


@dataclass(frozen=True, slots=True)
class TransitionSystem(Generic[World]):
    """The system to explore."""

    first: World
    steps: Callable[[World], Iterable[Step[World]]]
    check: Callable[[World], None]  # raises `InvariantViolation`
    canonical: Callable[[World], Plain]  # equal for equivalent worlds
    check_liveness: Callable[[World], None]
    """Runs to the end without faults; raises `InvariantViolation`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an exploration."""

    states: int = 100_000
    liveness_every: int = 0  # check liveness from one state in this many; 0: from none


@dataclass
class ExplorationResult:
    """The result of an exploration."""

    states: int = 1
    steps: int = 0
    depth: int = 0  # steps: every state within this distance was found
    exhausted: bool = False  # no states are left to explore
    settled: int = 0  # states whose liveness was checked
    violation: str = ""
    trace: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        space = "all there are" if self.exhausted else "bounded"
        runs = f", {self.settled} settled" if self.settled else ""
        return (
            f"{self.states:>7} states, {self.steps:>8} steps, depth {self.depth:>2}, {space}"
            f"{runs}, {self.seconds:.0f} s: {self.violation or 'holds'}"
        )


class Explorer(Generic[World]):
    """One search from one world."""

    def __init__(self, system: TransitionSystem[World], limits: Limits) -> None:
        self.system, self.limits = system, limits
        self.seen = {self._digest(system.first)}
        self.parents: list[int] = [-1]
        self.labels: list[Label] = [()]
        self.found = ExplorationResult()

    def run(self) -> ExplorationResult:
        begun = time.perf_counter()
        level = [(0, self.system.first)]
        while level and not self.found.violation and len(self.seen) < self.limits.states:
            level, complete = self._deeper(level)
            self.found.depth += bool(level) and complete
        self.found.exhausted = not level and not self.found.violation
        self.found.states, self.found.seconds = len(self.seen), time.perf_counter() - begun
        return self.found

    def _digest(self, world: World) -> bytes:
        return blake2b(dumps(self.system.canonical(world), 2), digest_size=16).digest()

    def _deeper(self, level: list[tuple[int, World]]) -> tuple[list[tuple[int, World]], bool]:
        """Return the new states one step further, and whether they are complete."""
        deeper: list[tuple[int, World]] = []
        for number, world in level:
            if self.found.violation or len(self.seen) >= self.limits.states:
                return deeper, False
            deeper += self._after(number, world)
        return deeper, not self.found.violation

    def _after(self, number: int, world: World) -> Iterator[tuple[int, World]]:
        for step in self.system.steps(world):
            self.found.steps += 1
            try:
                after = step.successor()
                self.system.check(after)
            except (InvariantViolation, AssertionError, ValueError, KeyError) as violation:
                self._fail(number, step.label, violation)
                return
            if (key := self._digest(after)) in self.seen:
                continue
            self.seen.add(key)
            self.parents.append(number)
            self.labels.append(step.label)
            if self.limits.liveness_every and len(self.seen) % self.limits.liveness_every == 0:
                try:
                    self.system.check_liveness(after)
                except (InvariantViolation, AssertionError, ValueError, KeyError) as violation:
                    self._fail(number, step.label, violation)
                    return
                self.found.settled += 1
            yield len(self.seen) - 1, after

    def _fail(self, number: int, last: Label, violation: Exception) -> None:
        self.found.violation = f"{type(violation).__name__}: {violation}"
        trace = [last]
        while number > 0:
            trace.append(self.labels[number])
            number = self.parents[number]
        self.found.trace = [" ".join(map(str, label)) for label in reversed(trace)]
