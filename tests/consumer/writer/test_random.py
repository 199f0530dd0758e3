"""Writers, readers, Spark, staging and Kafka failing at random: every row lands, and lands once."""

import random
from contextlib import AsyncExitStack

import pytest

from binwright.core.model import TopicPartition
from binwright.shell.letters import LANDING_PARTITIONS
from binwright.testing.lake import Failure

from .scene import LANDING, P, Process, Q, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

OF_WRITES = [Failure.UNCLEAR, Failure.UNCLEAR_LANDED, Failure.CONFLICT, Failure.REFUSED]
FAILURES = [*OF_WRITES, Failure.UNREADABLE, Failure.UNAVAILABLE]


class Trouble:
    """What happens to a group, drawn from one seed."""

    def __init__(self, scene: Scene, stack: AsyncExitStack, seed: int) -> None:
        self.scene, self.draw = scene, random.Random(seed)
        self.read: dict[TopicPartition, int] = {P: 0, Q: 0}
        self.alive: list[Process] = []
        self._stack, self._started = stack, 0

    async def start(self) -> None:
        """Give the role to a new process, whatever the others believe."""
        self._started += 1
        entered = process(
            self.scene,
            "orders",
            name=f"w{self._started}",
            freshness_s=self.draw.choice([0.5, 2.0]),
            batch_bytes=self.draw.choice([600, 1 << 30]),
        )
        self.alive.append(await self._stack.enter_async_context(entered))

    async def read_on(self) -> None:
        """Read and stage, as a reader that obeys gaps, and sometimes as one that is superseded."""
        for each in self.alive:
            for gap in each.gaps:
                for partition, offset in gap.items():
                    self.read[partition] = min(offset, self.read[partition])
            each.gaps.clear()
        for partition in (P, Q):
            self.scene.produce(partition, self.draw.randint(0, 6))
            end = self.scene.topics.bounds(partition)[1]
            first = self.read[partition]
            if self.draw.random() < 0.2:
                first = max(first - self.draw.randint(0, 10), 0)
            if first < end:
                lost = self.draw.random() < 0.1
                await self.scene.stage({partition: (first, end)}, announce=not lost)
            self.read[partition] = end

    async def strike(self) -> None:
        """Let something go wrong."""
        each = self.draw.choice(self.alive)
        match self.draw.randrange(12):
            case 0:
                each.kill()
                self.alive.remove(each)
                await self.start()
            case 1:
                await self.start()
            case 2 | 3 | 4:
                each.lake.fail_next(*self.draw.choices(FAILURES, k=self.draw.randint(1, 3)))
            case 5 | 6:
                each.lake.latency_s = self.draw.choice([0.0, 0.3, 2.0, 7.0])
                each.lake.write_timeout_s = self.draw.choice([1.0, 120.0])
            case 7:
                each.writers.stop(["orders"])
            case 8:
                each.writers.start(["orders"], 1)
            case 9 if files := sorted(self.scene.files()):
                del self.scene.staging.files["orders"][self.draw.choice(files)]
            case 10 if files := sorted(self.scene.files()):
                self.scene.staging.files["orders"][self.draw.choice(files)].torn = True
            case 11:
                self.scene.bus.delete(LANDING)
                await self.scene.bus.ensure(LANDING, LANDING_PARTITIONS, {})
            case _:
                self.scene.storage.table("orders").note("somebody else's")

    async def settle(self) -> None:
        """End all trouble; one writer remains."""
        for each in self.alive:
            each.lake.mend()
            each.lake.latency_s, each.lake.write_timeout_s = 0.1, 120.0
            each.writers.stop(["orders"])
        await seconds(10)
        await self.start()
        for _ in range(4):
            await self.read_on()
            await seconds(20)


@pytest.mark.parametrize("seed", range(8))
async def test_every_row_lands_once(seed: int) -> None:
    scene = await Scene().prepare()
    async with AsyncExitStack() as stack:
        trouble = Trouble(scene, stack, seed)
        await trouble.start()
        await seconds(2)
        for _ in range(60):
            await trouble.read_on()
            if trouble.draw.random() < 0.4:
                await trouble.strike()
            await seconds(trouble.draw.choice([0.1, 0.5, 2.0, 5.0]))
        await trouble.settle()
        ends = {p: scene.topics.bounds(p)[1] for p in (P, Q)}
        for _ in range(4):  # what was read last was perhaps not announced
            await seconds(20)
            for each in trouble.alive:
                for gap in each.gaps:
                    for partition, offset in gap.items():
                        await scene.stage({partition: (offset, ends[partition])})
                each.gaps.clear()
        assert {p: scene.landed(p) for p in (P, Q)} == {p: once(ends[p]) for p in (P, Q)}
