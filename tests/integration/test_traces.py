"""Traces that real services send, as a receiver of OTLP gets them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from tests.integration.command_line import binwright
from tests.integration.landing import produce, rows, until
from tests.integration.topics import create_topic

from binwright.local.server import HOST, reserve_port
from binwright.local.stack import services
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.loading import settings_environment
from binwright.runtime.settings.traces import TracesSettings
from binwright.runtime.traces import Span, open_traces

pytestmark = pytest.mark.integration

GROUP, TOPIC = "traced", "traced-orders"
Found = dict[str, Any]


@dataclass
class Receiver:
    """What has been sent: spans as JSON has them, each with its service."""

    url: str
    spans: list[tuple[str, Found]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        sent = MessageToDict(ExportTraceServiceRequest.FromString(await request.read()))
        for resource in sent["resourceSpans"]:
            facts = attributes(resource["resource"])
            for scope in resource["scopeSpans"]:
                self.spans += [(facts["service.name"], span) for span in scope["spans"]]
        body = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")

    def named(self, name: str) -> list[tuple[str, Found]]:
        return [(service, span) for service, span in self.spans if span["name"] == name]

    def parts_of(self, parent: Found) -> list[Found]:
        return [span for _, span in self.spans if span.get("parentSpanId") == parent["spanId"]]


def attributes(found: Found) -> Found:
    return {each["key"]: next(iter(each["value"].values())) for each in found.get("attributes", ())}


def took_ms(span: Found) -> float:
    return (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e6


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    with reserve_port() as port:
        found = Receiver(f"http://{HOST}:{port}")
        app = web.Application()
        app.router.add_post("/v1/traces", found.take)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, HOST, port).start()
        try:
            yield found
        finally:
            await runner.cleanup()


@pytest.mark.nightly
async def test_plans_and_commits_are_traced_from_their_cause_to_their_end(
    broker: str, spark_url: str, lake: Path
) -> None:
    async with receiver() as traces:
        settings = load_settings(
            group=GROUP,
            topics=[TOPIC],
            kafka={"bootstrap_servers": broker},
            lake={"path": str(lake), "spark": spark_url, "freshness_s": 1.0},
            monitor={"topic": f"{GROUP}.metrics"},
            controller={"process_logs": str(lake.parent / "consumers"), "max_slots": 2},
            traces={"endpoint": traces.url},
        )
        await create_topic(settings.kafka, TOPIC, 2)
        async with services(settings, lake.parent / "logs"):
            await produce(broker, TOPIC, [b"a", b"b"])
            await until(lambda: len(rows(lake, TOPIC)) == 2)
            order = ("group", "pin", f"{TOPIC}-1", "1", "--reason", "a move")
            code, _, errors = await binwright(*order, environment=settings_environment(settings))
            assert code == 0, errors
            await until(lambda: bool(traces.named("move")))
        [(service, move)] = traces.named("move")
        assert service == "binwright-controller"
        assert attributes(move) == {
            "binwright.group": GROUP,
            "messaging.destination.name": TOPIC,
            "messaging.destination.partition.id": "1",
            "binwright.to": "1",
        }
        stop, start = traces.parts_of(move)
        assert (stop["name"], start["name"]) == ("stop reading", "start reading")
        assert took_ms(stop) + took_ms(start) == pytest.approx(took_ms(move), abs=1)
        (plan,) = (s for _, s in traces.named("plan") if move in traces.parts_of(s))
        assert f"the pin: {TOPIC}-1" in attributes(plan)["binwright.reason"]
        service, commit = traces.named("commit")[0]
        assert (service, attributes(commit)["binwright.table"]) == ("binwright-consumer", TOPIC)
        waited, appended = traces.parts_of(commit)
        assert took_ms(waited) + took_ms(appended) == pytest.approx(took_ms(commit), abs=1)


async def test_a_receiver_that_is_away_holds_nothing_up() -> None:
    with reserve_port() as port:
        settings = TracesSettings(endpoint=f"http://{HOST}:{port}")
    async with asyncio.timeout(30), open_traces(settings, "tested") as trace:
        trace(Span("plan", 0, 1))
