"""Finds containers to replace: their settings or image changed, or they were edited by hand."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from binwright.controller.fleets.docker.engine import Engine, Obj
from binwright.controller.fleets.docker.spec import RESTART, ContainerSpec, ListedContainer

INSPECT_S = 15.0  # how often containers are inspected: the engine's list lacks their limits
LIMITS = ("Memory", "MemorySwap", "NanoCpus", "CpuQuota", "CpusetCpus", "PidsLimit")


@dataclass
class StalenessCheck:
    """Inspects a group's containers from time to time, and decides which are stale.

    Limits are compared with those of the first inspection, not with the spec: an engine drops
    limits that its kernel does not support.
    """

    engine: Engine
    spec: ContainerSpec
    image: str | None = None  # the id of the local image; None: the engine does not have it
    _limits: dict[str, tuple[object, ...]] = field(default_factory=dict)  # by id
    _edited: set[str] = field(default_factory=set)  # ids
    _next_s: float = float("-inf")

    async def find_image(self) -> str | None:
        """Return the image's id; None if the engine does not have it."""
        found = await self.engine.image(self.spec.image)
        self.image = found["Id"] if found else None
        return self.image

    async def refresh(self, containers: Collection[ListedContainer], now: float) -> None:
        """Inspect the containers and the image if it is time; raise `ExternalError`.

        Args:
            containers: The desired slots' containers.
            now: Seconds, of the event loop's clock.
        """
        ids = {found.id for found in containers}
        self._edited &= ids
        self._limits = {i: limits for i, limits in self._limits.items() if i in ids}
        if now < self._next_s and ids <= self._limits.keys():
            return
        await self.find_image()
        for each in await asyncio.gather(*(self.engine.container(i) for i in sorted(ids))):
            if each is not None and self._was_edited(each):
                self._edited.add(each["Id"])
        self._next_s = now + INSPECT_S

    def _was_edited(self, container: Obj) -> bool:
        host = container["HostConfig"]
        limits = tuple(host.get(name) for name in LIMITS)
        known = self._limits.setdefault(container["Id"], limits)
        return known != limits or host["RestartPolicy"]["Name"] != RESTART

    def stale(self, found: ListedContainer) -> str:
        """Return why a container must be replaced; empty if it is not stale."""
        if found.spec != self.spec.digest:
            return "its settings changed"
        if self.image is not None and found.image != self.image:
            return "there is a newer image"
        cut_off = found.state == "running" and not found.connected and not self.spec.shares_network
        return "it was edited" if cut_off or found.id in self._edited else ""

    def forget(self) -> None:
        """Forget all inspections."""
        self._limits.clear()
        self._edited.clear()
        self._next_s = float("-inf")
