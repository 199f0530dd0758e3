"""One run: load, faults one after another, recovery of each, and the audit at the end."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.acts import ACTS
from tests.chaos.doing import Done
from tests.chaos.draw import AWAY_S, Kind, Scene, chosen_plan, plan, short_plan
from tests.chaos.health import lacking, recovered
from tests.chaos.stage import CAPACITY, Stage, may_mount, stage

from binwright.core.errors import WorldError
from binwright.core.model import TopicPartition
from binwright.lab.audit import AuditResult, audit
from binwright.lab.load import Played, play
from binwright.lab.pacing import Load
from binwright.lab.streams import Measurement, PerCent
from binwright.shell.run import first_cause

READY_S = 240.0
RECOVERY_S = 60.0
WARM_S, STEADY_S = 180.0, 5.0
LAND_S = 240.0
ROW_S = 12.0  # after so long the load is another one: partitions move
ROWS = 400
RATES = (5, 35)  # per cent of a consumer, of each of eight partitions: two or three consumers
RECORD_BYTES = 4_000  # few and large: small requests would cost the broker more than bytes
CALM_S = (2.0, 6.0)  # from a recovery to the next fault
MISSES = 10  # aimed faults that nobody came to, in a row: then the aim itself is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What was asked for."""

    seed: int = 1
    faults: int = 10
    minutes: float = 60.0
    aimed_only: bool = False
    kinds: tuple[Kind, ...] = ()  # these alone, in turn
    short: bool = False  # a few chosen faults, one after the other, on servers that are cold
    away_s: float = AWAY_S  # how long Spark is away
    cold: bool = False  # do not wait until the servers are at their pace
    deadline_s: float = RECOVERY_S  # of each recovery


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffered:
    """A fault as it was: when, how long until the part was back, and until all was well again."""

    fault: str
    at_s: float
    lasted_s: float
    recovery_s: float
    victim: int | None
    beside: int  # other faults at the same time


