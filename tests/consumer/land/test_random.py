"""Random faults of writers, readers, Spark, staging and Kafka: every row lands exactly once."""

import random
from contextlib import AsyncExitStack

import pytest

from binwright.kafka.control_records import LANDING_PARTITIONS
from binwright.protocol.model import TopicPartition
from binwright.tables.ports import NotInPlace
from binwright.testing.lake import Failure

from .scene import COLUMNS, LANDING, P, Process, Q, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

WRITE_FAILURES = [Failure.UNCLEAR, Failure.UNCLEAR_LANDED, Failure.CONFLICT, Failure.REFUSED]
FAILURES = [*WRITE_FAILURES, Failure.UNREADABLE, Failure.UNAVAILABLE]


class RandomFaults:
    """The load and the faults of a group, drawn from one seed."""

    def __init__(self, scene: Scene, stack: AsyncExitStack, seed: int) -> None:
        self.scene, self.random = scene, random.Random(seed)
        scene.staging.in_place = seed % 2 == 1
        self.read: dict[TopicPartition, int] = {P: 0, Q: 0}
        self.alive: list[Process] = []
        self._stack, self._started = stack, 0

    async def start(self) -> None:
        """Make a new process the writer, while earlier ones go on."""
        self._started += 1
        entered = process(
            self.scene,
            "orders",
            name=f"w{self._started}",
            freshness_s=self.random.choice([0.5, 2.0]),
            batch_bytes=self.random.choice([600, 1 << 30]),
            in_place=self.random.random() < 0.9 and self.scene.staging.in_place,
        )
        self.alive.append(await self._stack.enter_async_context(entered))

    async def read_on(self) -> None:
        """Read and stage as a reader that obeys gaps, and sometimes as a superseded one."""
        for each in self.alive:
            for gap in each.gaps:
                for partition, offset in gap.items():
                    self.read[partition] = min(offset, self.read[partition])
            each.gaps.clear()
        for partition in (P, Q):
            self.scene.produce(partition, self.random.randint(0, 6))
            end = self.scene.topics.bounds(partition)[1]
            first = self.read[partition]
            if self.random.random() < 0.2:
                first = max(first - self.random.randint(0, 10), 0)
            if first < end:
                lost = self.random.random() < 0.1
                await self.scene.stage({partition: (first, end)}, announce=not lost)
            self.read[partition] = end

    async def inject_fault(self) -> None:
        """Inject one random fault."""
        each = self.random.choice(self.alive)
        match self.random.randrange(12):
            case 0:
                each.kill()
                self.alive.remove(each)
                await self.start()
            case 1:
                await self.start()
            case 2 | 3 | 4:
                each.lake.fail_next(*self.random.choices(FAILURES, k=self.random.randint(1, 3)))
            case 5 | 6:
                each.lake.latency_s = self.random.choice([0.0, 0.3, 2.0, 7.0])
                each.lake.write_timeout_s = self.random.choice([1.0, 120.0])
                because = NotInPlace("injected", of_table=self.random.random() < 0.1)
                each.lake.not_in_place = self.random.choice([None, because])
            case 7:
                each.writers.stop(["orders"])
            case 8:
                each.writers.start(["orders"])
            case 9 if files := sorted(self.scene.files()):
                del self.scene.staging.files["orders"][self.random.choice(files)]
            case 10 if files := sorted(self.scene.files()):
                self.scene.staging.files["orders"][self.random.choice(files)].torn = True
            case 11:
                self.scene.bus.delete(LANDING)
                await self.scene.bus.ensure(LANDING, LANDING_PARTITIONS, {})
            case _:
                self.scene.storage.table("orders").add_commit("another process")

    async def settle(self) -> None:
        """Clear all faults; one writer remains."""
        for each in self.alive:
            each.lake.clear_failures()
            each.lake.not_in_place = None
            each.lake.latency_s, each.lake.write_timeout_s = 0.1, 120.0
            each.writers.stop(["orders"])
        await seconds(10)
        await self.start()
        for _ in range(4):
            await self.read_on()
            await seconds(20)


@pytest.mark.parametrize("seed", range(8))
async def test_every_row_lands_once(seed: int) -> None:
    await land_with_faults(await Scene().prepare(), seed)


@pytest.mark.parametrize("seed", range(16))
async def test_every_record_lands_once_in_one_of_two_tables(seed: int) -> None:
    """A record that is read again may be bad then, or not any more."""
    scene, decoding = await Scene(columns=COLUMNS).prepare(), random.Random(seed)
    share = 0.05 if seed % 2 else 0.3  # in place lands what has none
    scene.staging.is_bad = lambda _: decoding.random() < share
    await land_with_faults(scene, seed)
    assert scene.bad()


async def land_with_faults(scene: Scene, seed: int) -> None:
    async with AsyncExitStack() as stack:
        faults = RandomFaults(scene, stack, seed)
        await faults.start()
        await seconds(2)
        for _ in range(60):
            await faults.read_on()
            if faults.random.random() < 0.4:
                await faults.inject_fault()
            await seconds(faults.random.choice([0.1, 0.5, 2.0, 5.0]))
        await faults.settle()
        ends = {p: scene.topics.bounds(p)[1] for p in (P, Q)}
        for _ in range(4):  # the last rows may not have been announced
            await seconds(20)
            for each in faults.alive:
                for gap in each.gaps:
                    for partition, offset in gap.items():
                        await scene.stage({partition: (offset, ends[partition])})
                each.gaps.clear()
        assert {p: scene.landed(p) for p in (P, Q)} == {p: once(ends[p]) for p in (P, Q)}
        calls = {name for each in faults.alive for name, _ in each.lake.calls}
        assert ("add_files" in calls) == scene.staging.in_place
