"""Finds out, from the engine's events, which containers have ended, and when.

A container that the engine restarts keeps its id and name, so neither distinguishes the process
that has ended from the one that runs now. The time does: the event and the process's Hello are
stamped by the same machine's clock.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from binwright.controller.fleets.docker.engine import Engine, Obj
from binwright.controller.fleets.docker.spec import ContainerSpec
from binwright.fleets.labels import GROUP_LABEL, labelled_slot
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Process
from binwright.runtime.backoff import Backoff

log = structlog.get_logger()

FOLLOW_S = 60.0  # how long one stream lasts: a connection that died silently is replaced
PAST_S = 60.0  # events from before the start are read, too: a new leader needs them
KEPT_MS = 600_000
SHORT_ID = 12  # a container's host name is the first so many characters of its id
LONGEST_PAUSE_S = 10.0


@dataclass
class EndedContainers:
    """When the containers of one group ended last.

    Attributes:
        engine: The engine that runs them.
        spec: What they are made from.
        on_end: Called at each end.
    """

    engine: Engine
    spec: ContainerSpec
    on_end: Callable[[], None]
    _last_ms: dict[tuple[Slot, str], int] = field(default_factory=dict)  # by slot and host name

    def has_ended(self, slot: Slot, process: Process) -> bool:
        """Whether the slot's container has ended since this process sent its Hello."""
        last_ms = self._last_ms.get((slot, self._host(process.host)))
        return last_ms is not None and 0 < process.sent_ms < last_ms

    async def run(self) -> None:
        """Follow the events, for ever."""
        since_s, pause = time.time() - PAST_S, Backoff(LONGEST_PAUSE_S)
        while True:
            try:
                events = self.engine.end_events(GROUP_LABEL, self.spec.group, since_s, FOLLOW_S)
                async for event in events:
                    since_s = event["timeNano"] / 1e9  # inclusive; a repeated event is harmless
                    self._apply(event)
                pause.reset()
            except ExternalError as exc:
                log.warning("events.failed", group=self.spec.group, reason=str(exc))
                await asyncio.sleep(pause.next())

    def _apply(self, event: Obj) -> None:
        actor, at_ms = event["Actor"], event["timeNano"] // 1_000_000
        labels = actor["Attributes"]
        if not self.spec.owns(labels) or (slot := labelled_slot(labels)) is None:
            return
        self._last_ms = {k: ms for k, ms in self._last_ms.items() if ms > at_ms - KEPT_MS}
        self._last_ms[slot, self._host(actor["ID"][:SHORT_ID])] = at_ms
        self.on_end()

    def _host(self, name: str) -> str:
        """Return the host name as a key; "" where containers share another one's host name.

        That is unambiguous: two containers of one slot run at a time only if one is made by hand.
        """
        return name if self.spec.own_names else ""
