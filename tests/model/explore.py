"""Breadth first through the states of the real core, to the shortest way to a fault."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from .canon import digest
from .invariants import Broken, check
from .settle import settle
from .steps import steps, take
from .universe import Universe, words


@dataclass
class Found:
    """What an exploration came to."""

    states: int = 1
    depth: int = 0  # in steps: no state that can be had with so many is missing
    whole: bool = False  # nothing is left to explore
    settled: int = 0  # states from which a fault-free run was followed to its end
    fault: str = ""
    trace: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def told(self) -> str:
        space = "all there is" if self.whole else "cut short"
        runs = f", {self.settled} settled" if self.settled else ""
        verdict = self.fault or "holds"
        return (
            f"{self.states:>8} states, all of {self.depth:>2} steps, {space}{runs}, "
            f"{self.seconds:.0f} s: {verdict}"
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an exploration ends."""

    states: int = 100_000
    depth: int = 1_000
    settle_every: int = 0  # follow a fault-free run from one state in so many; 0: from none


class Explorer:
    """One search from one world."""

    def __init__(self, first: Universe, limits: Limits) -> None:
        self.first, self.limits = first, limits
        self.seen = {digest(first): 0}
        self.parents, self.taken = [-1], [-1]  # the state before, and which of its steps
        self.found = Found()

    def run(self) -> Found:
        begun = time.perf_counter()
        level = [(0, self.first)]
        while level and not self.found.fault:
            if len(self.seen) >= self.limits.states or self.found.depth >= self.limits.depth:
                break
            level, done = self._deeper(level)
            self.found.depth += bool(level) and done
        self.found.whole = not level and not self.found.fault
        self.found.states, self.found.seconds = len(self.seen), time.perf_counter() - begun
        return self.found

    def _deeper(self, level: list[tuple[int, Universe]]) -> tuple[list[tuple[int, Universe]], bool]:
        """Return the states one step further, and whether they are all."""
        deeper: list[tuple[int, Universe]] = []
        for number, world in level:
            if self.found.fault or len(self.seen) >= self.limits.states:
                return deeper, False
            deeper += [(new, after) for after, new in self._after(number, world)]
        return deeper, not self.found.fault

    def _after(self, number: int, world: Universe) -> Iterator[tuple[Universe, int]]:
        for index, step in enumerate(steps(world)):
            try:
                after = take(world, step)
                check(after)
            except (Broken, AssertionError) as fault:
                self._fail(number, index, fault)
                return
            key = digest(after)
            if key in self.seen:
                continue
            new = self.seen[key] = len(self.seen)
            self.parents.append(number)
            self.taken.append(index)
            if self.limits.settle_every and new % self.limits.settle_every == 0:
                try:
                    settle(after)
                except (Broken, AssertionError) as fault:
                    self._fail(number, index, fault)
                    return
                self.found.settled += 1
            yield after, new

    def _fail(self, number: int, index: int, fault: Exception) -> None:
        self.found.fault = f"{type(fault).__name__}: {fault}"
        self.found.trace = [*self._way(number, index), f"=> {fault}"]

    def _way(self, number: int, index: int) -> list[str]:
        """Walk again from the first state, and tell every step."""
        indices = [index]
        while number > 0:
            indices.append(self.taken[number])
            number = self.parents[number]
        told, world = list[str](), self.first
        for at, chosen in enumerate(reversed(indices)):
            step = list(steps(world))[chosen]
            told.append(words(step))
            if at + 1 < len(indices):
                world = take(world, step)
        return told
