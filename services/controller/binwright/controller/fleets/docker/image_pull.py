"""Pulls the consumers' image in the background when the engine does not have it."""

import asyncio
from dataclasses import dataclass, field

from binwright.controller.fleets.docker.engine import Engine
from binwright.fleets.reconcile import Refusals, Report
from binwright.protocol.errors import ExternalError
from binwright.runtime.backoff import Backoff

LONGEST_PAUSE_S = 300.0


@dataclass
class ImagePull:
    """Pulls one image on request; operations that do not need the image go on meanwhile.

    Attributes:
        engine: The engine that pulls.
        image: The image's name.
        timeout_s: How long a pull may take.
        first_pause_s: The pause after the first pull that fails; it doubles at each further one.
        refusals: Where a failure is noted, for all slots.
        report: Called when the image was pulled.
        attempted: Set after each attempt.
    """

    engine: Engine
    image: str
    timeout_s: float
    first_pause_s: float
    refusals: Refusals
    report: Report
    attempted: asyncio.Event
    _requested: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pending(self) -> bool:
        """Whether a pull was requested and has not ended."""
        return self._requested.is_set()

    def request(self) -> None:
        """Have the image pulled."""
        self._requested.set()

    async def run(self) -> None:
        """Pull at each request, for ever."""
        pause = Backoff(LONGEST_PAUSE_S, first_s=self.first_pause_s)
        while True:
            await self._requested.wait()
            try:
                await self.engine.pull(self.image, self.timeout_s)
                self.refusals.clear(None)
                self.report("ImagePulled", self.image, None)
                pause.reset()
            except ExternalError as exc:
                self.refusals.note("ImagePullFailed", str(exc), None)
                await asyncio.sleep(pause.next())
            self._requested.clear()
            self.attempted.set()
