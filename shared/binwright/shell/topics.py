"""Topics made and grown: every answer read, every race lost gracefully, every wait bounded."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import structlog
from aiokafka.errors import InvalidPartitionsError, NoError, TopicAlreadyExistsError, for_code
from aiokafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
)
from aiokafka.protocol.api import Request

from binwright.core.errors import BrokerUnavailable, SettingsError
from binwright.core.ports import TopicFacts
from binwright.core.selection import Selection
from binwright.shell.broker import NOBODY, Cluster
from binwright.shell.settings import KafkaSettings

log = structlog.get_logger()

REPLICAS = 3
"""Of the topics we create, where there are so many brokers."""
STEP = 4000
"""Partitions made in one request: Kafka refuses to append more than 10,000 records at once."""
RETRY_S = 0.1
_TOPIC = 2  # a kind of resource in Kafka's protocol


async def replication(cluster: Cluster, kafka: KafkaSettings) -> int:
    """Return how many replicas topics get that we create: as set, else up to three.

    Raises:
        BrokerUnavailable: Nobody tells how many brokers there are.
    """
    return kafka.replication_factor or min(REPLICAS, await cluster.brokers())


async def selected_topics(kafka: KafkaSettings, wanted: Selection) -> tuple[str, ...]:
    """Return the topics that are named, there or not, and those there are that fit a pattern.

    Raises:
        BrokerUnavailable: Nobody answers.
        SettingsError: There is none.
    """
    if not wanted.patterns:
        return tuple(sorted(wanted.topics))
    async with Cluster(kafka) as cluster:
        there = await cluster.topics(None)
    fitting = {topic for topic in there.leaders.keys() - there.internal if wanted.fits(topic)}
    if not (found := wanted.topics | fitting):
        told = ", ".join(pattern.pattern for pattern in wanted.patterns)
        raise SettingsError(f"topic_patterns: no topic at {kafka.bootstrap_servers} fits {told}")
    return tuple(sorted(found))


async def ensure_topic(
    cluster: Cluster, kafka: KafkaSettings, topic: str, partitions: int, config: Mapping[str, str]
) -> None:
    """Create the topic or grow it, then wait until each partition has a leader.

    With three replicas, writes need two of them; `config` (of a new topic) may say otherwise.

    Raises:
        BrokerUnavailable: Kafka refuses, or is not done within the request timeout.
    """
    waiting_for = "no broker answered"
    try:
        async with asyncio.timeout(kafka.request_timeout_s):
            while True:
                leaders = await cluster.leaders(topic)
                if len(leaders) < partitions:
                    step = min(partitions, len(leaders) + STEP)
                    request = (
                        _growth(kafka, topic, step)
                        if leaders
                        else await _creation(cluster, kafka, topic, step, config)
                    )
                    waiting_for = await _ask(cluster, request, topic, step)
                elif NOBODY not in leaders.values():
                    return
                else:
                    waiting_for = "not every partition has a leader"
                await asyncio.sleep(RETRY_S)
    except TimeoutError as exc:
        raise BrokerUnavailable(
            f"topic {topic} was not ready within {kafka.request_timeout_s:g} s: {waiting_for}"
        ) from exc


def _growth(kafka: KafkaSettings, topic: str, partitions: int) -> Request[Any]:
    patience_ms = round(kafka.request_timeout_s * 1000)
    return CreatePartitionsRequest([(topic, (partitions, None))], patience_ms, validate_only=False)


async def _creation(
    cluster: Cluster, kafka: KafkaSettings, topic: str, partitions: int, config: Mapping[str, str]
) -> Request[Any]:
    replicas = await replication(cluster, kafka)
    safe = {"min.insync.replicas": "2"} if replicas == REPLICAS else {}
    wanted: Any = (topic, partitions, replicas, [], list({**safe, **config}.items()))
    patience_ms = round(kafka.request_timeout_s * 1000)
    return CreateTopicsRequest([wanted], patience_ms, validate_only=False)


async def _ask(cluster: Cluster, request: Request[Any], topic: str, partitions: int) -> str:
    """Send it on; return what there is still to wait for."""
    _, code, *message = (await cluster.ask_controller(request)).topic_errors[0]
    error = for_code(code)
    if error is NoError:
        log.info("topic.made", topic=topic, partitions=partitions)
        return "not every broker has heard of it"
    reason = f"{error.__name__}: {(message and message[0]) or error.description}"
    # Somebody else was quicker, or the broker we asked has not heard of our own last step yet.
    raced = error in (TopicAlreadyExistsError, InvalidPartitionsError)
    if raced or error.retriable:
        return reason
    raise BrokerUnavailable(f"Kafka refuses {partitions} partitions of topic {topic}: {reason}")


async def describe_topic(cluster: Cluster, topic: str, names: Collection[str]) -> TopicFacts:
    """Return how a topic is set up; settings that we may not read are left out.

    Raises:
        BrokerUnavailable: Nobody answers.
        TopicMissing: There is no such topic.
    """
    replicas = await cluster.replicas(topic)
    request = DescribeConfigsRequest([(_TOPIC, topic, sorted(names))])
    ((code, _, _, _, entries),) = (await cluster.ask_controller(request)).resources
    if for_code(code) is not NoError:
        log.info("topic.undescribed", topic=topic, reason=for_code(code).__name__)
        entries = ()
    config = {name: value or "" for name, value, *_ in entries}
    return TopicFacts(config, replicas, await cluster.brokers())
