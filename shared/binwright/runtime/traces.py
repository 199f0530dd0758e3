"""Traces of what took how long, as OpenTelemetry has them: sent by OTLP when they are complete."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.traces import TracesSettings

Attribute = str | int | float


@dataclass(frozen=True, slots=True)
class Span:
    """Something that has ended, and what it was made of.

    Attributes:
        name: What was done, the same for all that is alike.
        began_ms: Wall clock, ms since 1970.
        ended_ms: Likewise.
        attributes: About it; names that OpenTelemetry does not define begin with `binwright.`.
        parts: In it.
        fault: Why it did not succeed; empty: it did.
    """

    name: str
    began_ms: float
    ended_ms: float
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parts: tuple["Span", ...] = ()
    fault: str = ""


Trace = Callable[[Span], None]
"""Takes a span without a parent; never waits."""


def untraced(_: Span) -> None:
    """Take a span and forget it."""


@asynccontextmanager
async def open_traces(settings: TracesSettings, service: str) -> AsyncIterator[Trace]:
    """Give what sends spans to `settings.endpoint` in the background; at the end what is left.

    Args:
        settings: Where to; without an endpoint spans are forgotten.
        service: The name of this service.

    Raises:
        SettingsError: An endpoint is set, and the extra `traces` is not installed.
    """
    if settings.endpoint is None:
        yield untraced
        return
    try:
        # Not in every installation, and half a second of imports.
        from binwright.runtime.otlp import exported  # noqa: PLC0415
    except ImportError as exc:
        raise SettingsError(
            "traces.endpoint is set, and OpenTelemetry is not installed: pip install "
            "'binwright[traces]', or unset it"
        ) from exc
    async with exported(settings.endpoint, service) as trace:
        yield trace
