"""Plays a workload as records: the events of each second at once, as the paper's producer does."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from aiokafka import AIOKafkaProducer

from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.runtime.clock import loop_s

VALUE = bytes(100)
SEED = 1


def faster(workload: RecordLoad, speed: float) -> list[float]:
    """Return events per real second of a workload that is played `speed` times as fast.

    Rates stay what they are: a real second has the mean of the seconds that it stands for.
    """
    count = int(workload.duration_s / speed)
    bounds = [round(n * speed) for n in range(count + 1)]
    return [sum(workload.events[a:b]) / (b - a) for a, b in pairwise(bounds) if b > a]


def dealt(workload: RecordLoad, events: float, draw: random.Random) -> list[int]:
    """Return how many of a second's events go to each partition."""
    if not workload.random:
        return [ceil(events * share) for share in workload.shares]
    counts = [0] * len(workload.shares)
    for chosen in draw.choices(range(len(counts)), workload.shares, k=round(events)):
        counts[chosen] += 1
    return counts


@dataclass
class Load:
    """A workload being played.

    Attributes:
        sent: Records so far.
    """

    workload: RecordLoad
    seconds: Sequence[float]
    sent: int = 0

    async def play(self, servers: str, topic: str) -> None:
        """Send every second's events at its beginning, and return after the last second."""
        draw, began_s = random.Random(SEED), loop_s()
        producer = AIOKafkaProducer(bootstrap_servers=servers, linger_ms=1)
        await producer.start()
        try:
            for second, events in enumerate(self.seconds):
                await asyncio.sleep(max(0.0, began_s + second - loop_s()))
                for partition, count in enumerate(dealt(self.workload, events, draw)):
                    for _ in range(count):
                        await producer.send(topic, VALUE, partition=partition)
                        self.sent += 1
            await producer.flush()
        finally:
            await producer.stop()
