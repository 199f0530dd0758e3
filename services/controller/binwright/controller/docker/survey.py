"""Which containers must be made anew: their settings, their image or somebody's hand changed."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from binwright.controller.docker.engine import Engine, Obj
from binwright.controller.docker.shape import RESTART, Found, Shape

CLOSELY_S = 15.0  # between looks at what a list does not tell
LIMITS = ("Memory", "MemorySwap", "NanoCpus", "CpuQuota", "CpusetCpus", "PidsLimit")


@dataclass
class Survey:
    """What is known of containers beyond the engine's list of them.

    Limits are compared with those of the first look, not with what was asked for: an engine leaves
    out what its kernel does not have.
    """

    engine: Engine
    shape: Shape
    image: str | None = None  # the id that the image's name has now; None: it is not here
    _limits: dict[str, tuple[object, ...]] = field(default_factory=dict)  # by id
    _edited: set[str] = field(default_factory=set)  # ids
    _next_s: float = float("-inf")

    async def find_image(self) -> str | None:
        """Return the image's id; None if it is not here."""
        found = await self.engine.image(self.shape.image)
        self.image = found["Id"] if found else None
        return self.image

    async def look(self, containers: Collection[Found], now: float) -> None:
        """Now and then look at each container and at the image; raise `WorldError`."""
        ids = {found.id for found in containers}
        self._edited &= ids
        self._limits = {i: limits for i, limits in self._limits.items() if i in ids}
        if now < self._next_s and ids <= self._limits.keys():
            return
        await self.find_image()
        for each in await asyncio.gather(*(self.engine.container(i) for i in sorted(ids))):
            if each is not None and self._was_edited(each):
                self._edited.add(each["Id"])
        self._next_s = now + CLOSELY_S

    def _was_edited(self, container: Obj) -> bool:
        host = container["HostConfig"]
        limits = tuple(host.get(name) for name in LIMITS)
        known = self._limits.setdefault(container["Id"], limits)
        return known != limits or host["RestartPolicy"]["Name"] != RESTART

    def stale(self, found: Found) -> str:
        """Return why a container must be made anew; empty if it need not."""
        if found.shape != self.shape.digest:
            return "its settings changed"
        if self.image is not None and found.image != self.image:
            return "there is a newer image"
        cut_off = found.state == "running" and not found.connected and not self.shape.borrows
        return "it was edited" if cut_off or found.id in self._edited else ""

    def forget(self) -> None:
        """Know nothing, as before the first look."""
        self._limits.clear()
        self._edited.clear()
        self._next_s = float("-inf")
