"""Sends spans by OpenTelemetry's protocol, over HTTP. Needs the extra `traces`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, Tracer, set_span_in_context

from binwright.runtime.traces import Span, Trace

NS_PER_MS = 1_000_000
EXPORT_S = 10  # of one request


@asynccontextmanager
async def exported(endpoint: str, service: str) -> AsyncIterator[Trace]:
    """Give what sends spans in the background; see `traces.open_traces`."""
    exporter = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=EXPORT_S)
    resource = Resource.create({"service.name": service})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("binwright")
    try:
        yield lambda span: _send(tracer, span)
    finally:
        await asyncio.to_thread(provider.shutdown)  # tries for `EXPORT_S` at most


def _send(tracer: Tracer, span: Span, context: Context | None = None) -> None:
    """Send a span and what it was made of; without a context it has no parent."""
    attributes = dict(span.attributes)
    began_ns = round(span.began_ms * NS_PER_MS)
    made = tracer.start_span(span.name, context, attributes=attributes, start_time=began_ns)
    if span.fault:
        made.set_status(Status(StatusCode.ERROR, span.fault))
    inside = set_span_in_context(made)
    for part in span.parts:
        _send(tracer, part, inside)
    made.end(round(span.ended_ms * NS_PER_MS))
