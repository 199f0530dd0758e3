"""Consumers as containers beside the controller's own, one for each slot.

The engine starts a container that ends again, so consumers outlive the controller and work while
nobody leads; this makes and retires them, and puts right what somebody removed, stopped or edited.
It looks once a second: one list of one group's containers, on this machine, costs less than to
mend what events alone would miss. Events tell which process has ended.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import isfinite

import structlog

from binwright.controller.docker.ends import Ends
from binwright.controller.docker.engine import Engine
from binwright.controller.docker.shape import GROUP_LABEL, REALM_LABEL, Found, Shape, last_words
from binwright.controller.docker.survey import Survey
from binwright.controller.fleets.keeping import (
    Order,
    Readiness,
    Refusals,
    all_of,
    keep,
    samples,
    within,
)
from binwright.core.errors import EngineRefused, WorldError
from binwright.core.model import Slot
from binwright.core.ports import Process
from binwright.shell.gauges import Sample
from binwright.shell.run import endless

log = structlog.get_logger()

LONGEST_PULL_REST_S = 300.0
CRASHES = "ConsumerCrashes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How patient a fleet is, in seconds."""

    watch_s: float = 1.0  # from one look to the next
    steady_s: float = 3.0  # what crashes sooner does not count as renewed, or recovered
    ask_again_s: float = 10.0  # a process that was just starting does not hear the first SIGTERM
    pull_s: float = 600.0  # how long the image may take to come
    pull_rest_s: float = 5.0  # after the first pull that fails; then longer


@dataclass
class _Leave:
    """A container that was asked to end."""

    until: float  # then it is ended
    asked: float = float("-inf")