@dataclass(slots=True)
class Course:
    """A run at work, and what it came to."""

    wishes: Wishes
    directory: Path
    say: Callable[[str], None]
    suffered: list[Suffered] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)  # aimed at a step that nobody came to
    skipped: list[str] = field(default_factory=list)
    failure: str | None = None
    produced: int = 0
    took_s: float = 0.0
    audit: AuditResult | None = None
    _began: float = field(default_factory=time.monotonic)

    @property
    def clean(self) -> bool:
        """Tell whether nothing was lost, doubled or overdue."""
        return self.failure is None and self.audit is not None and self.audit.clean

    async def run(self) -> None:
        """Set up, disturb, land, audit; everything is taken down again, also when cancelled.

        What goes wrong under way is kept in `failure`, and the audit comes nevertheless.

        Raises:
            WorldError: The system could not be set up, or the audit not be made.
        """
        without = [] if may_mount() else [Kind.DISK_FULL]
        self.skipped += [f"{kind}: nothing can be mounted here" for kind in without]
        async with stage(self.directory, self.say) as made:
            await self._ready(made)
            done = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                load = tasks.create_task(self._load(made, done))
                try:
                    if not (self.wishes.cold or self.wishes.short):
                        await self._warm_up(made)
                    await self._disturb(made, self._plan(without))
                except WorldError as exc:
                    self.failure = str(exc)
                    self.say(f"failed: {exc}")
                except asyncio.CancelledError:
                    self.failure = "ended by a signal"
                    raise
                finally:
                    done.set()
            self.produced = sum(sent.records for sent in load.result().partitions.values())
            await self._landed(made)
            self.say("auditing the tables")
            self.audit = await audit(made.direct.topics, made.direct.kafka, made.direct.lake)
        self.took_s = self._now()

    def _plan(self, without: list[Kind]) -> Iterator[Scene]:
        wishes = self.wishes
        if wishes.short:
            return short_plan()
        if wishes.kinds:
            return chosen_plan(wishes.seed, wishes.kinds, wishes.away_s)
        return plan(wishes.seed, without, wishes.aimed_only, wishes.away_s)

    async def _warm_up(self, made: Stage) -> None:
        """Let Java compile, until what was written lands about as soon as it will."""
        self.say("warming up")
        warm, least = self._now() + WARM_S, self._now() + WARM_S / 8
        while self._now() < warm:
            await asyncio.sleep(CALM_S[0])
            if await recovered(made, (), READY_S) < STEADY_S and self._now() > least:
                return

    def _now(self) -> float:
        return time.monotonic() - self._began

    async def _ready(self, made: Stage) -> None:
        self.say("waiting until every partition is read and every table is written")
        await self._until(made, dict.fromkeys(made.partitions, 0), READY_S)

    async def _landed(self, made: Stage) -> None:
        self.say("waiting until everything has landed")
        try:
            await self._until(made, await made.ends(), LAND_S)
        except WorldError as exc:
            self.failure = self.failure or str(exc)

    @staticmethod
    async def _until(made: Stage, ends: dict[TopicPartition, int], deadline_s: float) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                while lacking(made.picture, ends):  # noqa: ASYNC110 - the picture changes by itself
                    await asyncio.sleep(0.1)
        except TimeoutError as exc:
            lacks = lacking(made.picture, ends)
            raise WorldError(f"after {deadline_s:g} s: {lacks}; logs: {made.directory}") from exc

    async def _load(self, made: Stage, done: asyncio.Event) -> Played:
        load = Load(
            row_s=ROW_S,
            bytes_per_per_cent=CAPACITY / 100,
            record_bytes=RECORD_BYTES,
            delivery_s=120.0,
        )
        rows = stream(self.wishes.seed, made.partitions)
        return await play(rows, made.direct.kafka, load, stop=done)

    # --- the faults ------------------------------------------------------------------------------

    async def _disturb(self, made: Stage, scenes: Iterator[Scene]) -> None:
        calm, misses = Random(self.wishes.seed + 1), 0
        until = self._now() + 60 * self.wishes.minutes
        for scene in scenes:
            if len(self.suffered) >= self.wishes.faults or self._now() > until:
                return
            await asyncio.sleep(calm.uniform(*CALM_S))
            happened = await self._scene(made, scene)
            misses = 0 if happened else misses + 1
            if misses > MISSES:
                raise WorldError(f"{misses} aimed faults in a row met nobody: {self.missed}")

    async def _scene(self, made: Stage, scene: Scene) -> bool:
        at_s = self._now()
        self.say(f"{at_s:.0f} s: " + ", and ".join(map(str, scene)))
        try:
            async with asyncio.TaskGroup() as tasks:
                acts = [tasks.create_task(ACTS[fault.kind](made, fault)) for fault in scene]
        except* WorldError as failed:
            raise WorldError(str(first_cause(failed))) from failed
        done = [act.result() for act in acts]
        lasted_s = self._now() - at_s
        also = [condition for one in done for condition in one.also]
        deadline_s = self.wishes.deadline_s + max(one.extra_s for one in done)
        took_s = await recovered(made, also, deadline_s)
        self._note(scene, done, (at_s, lasted_s, took_s))
        return any(one.happened for one in done)

    def _note(self, scene: Scene, done: list[Done], times: tuple[float, float, float]) -> None:
        at_s, lasted_s, took_s = (round(value, 2) for value in times)
        for fault, one in zip(scene, done, strict=True):
            if not one.happened:
                self.missed.append(str(fault))
                self.say(f"  nobody came to it: {fault}")
                continue
            self.suffered.append(
                Suffered(
                    fault=str(fault),
                    at_s=at_s,
                    lasted_s=lasted_s,
                    recovery_s=took_s,
                    victim=one.victim,
                    beside=len(scene) - 1,
                )
            )
        self.say(f"  back after {lasted_s:.1f} s, well {took_s:.1f} s later ({len(self.suffered)})")

    def facts(self) -> dict[str, Any]:
        """Return what came of it, as plain values."""
        longest = max((s.recovery_s for s in self.suffered), default=None)
        return {
            "seed": self.wishes.seed,
            "faults": [asdict(one) for one in self.suffered],
            "longest_recovery_s": longest,
            "missed": self.missed,
            "skipped": self.skipped,
            "produced_records": self.produced,
            "landed_rows": self.audit.rows if self.audit else None,
            "wrong": list(self.audit.faults()) if self.audit else None,
            "failure": self.failure,
            "clean": self.clean,
            "took_s": round(self.took_s, 1),
        }


def stream(seed: int, partitions: list[TopicPartition]) -> list[Measurement]:
    """Return rates that are drawn anew for every row: consumers run over, partitions move."""
    drawn = Random(seed)
    return [{p: PerCent(drawn.randint(*RATES)) for p in partitions} for _ in range(ROWS)]
