"""Breadth first through the states of a world, to the shortest trace of a violation."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from marshal import dumps
from typing import Any, Generic, NamedTuple, TypeVar

World = TypeVar("World")
Plain = Any  # nested tuples of numbers and text
Label = tuple[object, ...]


class Broken(Exception):
    """An invariant that does not hold."""


class Step(NamedTuple, Generic[World]):
    """What may happen next, in words that are joined when somebody wants to read them."""

    label: Label
    take: Callable[[], World]


@dataclass(frozen=True, slots=True)
class System(Generic[World]):
    """What is explored."""

    first: World
    steps: Callable[[World], Iterable[Step[World]]]
    check: Callable[[World], None]  # raises `Broken`
    canonical: Callable[[World], Plain]  # equal for worlds that nothing can tell apart
    settle: Callable[[World], None]  # a run without faults to its end; raises `Broken`


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an exploration ends."""

    states: int = 100_000
    settle_every: int = 0  # follow a run without faults from one state in so many; 0: from none


@dataclass
class Found:
    """What an exploration came to."""

    states: int = 1
    steps: int = 0
    depth: int = 0  # in steps: no state that can be had with so many is missing
    whole: bool = False  # nothing is left to explore
    settled: int = 0  # states from which a run without faults was followed to its end
    violation: str = ""
    trace: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        space = "all there are" if self.whole else "bounded"
        runs = f", {self.settled} settled" if self.settled else ""
        return (
            f"{self.states:>7} states, {self.steps:>8} steps, depth {self.depth:>2}, {space}"
            f"{runs}, {self.seconds:.0f} s: {self.violation or 'holds'}"
        )


class Explorer(Generic[World]):
    """One search from one world."""

    def __init__(self, system: System[World], limits: Limits) -> None:
        self.system, self.limits = system, limits
        self.seen = {self._digest(system.first)}
        self.parents: list[int] = [-1]
        self.labels: list[Label] = [()]
        self.found = Found()

    def run(self) -> Found:
        begun = time.perf_counter()
        level = [(0, self.system.first)]
        while level and not self.found.violation and len(self.seen) < self.limits.states:
            level, complete = self._deeper(level)
            self.found.depth += bool(level) and complete
        self.found.whole = not level and not self.found.violation
        self.found.states, self.found.seconds = len(self.seen), time.perf_counter() - begun
        return self.found

    def _digest(self, world: World) -> bytes:
        return blake2b(dumps(self.system.canonical(world), 2), digest_size=16).digest()

    def _deeper(self, level: list[tuple[int, World]]) -> tuple[list[tuple[int, World]], bool]:
        """Return the states one step further, and whether they are all."""
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
                after = step.take()
                self.system.check(after)
            except (Broken, AssertionError, ValueError, KeyError) as violation:
                self._fail(number, step.label, violation)
                return
            if (key := self._digest(after)) in self.seen:
                continue
            self.seen.add(key)
            self.parents.append(number)
            self.labels.append(step.label)
            if self.limits.settle_every and len(self.seen) % self.limits.settle_every == 0:
                try:
                    self.system.settle(after)
                except (Broken, AssertionError, ValueError, KeyError) as violation:
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
