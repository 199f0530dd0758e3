"""Traces of what took how long, as OpenTelemetry has them: sent by OTLP when they are complete."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.traces import TracesSettings

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

NS_PER_MS = 1_000_000
EXPORT_S = 10  # of one request

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
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as exc:
        raise SettingsError(
            "traces.endpoint is set, and OpenTelemetry is not installed: pip install "
            "'binwright[traces]', or unset it"
        ) from exc
    endpoint = f"{settings.endpoint}/v1/traces"
    exporter: SpanExporter = OTLPSpanExporter(endpoint, timeout=EXPORT_S)
    provider = TracerProvider(
        resource=Resource.create({"service.name": service}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("binwright")
    try:
        yield lambda span: _send(tracer, span, None)
    finally:
        await asyncio.to_thread(provider.shutdown)  # tries for `EXPORT_S` at most


def _send(tracer: "Tracer", span: Span, context: "Context | None") -> None:
    from opentelemetry.trace import Status, StatusCode, set_span_in_context  # noqa: PLC0415

    made = tracer.start_span(
        span.name,
        context,
        attributes=dict(span.attributes),
        start_time=round(span.began_ms * NS_PER_MS),
    )
    if span.fault:
        made.set_status(Status(StatusCode.ERROR, span.fault))
    inside = set_span_in_context(made)
    for part in span.parts:
        _send(tracer, part, inside)
    made.end(round(span.ended_ms * NS_PER_MS))
