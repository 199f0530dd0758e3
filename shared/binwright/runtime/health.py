"""Liveness, readiness and metrics of a service over HTTP, for probes and Prometheus.

`/live` fails when a loop of the service has made no progress for a while: a restart may help.
`/ready` fails while the service cannot do its work; a restart does not help against outages.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from prometheus_client import CollectorRegistry, generate_latest

from binwright.protocol.log_events import LogEvent
from binwright.runtime.certificates import certificate_samples
from binwright.runtime.exposition import CONTENT_TYPE, Samples
from binwright.runtime.http import Listener, Response, serve_http
from binwright.runtime.logs import log
from binwright.runtime.metrics import READY, UP, Sample
from binwright.runtime.settings.health import HealthSettings

HEALTH_SERVED = LogEvent.info(
    "health.served", "`/live`, `/ready` and `/metrics` are answered at this address."
)


@dataclass
class Health:
    """The progress of a service's loops, and what is served about it.

    Attributes:
        patience_s: A loop without progress for longer than this many seconds is stuck.
        certificate_file: The certificate by which Kafka knows the service, if it has one.
        ready: Returns why the service cannot work now; empty when it can.
        collectors: Return metrics of this service, beside those that every service has.
        registry: Of all its metrics: histograms register there themselves.
    """

    patience_s: float
    certificate_file: Path | None = None
    ready: Callable[[], str] = lambda: "starting"
    collectors: list[Callable[[], Iterable[Sample]]] = field(default_factory=list)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    _beats: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registry.register(Samples(self.samples))

    def beat(self, loop: str) -> None:
        """Record that a loop has completed a round."""
        self._beats[loop] = asyncio.get_running_loop().time()

    def end(self, loop: str) -> None:
        """Expect no more progress of a loop: it has ended in good order."""
        self._beats.pop(loop, None)

    @contextlib.contextmanager
    def progress(self, loop: str) -> Iterator[Callable[[], None]]:
        """Expect rounds of a loop while the body runs; give what is called after each."""
        self.beat(loop)
        try:
            yield lambda: self.beat(loop)
        finally:
            self.end(loop)

    def has_run(self, loop: str) -> bool:
        """Return whether a loop has completed a round."""
        return loop in self._beats

    def unready(self) -> str:
        """Return why the service cannot work now; empty when it can."""
        return self.ready()

    def stuck(self) -> str:
        """Return the loops without progress for too long, with seconds; empty if there are none."""
        now = asyncio.get_running_loop().time()
        late = {name: now - at for name, at in self._beats.items() if now - at > self.patience_s}
        return ", ".join(f"{name}: {since_s:.0f} s" for name, since_s in sorted(late.items()))

    @contextlib.contextmanager
    def collecting(self, collector: Callable[[], Iterable[Sample]]) -> Iterator[None]:
        """Serve these metrics, too, while the body runs: a process that leads no more has none."""
        self.collectors.append(collector)
        try:
            yield
        finally:
            self.collectors.remove(collector)

    def samples(self) -> Iterator[Sample]:
        """Yield all metrics of the service."""
        yield Sample(UP, 1)
        yield Sample(READY, not self.unready())
        yield from certificate_samples(self.certificate_file)
        for collect in self.collectors:
            yield from collect()


@contextlib.asynccontextmanager
async def serve_health(
    settings: HealthSettings, certificate_file: Path | None = None
) -> AsyncIterator[Health]:
    """Serve `/live`, `/ready` and `/metrics` while the body runs, if a port is set.

    Args:
        settings: Of the server.
        certificate_file: The certificate by which Kafka knows the service, if it has one.

    Raises:
        SettingsError: The port cannot be opened.
    """
    health = Health(settings.patience_s, certificate_file)
    if settings.port is None:
        yield health
        return

    def probe(failure: Callable[[], str]) -> Callable[[], Response]:
        def respond() -> Response:
            reason = failure()
            body = orjson.dumps({"ok": not reason, "reason": reason})
            return Response(body, status=503 if reason else 200)

        return respond

    def metrics() -> Response:
        return Response(generate_latest(health.registry), CONTENT_TYPE)

    paths = {
        "/live": probe(health.stuck),
        "/ready": probe(health.unready),
        "/metrics": metrics,
    }
    listener = Listener(
        settings.address,
        settings.port,
        "health",
        hosts=settings.hosts,
        token_file=settings.token_file,
        certificate_file=settings.certificate_file,
        key_file=settings.key_file,
        open_paths=frozenset({"/live", "/ready"}),
    )
    async with serve_http(paths, listener):
        log(HEALTH_SERVED, address=settings.address, port=settings.port)
        yield health
