"""Processes over TLS: commands, the page, and a Java application with the assignor."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.integration.assignor.java_members import (
    build_programs,
    consumer_settings,
    running_members,
)
from tests.integration.assignor.plans import names, publish, until
from tests.integration.security.commands import BINWRIGHT, DEADLINE_S, environment, status
from tests.integration.security.secured_broker import PASSWORD, USER, WAYS, SecuredBroker
from tests.integration.topics import create_topic

from binwright.kafka.control_records import METADATA_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.server import reserve_port
from binwright.protocol.model import TopicPartition

pytestmark = pytest.mark.integration

GROUP = "secured"


@pytest.fixture
async def group(secured: SecuredBroker) -> str:
    """The name of a group that has its topics, and no consumers."""
    async with KafkaControlTopics(secured.owner()) as bus:
        await bus.ensure(f"{GROUP}.metadata", 1, METADATA_CONFIG)
    return GROUP


@pytest.mark.parametrize("way", WAYS)
async def test_a_command_shows_a_group(secured: SecuredBroker, group: str, way: str) -> None:
    done = await status(secured.settings(way), "--json", "--group", group)
    assert done.returncode == 0, done.stderr
    assert [each["group"] for each in json.loads(done.stdout)] == [group]


@pytest.mark.parametrize("way", ["MUTUAL", "SCRAM-SHA-512"])
async def test_the_page_shows_a_group(secured: SecuredBroker, group: str, way: str) -> None:
    with reserve_port() as port:
        pass
    process = await asyncio.create_subprocess_exec(
        *(*BINWRIGHT, "page", "--port", str(port), "--group", group),
        env=environment(secured.settings(way)),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(DEADLINE_S):
            kind = "reading"
            while kind in {"reading", "not served"}:
                kind = await problem_kind(session, f"http://127.0.0.1:{port}/view")
                await asyncio.sleep(0.1)
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert (kind, process.returncode) == ("", 0), errors.decode()


async def problem_kind(session: aiohttp.ClientSession, address: str) -> str:
    """Return why the page shows no group; empty if it shows one."""
    try:
        async with session.get(address) as answer:
            problem: Any = json.loads(await answer.text())["problem"]
    except aiohttp.ClientConnectionError:
        return "not served"
    return str(problem["kind"]) if problem else ""


async def test_a_java_application_reads_plans_as_it_reads_its_topics(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """The assignor takes the security of the application's own settings."""
    kafka, topic = secured.owner(), "secured-java"
    await create_topic(kafka, topic, 3)
    plan = [[TopicPartition(topic, 0)], [TopicPartition(topic, 1), TopicPartition(topic, 2)]]
    await publish(kafka, topic, plan)
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    settings = consumer_settings(
        secured.connection("SCRAM-SHA-512").bootstrap_servers,
        topic,
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_jaas_config=f'{login} required username="{USER}" password="{PASSWORD}";',
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(secured.authority.ca_file),
    )
    programs = await build_programs(tmp_path)
    async with running_members(programs, settings, topic, ["one", "two"]) as members:
        await until(
            lambda: sorted((one.owned for one in members), key=len) == names(plan),
            lambda: [one.lines[-10:] for one in members],
        )