@dataclass
class DockerFleet:
    """A `Fleet` of one group's containers.

    Attributes:
        engine: Where they run.
        shape: What they are made from.
        max_slots: No slot from here on is made.
        pace: How patient it is.
    """

    engine: Engine
    shape: Shape
    max_slots: int
    pace: Pace = Pace()
    _desired: frozenset[Slot] | None = None  # None: nobody has said, or we do not lead
    _known: set[Slot] = field(default_factory=set)  # whom we saw or made in this reign
    _leaving: dict[str, _Leave] = field(default_factory=dict)  # by id
    _running: dict[str, float] = field(default_factory=dict)  # id -> since when, as we saw it
    _troubles: dict[Slot, str] = field(default_factory=dict)
    _missing: asyncio.Event = field(default_factory=asyncio.Event)  # the image, until it came
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _refused: Refusals = field(init=False)  # of no slot: the image
    _survey: Survey = field(init=False)
    _ends: Ends = field(init=False)
    _ended: Callable[[], None] | None = None
    _readiness: Readiness = field(init=False)

    def __post_init__(self) -> None:
        self._refused = Refusals(partial(self._tell, warning=True))
        self._survey = Survey(self.engine, self.shape)
        self._ends = Ends(self.engine, self.shape, self._tell_of_end)
        self._readiness = Readiness(self.pace.steady_s)

    # --- the port ----------------------------------------------------------------------------

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`."""
        wanted = within(desired, self.max_slots)
        first, self._desired = self._desired is None, wanted
        if first:
            await self._name_leftovers()
        await self._look()

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`; a desired slot gets a new container."""
        for found in await self._listed():
            if found.slot == slot:
                await self.engine.remove(found.id)
                self._tell("ConsumerKilled", f"{found.name} was declared dead", slot, warning=True)
        self._known.discard(slot)
        self._changed.set()

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`."""
        self._ended = ended

    async def ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Fit `Fleet.ended`."""
        return [slot for slot, process in processes.items() if self._ends.has_ended(slot, process)]

    def notice(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.notice`."""
        if self._readiness.notice(ready):
            self._changed.set()

    def rest(self) -> None:
        """Fit `Fleet.rest`."""
        self._desired = self._ended = None
        self._readiness.forget()
        for memory in (self._known, self._leaving, self._running):
            memory.clear()
        self._survey.forget()

    async def close(self) -> None:
        """End every container of the group, in good order, then not; return when all are gone."""
        self._desired = frozenset()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.shape.grace_s + 10):
                while await self._listed():
                    try:
                        await self._look()
                    except WorldError as exc:
                        log.warning("fleet.failed", group=self.shape.group, reason=str(exc))
                    await asyncio.sleep(min(self.pace.watch_s, 0.5))
        await all_of([self.engine.remove(found.id) for found in await self._listed()])

    @property
    def troubles(self) -> dict[Slot, str]:
        """Return what keeps slots from running, as known now."""
        return dict(self._troubles)

    @property
    def refusals(self) -> list[str]:
        """Return what the engine does not do for us, in words."""
        return self._refused.reasons

    def samples(self) -> Iterator[Sample]:
        """Yield the fleet's numbers, while it is ours to keep."""
        if self._desired is not None:
            troubles = dict.fromkeys(self._troubles, CRASHES)
            yield from samples(self.shape.group, len(self._desired), len(self.refusals), troubles)

    # --- keeping -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the slots as they are wanted, for ever."""
        async with asyncio.TaskGroup() as tasks:
            looking = keep(
                self._look, self._changed, group=self.shape.group, every_s=self.pace.watch_s
            )
            tasks.create_task(endless(looking))
            tasks.create_task(endless(self._fetch()))
            tasks.create_task(endless(self._ends.run()))

    def _tell_of_end(self) -> None:
        if self._ended is not None:
            self._ended()

    async def _fetch(self) -> None:
        """Pull the image when it is missing; what needs none of it does not wait."""
        rest_s = self.pace.pull_rest_s
        while True:
            await self._missing.wait()
            try:
                await self.engine.pull(self.shape.image, self.pace.pull_s)
                self._refused.clear(None)
                self._tell("ImagePulled", self.shape.image, None)
                rest_s = self.pace.pull_rest_s
            except WorldError as exc:
                self._refused.note("ImagePullFailed", str(exc), None)
                await asyncio.sleep(rest_s)
                rest_s = min(2 * rest_s, LONGEST_PULL_REST_S)
            self._missing.clear()
            self._changed.set()

    async def _listed(self) -> list[Found]:
        """Return the group's containers, by slot, whoever made them."""
        listed = await self.engine.containers(dict(self.shape.labels()))
        found = [each for each in map(Found.of, listed) if each is not None]
        return sorted(found, key=lambda each: (each.slot, each.name != self.shape.name(each.slot)))

    async def _look(self) -> None:
        """Compare what is there with what is wanted, and give the orders that follow."""
        async with self._turn:
            if self._desired is None:
                return
            listed = await self._listed()
            there: dict[Slot, Found] = {}
            for found in listed:
                there.setdefault(found.slot, found)
            kept = {slot: there[slot] for slot in sorted(there.keys() & self._desired)}
            self._remember(listed, self._desired)
            await self._survey.look(kept.values(), self._now())
            await self._diagnose(kept)
            going = [found for found in listed if kept.get(found.slot) is not found]
            going += [found for found in kept.values() if found.id in self._leaving]
            going += self._next(kept, self._desired)
            left = {found.id for found in going}
            put_right = [self._put_right(each) for each in kept.values() if each.id not in left]
            made = await self._made(self._desired - there.keys())
            await all_of([*map(self._retire, going), *put_right, *made])

    def _remember(self, listed: Collection[Found], desired: frozenset[Slot]) -> None:
        self._refused.keep(desired)
        ids = {found.id for found in listed}
        self._leaving = {i: leave for i, leave in self._leaving.items() if i in ids}
        now = self._now()
        running = {found.id for found in listed if found.state == "running"}
        self._running = {i: self._running.get(i, now) for i in sorted(running)}

    def _next(self, kept: Mapping[Slot, Found], desired: frozenset[Slot]) -> list[Found]:
        """Return who is made anew now.

        What does not run anyway goes at once. The rest goes one by one, each after all the others
        run and say so themselves: a shape whose containers fail, or an image that is something
        else, stops at the first. Without an image nobody goes.
        """
        if self._survey.image is None:
            return []
        stale = [found for found in kept.values() if self._survey.stale(found)]
        down = [found for found in stale if found.state not in {"running", "paused"}]
        fresh = [found for found in kept.values() if found not in stale]
        settled = set(kept) == desired and all(
            self._steady(found) and self._readiness.steady(found.slot) for found in fresh
        )
        chosen = down or (stale[:1] if settled else [])
        for found in chosen:
            if found.id not in self._leaving:
                why = self._survey.stale(found)
                self._tell("ConsumerRenewed", f"{found.name}: {why}", found.slot)
        return [found for found in chosen if found.id not in self._leaving]

    def _steady(self, found: Found) -> bool:
        since = self._running.get(found.id)
        leaving = found.id in self._leaving
        return since is not None and not leaving and self._now() - since >= self.pace.steady_s

    async def _put_right(self, found: Found) -> None:
        """Let a container run that is wanted and does not."""
        new = found.slot not in self._known
        self._known.add(found.slot)
        match found.state:
            case "created" | "exited":
                await self._begun(found.id, found.slot)
                if not new:
                    self._tell("ConsumerRestored", f"{found.name}: {found.told}", found.slot)
            case "paused":
                await self.engine.unpause(found.id)
                self._tell("ConsumerRestored", f"{found.name} was paused", found.slot)
            case "dead":
                await self.engine.remove(found.id)

    async def _made(self, slots: Collection[Slot]) -> list[Order]:
        """Return the orders that make what is missing; none while there is no image."""
        if not slots or self._missing.is_set():
            return []
        image = await self._survey.find_image()
        if image is None:
            self._missing.set()
            return []
        self._refused.clear(None)
        return [self._make(slot, image) for slot in sorted(slots)]

    async def _make(self, slot: Slot, image: str) -> None:
        name = self.shape.name(slot)
        try:
            made = await self.engine.create(name, self.shape.container(slot, image))
        except EngineRefused as exc:
            self._refused.note("ContainerRefused", f"{name}: {exc}", slot)
            raise
        self._readiness.begun(slot)
        await self._begun(made, slot)
        restored = slot in self._known
        self._known.add(slot)
        if restored:
            self._tell("ConsumerRestored", f"{name} was gone", slot, warning=True)
        else:
            self._tell("ConsumerCreated", name, slot)

    async def _begun(self, container_id: str, slot: Slot) -> None:
        try:
            await self.engine.start(container_id)
        except EngineRefused as exc:
            self._refused.note("ContainerRefused", f"{self.shape.name(slot)}: {exc}", slot)
            raise
        self._refused.clear(slot)

    async def _retire(self, found: Found) -> None:
        """Ask a container to end; when it has, or is overdue, remove it."""
        now = self._now()
        leave = self._leaving.setdefault(found.id, _Leave(now + self.shape.grace_s))
        ended = found.state not in {"running", "paused"}
        if ended or now > leave.until:
            if not ended:
                told = f"{found.name} did not end in {self.shape.grace_s:g} s"
                self._tell("ConsumerOverdue", told, found.slot, warning=True)
            await self.engine.remove(found.id)
            self._forget(found)
        elif now >= leave.asked + self.pace.ask_again_s:
            again, leave.asked = isfinite(leave.asked), now
            if found.state == "paused":
                await self.engine.unpause(found.id)
            await self.engine.dismiss(found.id)
            if not again:
                self._tell("ConsumerDismissed", found.name, found.slot)

    def _forget(self, found: Found) -> None:
        self._known.discard(found.slot)
        self._leaving.pop(found.id, None)
        self._troubles.pop(found.slot, None)
        self._tell("ConsumerRetired", found.name, found.slot)
        self._changed.set()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    # --- what people are told ------------------------------------------------------------------

    async def _diagnose(self, kept: Mapping[Slot, Found]) -> None:
        """Tell what keeps containers from running, once, and when it is over."""
        self._troubles = {s: told for s, told in self._troubles.items() if s in kept}
        for slot, found in kept.items():
            if found.state == "restarting" and slot not in self._troubles:
                self._troubles[slot] = last_words(found, await self.engine.container(found.id))
                self._tell(CRASHES, self._troubles[slot], slot, warning=True)
            elif slot in self._troubles and self._steady(found):
                self._tell("ConsumerRecovered", f"from: {self._troubles.pop(slot)}", slot)

    async def _name_leftovers(self) -> None:
        mine = self.shape.group
        listed = await self.engine.containers({REALM_LABEL: self.shape.realm, GROUP_LABEL: None})
        for group in sorted({each["Labels"][GROUP_LABEL] for each in listed} - {mine}):
            told = (
                f"group {group} has containers here that group {mine}'s controller does not run; "
                f"if nobody does: docker rm -f $(docker ps -aq -f label={GROUP_LABEL}={group})"
            )
            self._tell("LeftoversFound", told, None, warning=True)

    def _tell(self, event: str, text: str, slot: Slot | None, *, warning: bool = False) -> None:
        say = log.warning if warning else log.info
        say("fleet.told", what=event, group=self.shape.group, slot=slot, text=text)
