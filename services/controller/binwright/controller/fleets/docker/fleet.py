"""The fleet of containers: reconciles one group's containers with the desired slots.

The engine restarts a container that ends, so consumers outlive the controller and work on while
there is no leader. The fleet creates and retires containers, and repairs what was removed, stopped
or edited by hand. It reconciles once a second: listing one group's containers on this machine costs
less than to recover from events that were missed. Events report which process has ended.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import structlog

from binwright.controller.fleets.docker.ends import EndedContainers
from binwright.controller.fleets.docker.engine import Engine
from binwright.controller.fleets.docker.image_pull import ImagePull
from binwright.controller.fleets.docker.retirement import Retirements
from binwright.controller.fleets.docker.spec import (
    ContainerSpec,
    ListedContainer,
    describe_exit,
)
from binwright.controller.fleets.docker.staleness import StalenessCheck
from binwright.fleets.labels import GROUP_LABEL
from binwright.fleets.reconcile import (
    Operation,
    Readiness,
    Refusals,
    check_slots,
    log_report,
    reconcile_loop,
    run_all,
    samples,
)
from binwright.protocol.errors import EngineRefused, ExternalError
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Process
from binwright.runtime.clock import loop_s
from binwright.runtime.metrics import Sample
from binwright.runtime.run import must_not_end

log = structlog.get_logger()

CRASHES = "ConsumerCrashes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Periods and timeouts of a fleet, in seconds."""

    watch_s: float = 1.0  # from one round to the next
    steady_s: float = 3.0  # a container that crashes sooner counts as neither renewed nor recovered
    ask_again_s: float = 10.0  # between SIGTERMs to a container that is being ended
    pull_s: float = 600.0  # how long the pull of the image may take
    pull_rest_s: float = 5.0  # the pause after the first pull that fails; it grows


