"""The scenario of each side: steady load, each of four bounced, then more load and one more."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.handover.gaps import baseline, disturbance, gaps, gaps_between
from bench.handover.marks import read_marks
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

MEMBERS, PARTITIONS, RISING = 4, 16, 4
RECORD_BYTES = 500
RECORDS_PER_S = 25.0  # of a partition; those that rise: twice as many
STEADY_S, BETWEEN_S, AFTER_S = 15.0, 7.0, 20.0
DOWN_S = 0.5
LONGEST_S = 3600.0


class Subject(Protocol):
    """A system that reads the topic."""

    marks: Path

    async def begin(self) -> None:
        """Start, and return when every partition is read by the four."""

    async def bounce(self, number: int) -> None:
        """Ask a member to end, start it again, and return when it reads."""

    async def grow(self) -> None:
        """Return when one more reads; the load has risen."""


@dataclass(frozen=True, slots=True)
class BenchTopic:
    """Where all of them read."""

    kafka: KafkaSettings
    topic: str

    @contextlib.asynccontextmanager
    async def load(self, *, risen: bool) -> AsyncIterator[None]:
        """Write beside the block; see that every record was confirmed."""
        stop = asyncio.Event()
        row = {
            TopicPartition(self.topic, n): PerCent(200.0 if risen and n < RISING else 100.0)
            for n in range(PARTITIONS)
        }
        load = Pacing(
            row_s=LONGEST_S,
            bytes_per_per_cent=RECORDS_PER_S * RECORD_BYTES / 100,
            record_bytes=RECORD_BYTES,
        )
        playing = asyncio.create_task(run_load([row], self.kafka, load, stop=stop))
        try:
            yield
        finally:
            stop.set()
            await playing


async def until(
    condition: Callable[[], bool], deadline_s: float, what: str, *, look_s: float = 0.05
) -> None:
    """Wait for what changes by itself; raise `ExternalError` when it does not in time."""
    try:
        async with asyncio.timeout(deadline_s):
            while not condition():  # noqa: ASYNC110 - other processes bring it about
                await asyncio.sleep(look_s)
    except TimeoutError as exc:
        raise ExternalError(f"after {deadline_s:g} s it is not so that {what}") from exc


async def measure(subject: Subject, ground: BenchTopic, times: int) -> dict[str, Any]:
    """Lead a subject through the course; return what it cost, phase by phase.

    Args:
        subject: Not started yet.
        ground: Where it reads.
        times: How many of the members are bounced, one after the other.

    Returns:
        What each phase cost; under "when" the phases, from and to in seconds since the epoch.
    """
    bounces: list[float] = []
    loads: list[float] = []
    async with ground.load(risen=False):
        await subject.begin()
        await asyncio.sleep(BETWEEN_S)
        steady = time.monotonic()
        await asyncio.sleep(STEADY_S)
        for number in range(times):
            loads.append(os.getloadavg()[0])
            bounces.append(time.monotonic())
            await subject.bounce(number)
            await asyncio.sleep(max(0.0, bounces[-1] + BETWEEN_S - time.monotonic()))
        await asyncio.sleep(BETWEEN_S)
        bounced = time.monotonic()
    async with ground.load(risen=True):
        await asyncio.sleep(2.0)  # the writers have changed
        loads.append(os.getloadavg()[0])
        growing = time.monotonic()
        await subject.grow()
        await asyncio.sleep(max(0.0, growing + AFTER_S - time.monotonic()))
        grown = time.monotonic() - 1.0
    every_gap = gaps(read_marks(subject.marks))
    calm = baseline(gaps_between(every_gap, steady, bounces[0] - 0.5))
    epoch = time.time() - time.monotonic()
    return {
        "when": {
            "steady": (epoch + steady, epoch + bounces[0]),
            "bounce": (epoch + bounces[0], epoch + bounced),
            "growth": (epoch + growing, epoch + grown),
        },
        "steady": asdict(calm),
        "bounce": _phase(gaps_between(every_gap, bounces[0] - 0.5, bounced), bounces, calm),
        "growth": _phase(gaps_between(every_gap, growing - 0.5, grown), [growing], calm),
        "load_average": [round(load, 1) for load in loads],
    }


def _phase(every_gap: Sequence[Any], starts: Sequence[float], calm: Any) -> dict[str, Any]:
    return asdict(disturbance(every_gap, starts, calm))
