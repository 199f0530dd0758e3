"""Whether a service lives and is ready, asked over HTTP: for probes, and for people.

`/live` fails when a loop of the service has not gone round for long: starting it again may help.
`/ready` fails while it cannot do its work, whoever is at fault: that alone is no reason to end it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import orjson
import structlog

from binwright.shell.http import Answer, answering
from binwright.shell.settings import HealthSettings

log = structlog.get_logger()


@dataclass
class Health:
    """What a service's loops say of themselves.

    Attributes:
        ready: Asked for why the service cannot work now; empty when it can.
    """

    patience_s: float
    ready: Callable[[], str] = lambda: "starting"
    _beats: dict[str, float] = field(default_factory=dict)

    def beat(self, loop: str) -> None:
        """Say that a loop has gone round."""
        self._beats[loop] = asyncio.get_running_loop().time()

    def began(self, loop: str) -> bool:
        """Whether a loop has gone round at all."""
        return loop in self._beats

    def unready(self) -> str:
        """Return why the service cannot work now; empty when it can."""
        return self.ready()

    def stuck(self) -> str:
        """Return which loops have not gone round for too long; empty when all have."""
        now = asyncio.get_running_loop().time()
        late = {name: now - at for name, at in self._beats.items() if now - at > self.patience_s}
        return ", ".join(f"{name}: {since_s:.0f} s" for name, since_s in sorted(late.items()))


@contextlib.asynccontextmanager
async def served(settings: HealthSettings) -> AsyncIterator[Health]:
    """Answer `/live` and `/ready` meanwhile, where a port is set.

    Raises:
        SettingsError: The port cannot be had.
    """
    health = Health(settings.patience_s)
    if settings.port is None:
        yield health
        return

    def answer(why_not: Callable[[], str]) -> Callable[[], Answer]:
        def ask() -> Answer:
            reason = why_not()
            said = orjson.dumps({"ok": not reason, "reason": reason})
            return Answer(said, status=503 if reason else 200)

        return ask

    paths = {"/live": answer(health.stuck), "/ready": answer(health.unready)}
    async with answering(paths, settings.address, settings.port, "health"):
        log.info("health.served", address=settings.address, port=settings.port)
        yield health