@dataclass
class DockerFleet:
    """A `Fleet` of one group's containers.

    Attributes:
        engine: The engine that runs them.
        spec: What they are made from.
        max_slots: Only slots below this number are created.
        timing: Periods and timeouts.
    """

    engine: Engine
    spec: ContainerSpec
    max_slots: int
    timing: Timing = Timing()
    _desired: frozenset[Slot] | None = None  # None: not known yet, or this controller does not lead
    _known: set[Slot] = field(default_factory=set)  # seen or created during this leadership
    _running: dict[str, float] = field(default_factory=dict)  # id -> when first seen running
    _troubles: dict[Slot, str] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _reconciling: asyncio.Lock = field(default_factory=asyncio.Lock)
    _refusals: Refusals = field(init=False)  # for all slots: of the image
    _pull: ImagePull = field(init=False)
    _retirements: Retirements = field(init=False)
    _staleness: StalenessCheck = field(init=False)
    _ends: EndedContainers = field(init=False)
    _on_end: Callable[[], None] | None = None
    _readiness: Readiness = field(init=False)

    def __post_init__(self) -> None:
        timing = self.timing
        self._refusals = Refusals(self._report)
        self._pull = ImagePull(
            *(self.engine, self.spec.image, timing.pull_s, timing.pull_rest_s),
            *(self._refusals, self._report, self._changed),
        )
        self._staleness = StalenessCheck(self.engine, self.spec)
        self._ends = EndedContainers(self.engine, self.spec, self._signal_end)
        self._readiness = Readiness(timing.steady_s)
        self._retirements = Retirements(
            self.engine, self.spec.grace_s, timing.ask_again_s, self._report
        )

    # --- the port ----------------------------------------------------------------------------

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`."""
        allowed = check_slots(desired, self.max_slots)
        first, self._desired = self._desired is None, allowed
        if first:
            await self._report_leftovers()
        await self._reconcile()

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`; a desired slot gets a new container."""
        for found in await self._list():
            if found.slot == slot:
                await self.engine.remove(found.id)
                text = f"{found.name} was declared dead"
                self._report("ConsumerKilled", text, slot, warning=True)
        self._known.discard(slot)
        self._changed.set()

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`."""
        self._on_end = ended

    async def find_ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Fit `Fleet.find_ended`."""
        return [slot for slot, process in processes.items() if self._ends.has_ended(slot, process)]

    def update_ready(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.update_ready`."""
        if self._readiness.update_ready(ready):
            self._changed.set()

    def detach(self) -> None:
        """Fit `Fleet.detach`."""
        self._desired = self._on_end = None
        self._readiness.forget()
        self._known.clear()
        self._running.clear()
        self._retirements.retain(())
        self._staleness.forget()

    async def close(self) -> None:
        """End all containers of the group, at last by force; return when they are removed."""
        self._desired = frozenset()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.spec.grace_s + 10):
                while await self._list():
                    try:
                        await self._reconcile()
                    except ExternalError as exc:
                        log.warning("fleet.failed", group=self.spec.group, reason=str(exc))
                    await asyncio.sleep(min(self.timing.watch_s, 0.5))
        await run_all([self.engine.remove(found.id) for found in await self._list()])

    async def running(self) -> Collection[Slot]:
        """Return the slots whose container runs; raise an `ExternalError`."""
        return {found.slot for found in await self._list() if found.state == "running"}

    @property
    def troubles(self) -> dict[Slot, str]:
        """Return what keeps slots from running, as last seen."""
        return dict(self._troubles)

    @property
    def refusals(self) -> list[str]:
        """Return the reasons why the engine refuses requests."""
        return self._refusals.reasons

    def samples(self) -> Iterator[Sample]:
        """Yield the fleet's metrics, while this controller leads."""
        if self._desired is not None:
            troubles = dict.fromkeys(self._troubles, CRASHES)
            yield from samples(self.spec.group, len(self._desired), len(self.refusals), troubles)

    # --- reconciling ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Reconcile, pull a missing image, and follow the engine's events; for ever."""
        async with asyncio.TaskGroup() as tasks:
            reconciling = reconcile_loop(
                self._reconcile, self._changed, group=self.spec.group, every_s=self.timing.watch_s
            )
            tasks.create_task(must_not_end(reconciling))
            tasks.create_task(must_not_end(self._pull.run()))
            tasks.create_task(must_not_end(self._ends.run()))

    def _signal_end(self) -> None:
        if self._on_end is not None:
            self._on_end()

    async def _list(self) -> list[ListedContainer]:
        """Return the group's containers, by slot; the one that has the slot's name comes first."""
        listed = await self.engine.containers({GROUP_LABEL: self.spec.group})
        ours = (each for each in listed if self.spec.owns(each["Labels"]))
        found = [each for each in map(ListedContainer.from_listing, ours) if each is not None]
        return sorted(found, key=lambda each: (each.slot, each.name != self.spec.name(each.slot)))

    async def _reconcile(self) -> None:
        """Compare the containers with the desired slots, and run the operations that follow."""
        async with self._reconciling:
            if self._desired is None:
                return
            listed = await self._list()
            present: dict[Slot, ListedContainer] = {}
            for found in listed:
                present.setdefault(found.slot, found)
            kept = {slot: present[slot] for slot in sorted(present.keys() & self._desired)}
            self._remember(listed, self._desired)
            await self._staleness.refresh(kept.values(), loop_s())
            await self._diagnose(kept)
            retired = [found for found in listed if kept.get(found.slot) is not found]
            retired += [found for found in kept.values() if found.id in self._retirements]
            retired += self._choose_stale(kept, self._desired)
            retired_ids = {found.id for found in retired}
            repairs = [self._repair(each) for each in kept.values() if each.id not in retired_ids]
            creations = await self._creations(self._desired - present.keys())
            await run_all([*map(self._retire, retired), *repairs, *creations])

    def _remember(self, listed: Collection[ListedContainer], desired: frozenset[Slot]) -> None:
        self._refusals.retain(desired)
        self._retirements.retain({found.id for found in listed})
        now = loop_s()
        running = {found.id for found in listed if found.state == "running"}
        self._running = {i: self._running.get(i, now) for i in sorted(running)}

    def _choose_stale(
        self, kept: Mapping[Slot, ListedContainer], desired: frozenset[Slot]
    ) -> list[ListedContainer]:
        """Return the stale containers to replace now.

        Those that do not run are replaced at once. The others are replaced one by one, each after
        all fresh ones run and have reported that they are ready: a spec whose containers fail, or
        an image that is no consumer, stops at the first. Without an image none is replaced.
        """
        if self._staleness.image is None:
            return []
        stale = [found for found in kept.values() if self._staleness.stale(found)]
        down = [found for found in stale if found.state not in {"running", "paused"}]
        fresh = [found for found in kept.values() if found not in stale]
        settled = set(kept) == desired and all(
            self._steady(found) and self._readiness.steady(found.slot) for found in fresh
        )
        chosen = down or (stale[:1] if settled else [])
        for found in chosen:
            if found.id not in self._retirements:
                reason = self._staleness.stale(found)
                self._report("ConsumerRenewed", f"{found.name}: {reason}", found.slot)
        return [found for found in chosen if found.id not in self._retirements]

    def _steady(self, found: ListedContainer) -> bool:
        since = self._running.get(found.id)
        retiring = found.id in self._retirements
        return since is not None and not retiring and loop_s() - since >= self.timing.steady_s

    async def _repair(self, found: ListedContainer) -> None:
        """Start a desired slot's container if it does not run."""
        new = found.slot not in self._known
        self._known.add(found.slot)
        match found.state:
            case "created" | "exited":
                await self._start(found.id, found.slot)
                if not new:
                    self._report("ConsumerRestored", f"{found.name}: {found.status}", found.slot)
            case "paused":
                await self.engine.unpause(found.id)
                self._report("ConsumerRestored", f"{found.name} was paused", found.slot)
            case "dead":
                await self.engine.remove(found.id)

    async def _creations(self, slots: Collection[Slot]) -> list[Operation]:
        """Return the operations that create missing containers; none while there is no image."""
        if not slots or self._pull.pending:
            return []
        image = await self._staleness.find_image()
        if image is None:
            self._pull.request()
            return []
        self._refusals.clear(None)
        return [self._create(slot, image) for slot in sorted(slots)]

    async def _create(self, slot: Slot, image: str) -> None:
        name = self.spec.name(slot)
        with self._refusals.noted(EngineRefused, "ContainerRefused", slot, name):
            created = await self.engine.create(name, self.spec.container(slot, image))
        self._readiness.mark_restarted(slot)
        await self._start(created, slot)
        restored = slot in self._known
        self._known.add(slot)
        if restored:
            self._report("ConsumerRestored", f"{name} was gone", slot, warning=True)
        else:
            self._report("ConsumerCreated", name, slot)

    async def _start(self, container_id: str, slot: Slot) -> None:
        with self._refusals.noted(EngineRefused, "ContainerRefused", slot, self.spec.name(slot)):
            await self.engine.start(container_id)
        self._refusals.clear(slot)

    async def _retire(self, found: ListedContainer) -> None:
        if await self._retirements.advance(found, loop_s()):
            self._known.discard(found.slot)
            self._troubles.pop(found.slot, None)
            self._report("ConsumerRetired", found.name, found.slot)
            self._changed.set()

    # --- reports -------------------------------------------------------------------------------

    async def _diagnose(self, kept: Mapping[Slot, ListedContainer]) -> None:
        """Report once that a container crashes, and once that it has recovered."""
        self._troubles = {s: text for s, text in self._troubles.items() if s in kept}
        for slot, found in kept.items():
            if found.state == "restarting" and slot not in self._troubles:
                self._troubles[slot] = describe_exit(found, await self.engine.container(found.id))
                self._report(CRASHES, self._troubles[slot], slot, warning=True)
            elif slot in self._troubles and self._steady(found):
                self._report("ConsumerRecovered", f"from: {self._troubles.pop(slot)}", slot)

    async def _report_leftovers(self) -> None:
        ours = self.spec.group
        listed = [each["Labels"] for each in await self.engine.containers({GROUP_LABEL: None})]
        groups = {labels[GROUP_LABEL] for labels in listed if self.spec.in_project(labels)}
        for group in sorted(groups - {ours}):
            text = (
                f"group {group} has containers here that group {ours}'s controller does not run; "
                f"if no other does: docker rm -f $(docker ps -aq -f label={GROUP_LABEL}={group})"
            )
            self._report("LeftoversFound", text, None, warning=True)

    def _report(self, event: str, text: str, slot: Slot | None, *, warning: bool = False) -> None:
        log_report(self.spec.group, event, text, slot, warning=warning)
