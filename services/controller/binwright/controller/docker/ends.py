"""Which containers have ended, and when: by the engine's events.

A container that the engine starts again has the same id and name, so neither tells the process that
has ended from the one that runs now. Time does: both are of one machine, and one clock.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from binwright.controller.docker.engine import Engine, Obj
from binwright.controller.docker.shape import Shape, slot_of
from binwright.core.errors import WorldError
from binwright.core.model import Slot
from binwright.core.ports import Process
from binwright.shell.pauses import Pause

log = structlog.get_logger()

FOLLOW_S = 60.0  # a stream is asked for anew so often: what died silently is noticed
PAST_S = 60.0  # what ended before we began is of use to a new leader
KEPT_MS = 600_000
SHORT_ID = 12  # of so many characters of its id an engine makes a container's host name
LONGEST_REST_S = 10.0


@dataclass
class Ends:
    """When containers of one group ended last.

    Attributes:
        engine: Where they run.
        shape: What they are made from.
        told: Called at each end.
    """

    engine: Engine
    shape: Shape
    told: Callable[[], None]
    _last_ms: dict[tuple[Slot, str], int] = field(default_factory=dict)  # by slot and host name

    def has_ended(self, slot: Slot, process: Process) -> bool:
        """Whether the process that sent its Hello then is over."""
        last_ms = self._last_ms.get((slot, self._host(process.host)))
        return last_ms is not None and 0 < process.sent_ms < last_ms

    async def run(self) -> None:
        """Follow the events, for ever."""
        since_s, pause = time.time() - PAST_S, Pause(LONGEST_REST_S)
        while True:
            try:
                async for event in self.engine.ends(self.shape.labels(), since_s, FOLLOW_S):
                    since_s = event["timeNano"] / 1e9  # that one comes again: it changes nothing
                    self._note(event)
                pause = Pause(LONGEST_REST_S)
            except WorldError as exc:
                log.warning("events.failed", group=self.shape.group, reason=str(exc))
                await asyncio.sleep(pause.next())

    def _note(self, event: Obj) -> None:
        actor, at_ms = event["Actor"], event["timeNano"] // 1_000_000
        if (slot := slot_of(actor["Attributes"])) is None:
            return
        self._last_ms = {k: ms for k, ms in self._last_ms.items() if ms > at_ms - KEPT_MS}
        self._last_ms[slot, self._host(actor["ID"][:SHORT_ID])] = at_ms
        self.told()

    def _host(self, name: str) -> str:
        """Return what tells a slot's containers from one another; where names are shared, nothing.

        Two of one slot run at a time only if somebody makes them by hand.
        """
        return name if self.shape.own_names else ""
