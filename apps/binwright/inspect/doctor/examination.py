"""Makes all checks: those that do not need each other at once, each within a time."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

from binwright.cli.options import named_spark
from binwright.consumer.decode.registry import SchemaRegistry
from binwright.inspect.decide.doctor import brokers, lake, topics
from binwright.inspect.decide.doctor.findings import Finding, fault, skipped
from binwright.inspect.decide.doctor.rights import missing_rights
from binwright.inspect.doctor.kafka_checks import (
    Seen,
    look_at_topics,
    sent_apis,
)
from binwright.inspect.doctor.lake_checks import ConnectServer, ProbeFile, probe_file
from binwright.kafka.client import Reached, reach
from binwright.kafka.connection_faults import ConnectionFault, general_checks
from binwright.kafka.control_records import LANDING_PARTITIONS
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.rights import Service, rights
from binwright.runtime.certificates import valid_s
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.loading import readable_password

T = TypeVar("T")

CHECK_S = 30.0

Report = Callable[[Sequence[Finding]], None]


async def examine(settings: Settings, services: Collection[Service], report: Report) -> None:
    """Make all checks, and report them in one order, each as soon as it and those before are known.

    Args:
        settings: What to check.
        services: Whose rights this user needs.
        report: Called with what is found.
    """
    async with asyncio.TaskGroup() as tasks:
        servers = tasks.create_task(within("kafka", reach(settings.kafka)))
        seen = tasks.create_task(_seen(servers, settings))
        works = (
            _brokers(servers, settings),
            _topics(seen, settings),
            _rights(seen, services),
            _lake(settings),
            _registry(seen, settings),
        )
        for task in [tasks.create_task(work) for work in works]:
            report(await task)


async def within(check: str, work: Awaitable[T]) -> T | Finding:
    """Return what `work` returns, or that it failed or took longer than `CHECK_S`."""
    try:
        async with asyncio.timeout(CHECK_S):
            return await work
    except TimeoutError:
        return fault(check, f"no answer within {CHECK_S:g} s", "check the network on the way")
    except (ExternalError, UserError) as exc:
        return fault(check, str(exc))


# --- Kafka ---------------------------------------------------------------------------------------


async def _seen(servers: Awaitable[Reached | Finding], settings: Settings) -> Seen | Finding:
    reached = await servers
    if isinstance(reached, Finding) or all(reached.bootstrap.values()):
        return skipped("topics", "Kafka cannot be used")
    if reached.advertised and all(fault for _, fault in reached.advertised.values()):
        return skipped("topics", "no broker can be reached at the address that it advertises")
    return await within("topics", look_at_topics(settings))


async def _brokers(servers: Awaitable[Reached | Finding], settings: Settings) -> Sequence[Finding]:
    reached = await servers
    file = settings.kafka.ssl_certificate_file
    own = [brokers.certificate(str(file), valid_s(file))] if file else []
    if readable := readable_password():
        own.append(brokers.readable_password(str(readable)))
    if isinstance(reached, Finding):
        return [reached, *own]
    general = ", ".join(general_checks(settings.kafka))
    bootstrap = [_kafka_server(*each) for each in reached.bootstrap.items()]
    advertised = {number: _kafka_server(*each) for number, each in reached.advertised.items()}
    findings = [*brokers.servers(bootstrap, general), *own, *brokers.advertised(advertised)]
    if reached.versions is None:
        return findings
    supported = {key: (oldest, newest) for key, oldest, newest in reached.versions.api_versions}
    return [*findings, *brokers.apis(supported, sent_apis())]


def _kafka_server(address: str, fault: ConnectionFault | None) -> brokers.BrokerReply:
    return brokers.BrokerReply(address, *(() if fault is None else (fault.reason, fault.check)))


async def _topics(seen: Awaitable[Seen | Finding], settings: Settings) -> Sequence[Finding]:
    looked = await seen
    if isinstance(looked, Finding):
        return [looked]
    names, all_topics = looked.names, looked.topics
    data = [all_topics[name] for name in names.data]
    largest = settings.consumer.batch_inflated_bytes
    slots, staged_s = settings.controller.max_slots, settings.staging.retention_s
    return [
        *brokers.log_directories(looked.dead),
        *topics.data_topics(data, settings.topic_patterns, largest),
        *topics.compacted_topic(all_topics[names.metadata], looked.brokers),
        *topics.compacted_topic(all_topics[names.orders], looked.brokers),
        *topics.commands_topic(all_topics[names.commands], slots, looked.brokers),
        *topics.landing_topic(all_topics[names.landing], LANDING_PARTITIONS, staged_s),
        *topics.other_topic(all_topics[names.metrics]),
        *topics.other_topic(all_topics[names.needs]),
        *topics.creations(looked.refused),
    ]


async def _rights(
    seen: Awaitable[Seen | Finding], services: Collection[Service]
) -> Sequence[Finding]:
    looked = await seen
    if isinstance(looked, Finding):
        return [skipped("rights", "topics were not described")]
    return [*missing_rights([*rights(looked.names)], looked.permitted, services)]


# --- the lake ------------------------------------------------------------------------------------


async def _lake(settings: Settings) -> Sequence[Finding]:
    findings: list[Finding] = []
    stack = AsyncExitStack()
    try:
        probe = await within(
            "staging", stack.enter_async_context(probe_file(settings.staging_path))
        )
        if isinstance(probe, Finding):
            findings.append(probe)
        else:
            findings += lake.staging(probe.staging, settings.staging.max_bytes)
        findings += await _spark(settings, probe if isinstance(probe, ProbeFile) else None)
    finally:
        if left := await within("staging", stack.aclose()):
            findings.append(left)
    return findings


async def _spark(settings: Settings, probe: ProbeFile | None) -> Sequence[Finding]:
    if named_spark(settings) is None:
        return [skipped("spark", "neither lake.spark nor --spark names a server")]
    each = await asyncio.gather(
        *(_server(url, settings, probe) for url in dict.fromkeys(settings.lake.servers))
    )
    return [finding for findings in each for finding in findings]


async def _server(url: str, settings: Settings, probe: ProbeFile | None) -> Sequence[Finding]:
    async with ConnectServer(url, settings.lake) as server:
        seen = await within(f"spark {server.address}", server.look())
        if isinstance(seen, Finding):
            return [seen]
        findings = [*lake.spark(server.address, seen)]
        if probe is None or not probe.path:
            check = f"spark {server.address} reads staging"
            return [*findings, skipped(check, "no file could be written there")]
        return [*findings, await server.read(probe)]


# --- the registry --------------------------------------------------------------------------------


async def _registry(seen: Awaitable[Seen | Finding], settings: Settings) -> Sequence[Finding]:
    if settings.registry.url is None:
        return []
    looked = await seen
    landed = settings.topics if isinstance(looked, Finding) else looked.names.data
    subjects = {
        part.subject_of(topic)
        for topic in landed
        for target in settings.targets(topic)
        if target.decoded
        for part in target.decoded.parts
        if part.by_subject
    }
    async with SchemaRegistry(settings.registry) as registry:
        versions = await within("registry", _versions(registry, subjects))
    return [versions] if isinstance(versions, Finding) else [*lake.subjects(versions)]


async def _versions(registry: SchemaRegistry, subjects: Collection[str]) -> Mapping[str, int]:
    """Return how many versions each subject has; the registry is asked without one, too.

    Raises:
        RegistryUnavailable: It does not answer, or refuses.
    """
    wanted = sorted(subjects)
    if not wanted:
        await registry.schema(1)
    each = await asyncio.gather(*(registry.versions(subject) for subject in wanted))
    return {subject: len(numbers) for subject, numbers in zip(wanted, each, strict=True)}
