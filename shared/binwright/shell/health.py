"""Whether a service lives and is ready, and its numbers, asked over HTTP: for probes and people.

`/live` fails when a loop of the service has not gone round for long: starting it again may help.
`/ready` fails while it cannot do its work, whoever is at fault: that alone is no reason to end it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field

import orjson
import structlog

from binwright.shell.gauges import CONTENT_TYPE, Sample, exposition
from binwright.shell.http import Answer, answering
from binwright.shell.settings import HealthSettings

log = structlog.get_logger()


@dataclass
class Health:
    """What a service's loops say of themselves.

    Attributes:
        ready: Asked for why the service cannot work now; empty when it can.
        measures: Asked for numbers that are the service's own, beside those of every service.
    """

    patience_s: float
    ready: Callable[[], str] = lambda: "starting"
    measures: list[Callable[[], Iterable[Sample]]] = field(default_factory=list)
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

    def samples(self) -> Iterator[Sample]:
        """Yield what Prometheus is told."""
        yield Sample("binwright_up", 1)
        yield Sample("binwright_ready", not self.unready())
        for measure in self.measures:
            yield from measure()


@contextlib.asynccontextmanager
async def served(settings: HealthSettings) -> AsyncIterator[Health]:
    """Answer `/live`, `/ready` and `/metrics` meanwhile, where a port is set.

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

    def metrics() -> Answer:
        return Answer(exposition(health.samples()).encode(), CONTENT_TYPE)

    paths = {
        "/live": answer(health.stuck),
        "/ready": answer(health.unready),
        "/metrics": metrics,
    }
    async with answering(paths, settings.address, settings.port, "health"):
        log.info("health.served", address=settings.address, port=settings.port)
        yield health
