"""A broker that keeps its sizes to itself, as managed ones do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Schema, String
from pydantic import SecretStr
from structlog.testing import capture_logs

from binwright.embedded.broker import run_broker
from binwright.embedded.ports import HOST, reserved
from binwright.monitor.sizes import KafkaLogs
from binwright.shell.broker import Cluster, client_options
from binwright.shell.bus import KafkaBus
from binwright.shell.settings import KafkaSettings

from .metering import Meter, Writer

pytestmark = pytest.mark.integration

DEADLINE_S = 90.0
TOPICS = ("plain", "lz4")
CLUSTER, LITERAL, DESCRIBE, DENY = 4, 3, 8, 2
TEXT = String("utf-8")


class _Created(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 30, 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32), ("results", Array(("code", Int16), ("message", TEXT)))
    )


class _Create(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 30, 1, _Created
    SCHEMA = Schema(
        (
            "creations",
            Array(
                ("resource_type", Int8),
                ("resource_name", TEXT),
                ("pattern_type", Int8),
                ("principal", TEXT),
                ("host", TEXT),
                ("operation", Int8),
                ("permission", Int8),
            ),
        )
    )


class Deny(Request[_Create]):  # type: ignore[misc]  # aiokafka has no types
    """Take from a user the right to describe the cluster."""

    API_KEY = 30

    def __init__(self, user: str) -> None:
        self._user = user

    def build(self, request_struct_class: Any) -> Any:
        rule = (CLUSTER, "kafka-cluster", LITERAL, f"User:{self._user}", "*", DESCRIBE, DENY)
        return request_struct_class([rule])


def secured(listener: int, controller: int, guarded: int) -> dict[str, str]:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    guard = f"SASL_PLAINTEXT://{HOST}:{guarded}"
    return {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{listener},CONTROLLER://{HOST}:{controller},{guard}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{listener},{guard}",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{login} required user_reader="xyzzy";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }


@asynccontextmanager
async def guarded_broker(directory: Path) -> AsyncIterator[tuple[KafkaSettings, KafkaSettings]]:
    """Give a broker twice: to its owner, and to a user without rights on the cluster."""
    with reserved() as listener, reserved() as controller, reserved() as guarded:
        settings = secured(listener, controller, guarded)
    async with run_broker(directory, port=listener, settings=settings) as broker:
        owner = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        reader = KafkaSettings(
            bootstrap_servers=f"{HOST}:{guarded}",
            security_protocol="SASL_PLAINTEXT",
            sasl_username="reader",
            sasl_password=SecretStr("xyzzy"),
        )
        async with Cluster(owner) as cluster:
            answer: Any = await cluster.ask_controller(Deny("reader"))
            assert [code for code, _ in answer.results] == [0]
        yield owner, reader


async def test_without_the_right_it_is_named_and_rates_are_estimated(tmp_path: Path) -> None:
    """Records change from 1 KB to 50 B and 5 KB meanwhile; batches are all that tells."""
    async with asyncio.timeout(DEADLINE_S), guarded_broker(tmp_path) as (owner, reader):
        with capture_logs() as logged:
            meter, writers = await measured(owner, reader)
    untold = [entry for entry in logged if entry["event"] == "sizes.untold"]
    assert len(untold) == 1
    assert "the right DESCRIBE on the CLUSTER" in untold[0]["reason"]
    for topic in TOPICS:
        said = [rate for _, rate in meter.said[topic]]
        assert {rate.quality for rate in said} == {"warming", "estimated"}
        assert {rate.size for rate in said} == {None}
        errors = [error for _, error in meter.errors(topic, writers[topic].ledger)]
        assert len(errors) > 30
        # Records of one size each second: only the seconds of a change are badly off.
        assert median(errors) < 0.25


async def measured(owner: KafkaSettings, reader: KafkaSettings) -> tuple[Meter, dict[str, Writer]]:
    async with (
        KafkaBus(owner) as bus,
        KafkaLogs(reader) as logs,
        AIOKafkaProducer(**client_options(owner)) as plain,
        AIOKafkaProducer(**client_options(owner), compression_type="lz4") as lz4,
    ):
        for topic in TOPICS:
            await bus.ensure(topic, 1, {})
        writers = {t: Writer(p, t) for t, p in zip(TOPICS, (plain, lz4), strict=True)}
        meter = Meter(logs, frozenset(TOPICS))
        works = [meter.run(), resized(writers), *(writer.run() for writer in writers.values())]
        tasks = [asyncio.create_task(work) for work in works]
        await tasks[1]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return meter, writers


async def resized(writers: dict[str, Writer]) -> None:
    for record_bytes in (1000, 50, 5000):
        for writer in writers.values():
            writer.record_bytes = record_bytes
        await asyncio.sleep(3)
