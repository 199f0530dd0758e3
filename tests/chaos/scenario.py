"""One run: load, faults one after another, recovery of each, and the audit at the end."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.bombed_topics import BombedTopics, run_bombed_topics
from tests.chaos.evolving_topics import EvolvingTopics, run_evolving_topics
from tests.chaos.fault_actions import FAULT_ACTIONS
from tests.chaos.fault_helpers import FaultResult
from tests.chaos.fault_schedule import (
    LASTING_S,
    NEED_TWO,
    ConcurrentFaults,
    Kind,
    chosen_schedule,
    evolution_schedule,
    random_schedule,
    short_evolution,
    short_schedule,
    split_schedule,
)
from tests.chaos.health import health_problems, wait_until_recovered
from tests.chaos.landed_values import Comparison, compare_values
from tests.chaos.pod_memory import PodMemory
from tests.chaos.servers import may_mount
from tests.chaos.system import System, run_system
from tests.chaos.system_settings import CAPACITY, LIMIT, RegistryTopics, SystemShape

from binwright.inspect.audit import AuditResult, audit
from binwright.inspect.row_ages import Freshness, freshness
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition
from binwright.runtime.run import background_tasks, ungrouped
from binwright.streams.load import LoadResult, run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent, Row

READY_S = 240.0
RECOVERY_S = 60.0
WARM_S, STEADY_S = 180.0, 5.0
LAND_S = 240.0
ROW_S = 12.0  # after so long the load is another one: partitions move
ROWS = 400
RATES, USUAL_PARTITIONS = (5, 35), 8  # per cent of a consumer: two or three consumers in all
HOT, COOL_RATES = 200 * LIMIT / CAPACITY, (2, 15)
"""Per cent of a consumer: a partition at twice the limit, and the others beside it."""
RECORD_BYTES = 4_000  # few and large: small requests would cost the broker more than bytes
CALM_S = (2.0, 6.0)  # from a recovery to the next fault
MISSES = 10  # aimed faults in a row that no process came to: then the step itself is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOptions:
    """What was asked for."""

    seed: int = 1
    faults: int = 10
    minutes: float = 60.0
    aimed_only: bool = False
    kinds: tuple[Kind, ...] = ()  # these alone, in turn
    short: bool = False  # a few chosen faults, one after the other, on servers that are cold
    evolution: bool = False  # schemas evolve, and kills are aimed at that
    skip: int = 0  # scenes at the beginning of the plan
    lasting_s: Mapping[Kind, float] = field(default_factory=lambda: LASTING_S)
    cold: bool = False  # do not wait until the servers are at their pace
    deadline_s: float = RECOVERY_S  # of each recovery
    shape: SystemShape = field(default_factory=SystemShape)  # but for its number of servers

    @property
    def servers(self) -> int:
        """How many brokers and Spark servers there must be: two, if one of them is to fail."""
        if self.short or self.evolution:
            return 1
        return 2 if NEED_TWO & set(self.kinds) or not (self.kinds or self.shape.split) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffered:
    """A fault as it was: when, how long until the part was back, and until all was well again."""

    fault: str
    call: str  # in which it struck, if it was aimed at a step
    at_s: float
    lasted_s: float
    recovery_s: float
    victim: int | None
    beside: int  # other faults at the same time
    others_s: float | None  # what the records of other tables took to land meanwhile, at most


@dataclass(slots=True)
class Scenario:
    """A run at work, and what it came to."""

    options: ScenarioOptions
    directory: Path
    log: Callable[[str], None]
    injected_faults: list[Suffered] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)  # aimed at a step that nobody came to
    skipped: list[str] = field(default_factory=list)
    failure: str | None = None
    produced: int = 0
    helpers: int = 0  # that had staged some of a split partition, at most, when a fault was over
    took_s: float = 0.0
    audit: AuditResult | None = None
    comparison: Comparison | None = None  # of values, where schemas evolve
    row_ages: tuple[Freshness, ...] = ()
    memory: PodMemory | None = None  # of consumers, where there are bombs
    bombs: int = 0
    bomb_faults: tuple[str, ...] = ()
    _began: float = field(default_factory=time.monotonic)

    @property
    def clean(self) -> bool:
        """Tell whether nothing was lost, doubled, overdue, or landed as another value."""
        differs = self.comparison is not None and self.comparison.differences
        audited = self.audit is not None and self.audit.clean
        split = bool(self.helpers) == self.options.shape.split
        bombed = self.bomb_faults or (self.memory is not None and self.memory.killed)
        return self.failure is None and audited and not differs and not bombed and split

    async def run(self) -> None:
        """Set up, disturb, land, audit; everything is taken down again, also when cancelled.

        What goes wrong under way is kept in `failure`, and the audit comes nevertheless.

        Raises:
            WorldError: The system could not be set up, or the audit not be made.
        """
        without = [] if may_mount() else [Kind.DISK_FULL]
        self.skipped += [f"{kind}: nothing can be mounted here" for kind in without]
        without.append(Kind.REGISTRY_KILL)  # there is one only where schemas evolve
        shape = replace(self.options.shape, servers=self.options.servers)
        async with AsyncExitStack() as held:
            topics = await held.enter_async_context(self._topics())
            system = run_system(self.directory, shape, self.log, topics)
            made = await held.enter_async_context(system)
            if shape.bombs:
                self.memory = PodMemory()
                watching = self.memory.watch(lambda: [*chain(*made.consumers().values())], self.log)
                await held.enter_async_context(background_tasks(watching))
            await self._ready(made)
            await self._under_load(made, topics, without)
            await self._landed(made)
            await self._judge(made, topics)
        self.took_s = self._now()

    @asynccontextmanager
    async def _topics(self) -> AsyncIterator[RegistryTopics | None]:
        home = self.directory / "registry"
        if not (self.options.evolution or self.options.shape.bombs):
            yield None
            return
        self.log("starting the schema registry")
        if self.options.evolution:
            async with run_evolving_topics(home, self.options.seed) as evolving:
                yield evolving
        else:
            async with run_bombed_topics(home) as bombed:
                yield bombed

    async def _under_load(
        self, made: System, topics: RegistryTopics | None, without: list[Kind]
    ) -> None:
        done = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            load = tasks.create_task(self._load(made, topics, done))
            match topics:
                case EvolvingTopics():
                    tasks.create_task(topics.evolve(done))
                case BombedTopics():
                    kafka = made.direct_settings.kafka
                    tasks.create_task(topics.write(kafka, made.partitions, done))
            try:
                if not (self.options.cold or self.options.short):
                    await self._warm_up(made)
                plan = islice(self._plan(without), self.options.skip, None)
                await self._disturb(made, plan)
            except ExternalError as exc:
                self.failure = str(exc)
                self.log(f"failed: {exc}")
            except asyncio.CancelledError:
                self.failure = "ended by a signal"
                raise
            finally:
                done.set()
        self.produced = sum(sent.records for sent in load.result().partitions.values())

    async def _judge(self, made: System, topics: RegistryTopics | None) -> None:
        self.log("auditing the tables")
        settings = made.direct_settings
        found = await audit(settings.topics, settings.kafka, settings.lake)
        self.audit = without_bombs(found, made.bombs)
        self.row_ages = await freshness(settings.topics, settings.lake)
        match topics:
            case EvolvingTopics():
                self.log("comparing values")
                self.comparison = await compare_values(topics, settings, made.bus)
            case BombedTopics():
                self.log("looking for the bombs")
                self.bombs = topics.written
                self.bomb_faults = await topics.differences(settings)

    def _plan(self, without: list[Kind]) -> Iterator[ConcurrentFaults]:
        options = self.options
        if options.short:
            return short_evolution() if options.evolution else short_schedule()
        if options.evolution:
            return evolution_schedule(options.seed)
        if options.kinds:
            return chosen_schedule(options.seed, options.kinds, options.lasting_s)
        if options.shape.split:
            return split_schedule(options.seed)
        return random_schedule(options.seed, without, options.aimed_only, options.lasting_s)

    async def _warm_up(self, made: System) -> None:
        """Let Java compile, until what was written lands about as soon as it will."""
        self.log("warming up")
        warm, least = self._now() + WARM_S, self._now() + WARM_S / 8
        while self._now() < warm:
            await asyncio.sleep(CALM_S[0])
            if await wait_until_recovered(made, (), READY_S) < STEADY_S and self._now() > least:
                return

    def _now(self) -> float:
        return time.monotonic() - self._began

    async def _ready(self, made: System) -> None:
        self.log("waiting until every partition is read and every table is written")
        await self._until(made, dict.fromkeys(made.partitions, 0), READY_S)

    async def _landed(self, made: System) -> None:
        self.log("waiting until everything has landed")
        try:
            await self._until(made, await made.ends(), LAND_S)
        except ExternalError as exc:
            self.failure = self.failure or str(exc)

    @staticmethod
    async def _until(made: System, ends: dict[TopicPartition, int], deadline_s: float) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                while health_problems(made.view, ends):  # noqa: ASYNC110 - the picture changes by itself
                    await asyncio.sleep(0.1)
        except TimeoutError as exc:
            lacks = health_problems(made.view, ends)
            raise ExternalError(f"after {deadline_s:g} s: {lacks}; logs: {made.directory}") from exc

    async def _load(
        self, made: System, topics: RegistryTopics | None, done: asyncio.Event
    ) -> LoadResult:
        load = Pacing(
            row_s=ROW_S,
            bytes_per_per_cent=CAPACITY / 100,
            record_bytes=RECORD_BYTES if topics is None else topics.record_bytes,
            delivery_s=120.0,
        )
        rows = stream(self.options.seed, made.partitions, hot=self.options.shape.split)
        make = None if topics is None else topics.record
        return await run_load(rows, made.direct_settings.kafka, load, stop=done, make=make)

    # --- the faults ------------------------------------------------------------------------------

    async def _disturb(self, made: System, scenes: Iterator[ConcurrentFaults]) -> None:
        calm, misses = Random(self.options.seed + 1), 0
        until = self._now() + 60 * self.options.minutes
        for scene in scenes:
            if len(self.injected_faults) >= self.options.faults or self._now() > until:
                return
            await asyncio.sleep(calm.uniform(*CALM_S))
            happened = await self._scene(made, scene)
            misses = 0 if happened else misses + 1
            if misses > MISSES:
                raise ExternalError(f"{misses} aimed faults in a row met nobody: {self.missed}")

    async def _scene(self, made: System, scene: ConcurrentFaults) -> bool:
        at_s = self._now()
        self.log(f"{at_s:.0f} s: " + ", and ".join(map(str, scene)))
        with ungrouped(ExternalError):
            async with asyncio.TaskGroup() as tasks:
                acts = [
                    tasks.create_task(FAULT_ACTIONS[fault.kind](made, fault)) for fault in scene
                ]
        done = [act.result() for act in acts]
        lasted_s = self._now() - at_s
        conditions = [condition for one in done for condition in one.conditions]
        deadline_s = self.options.deadline_s + max(one.extra_recovery_s for one in done)
        took_s = await wait_until_recovered(made, conditions, deadline_s)
        for _, *helpers in made.view.splits.values():
            self.helpers = max(self.helpers, sum(each.rows > 0 for each in helpers))
        self._note(scene, done, (at_s, lasted_s, took_s))
        return any(one.happened for one in done)

    def _note(
        self, scene: ConcurrentFaults, done: list[FaultResult], times: tuple[float, float, float]
    ) -> None:
        at_s, lasted_s, took_s = (round(value, 2) for value in times)
        for fault, one in zip(scene, done, strict=True):
            if not one.happened:
                self.missed.append(str(fault))
                self.log(f"  nobody came to it: {fault}")
                continue
            self.injected_faults.append(
                Suffered(
                    fault=str(fault),
                    call=one.call,
                    at_s=at_s,
                    lasted_s=lasted_s,
                    recovery_s=took_s,
                    victim=one.victim,
                    beside=len(scene) - 1,
                    others_s=None if one.others_s is None else round(one.others_s, 2),
                )
            )
        others = [f"; others landed within {o:.1f} s" for one in done if (o := one.others_s)]
        self.log(
            f"  back after {lasted_s:.1f} s, well {took_s:.1f} s later "
            f"({len(self.injected_faults)}){''.join(others)}"
        )

    def facts(self) -> dict[str, Any]:
        """Return what came of it, as plain values."""
        longest = max((s.recovery_s for s in self.injected_faults), default=None)
        return {
            "seed": self.options.seed,
            "faults": [asdict(one) for one in self.injected_faults],
            "longest_recovery_s": longest,
            "missed": self.missed,
            "skipped": self.skipped,
            "produced_records": self.produced,
            "helpers": self.helpers,
            "landed_rows": self.audit.rows if self.audit else None,
            "row_ages": [asdict(one) for one in self.row_ages],
            "wrong": list(self.audit.faults()) if self.audit else None,
            "comparison": asdict(self.comparison) if self.comparison else None,
            "bombs": self.bombs,
            "peak_bytes": self.memory.peak_bytes if self.memory else None,
            "killed_for_memory": self.memory.killed if self.memory else [],
            "bomb_faults": list(self.bomb_faults),
            "failure": self.failure,
            "clean": self.clean,
            "took_s": round(self.took_s, 1),
        }


def without_bombs(found: AuditResult, bombs: Collection[tuple[TopicPartition, int]]) -> AuditResult:
    """Return the audit without the records that no consumer can decode, if just these are missing.

    They are kept for a person.
    """
    tables = []
    for table in found.tables:
        partitions = []
        for each in table.partitions:
            own = sorted(
                offset for p, offset in bombs if p == TopicPartition(table.topic, each.partition)
            )
            listed = [n for r in each.lost_ranges for n in range(r.first, r.last + 1)]
            excused = own and listed == own and each.lost == len(own)
            partitions.append(replace(each, lost=0, lost_ranges=()) if excused else each)
        tables.append(replace(table, partitions=tuple(partitions)))
    return AuditResult(tables=tuple(tables))


def stream(seed: int, partitions: list[TopicPartition], *, hot: bool = False) -> list[Row]:
    """Return rates that are drawn anew for every row: consumers run over, partitions move.

    Where one is `hot`, it is the first, at a rate of its own.
    """
    drawn, share = Random(seed), USUAL_PARTITIONS / len(partitions)
    low, high = COOL_RATES if hot else RATES
    rows = [{p: PerCent(share * drawn.randint(low, high)) for p in partitions} for _ in range(ROWS)]
    first = {partitions[0]: PerCent(HOT)} if hot else {}
    return [row | first for row in rows]
