"""What the consumers of a simulation cost: how many ran, and for how long."""

from dataclasses import dataclass

from binwright.protocol.model import Slot

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Steps:
    """A number that changes in steps: `values[i]` holds from `times[i]` to the next one."""

    times: tuple[float, ...]  # seconds, ascending
    values: tuple[int, ...]
    end: float  # seconds

    def at(self, times: list[float]) -> list[int]:
        """Return the number at each of these ascending times; before the first it is 0."""
        found, step = [], -1
        for time in times:
            while step + 1 < len(self.times) and self.times[step + 1] <= time:
                step += 1
            found.append(self.values[step] if step >= 0 else 0)
        return found

    @property
    def seconds(self) -> float:
        """Return the integral: consumer-seconds."""
        ends = (*self.times[1:], self.end)
        return sum(
            (end - begin) * value
            for begin, end, value in zip(self.times, ends, self.values, strict=True)
        )


class Costs:
    """Counts consumers from when they are asked for until they have ended, and those ready."""

    def __init__(self) -> None:
        self._running: set[Slot] = set()
        self._ready: set[Slot] = set()
        self._steps: list[tuple[float, int, int]] = [(float("-inf"), 0, 0)]

    def started(self, slot: Slot, now: float) -> None:
        """Count a consumer that is asked for."""
        self._running.add(slot)
        self._note(now)

    def ready(self, slot: Slot, now: float) -> None:
        """Count a consumer that may be given partitions."""
        self._ready.add(slot)
        self._note(now)

    def ended(self, slot: Slot, now: float) -> None:
        """Count a consumer no more."""
        self._running.discard(slot)
        self._ready.discard(slot)
        self._note(now)

    def _note(self, now: float) -> None:
        step = (now, len(self._running), len(self._ready))
        if self._steps[-1][0] == now:
            self._steps[-1] = step
        else:
            self._steps.append(step)

    def running(self, begin: float, end: float) -> Steps:
        """Return how many ran, from `begin` to `end`."""
        return self._cut(1, begin, end)

    def were_ready(self, begin: float, end: float) -> Steps:
        """Return how many were ready, from `begin` to `end`."""
        return self._cut(2, begin, end)

    def _cut(self, column: int, begin: float, end: float) -> Steps:
        before = [step for step in self._steps if step[0] <= begin][-1]
        after = [step for step in self._steps if begin < step[0] < end]
        times, values = [begin], [int(before[column])]
        for step in after:
            if step[column] != values[-1]:
                times.append(step[0])
                values.append(int(step[column]))
        return Steps(tuple(times), tuple(values), end)
