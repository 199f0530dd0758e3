"""Creates, grows, selects and describes topics."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidPartitionsError,
    KafkaError,
    NoError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)
from aiokafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
)
from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest

from binwright.kafka.batches import Batches
from binwright.kafka.client import NO_LEADER, ClusterClient
from binwright.protocol.errors import BrokerUnavailable, SettingsError, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metadata_topic import REPLICAS
from binwright.protocol.ports.kafka import Record, TopicDescription
from binwright.protocol.selection import Selection
from binwright.runtime.logs import log
from binwright.runtime.settings.kafka import KafkaSettings

TOPIC_CREATED = LogEvent.info("topic.created", "A topic was created.")
TOPIC_DESCRIBE_FAILED = LogEvent.info(
    "topic.describe_failed", "The configuration of a topic cannot be read; it is not checked."
)

PARTITIONS_PER_REQUEST = 4000
"""Partitions created by one request: Kafka appends at most 10,000 metadata records at once."""
RETRY_S = 0.1
OLDEST_BYTES = 64 << 10  # the first batch is read whole
_TOPIC = 2  # a kind of resource in Kafka's protocol


async def replication_factor(cluster: ClusterClient, kafka: KafkaSettings) -> int:
    """Return the number of replicas of new topics: as set, else up to `REPLICAS`.

    Raises:
        BrokerUnavailable: No broker answers.
    """
    return kafka.replication_factor or min(REPLICAS, await cluster.brokers())


async def selected_topics(kafka: KafkaSettings, wanted: Selection) -> tuple[str, ...]:
    """Return the topics that are named, and the existing ones that match a pattern.

    Raises:
        BrokerUnavailable: No broker answers.
        SettingsError: No topic is named or matches.
    """
    if not wanted.patterns:
        return tuple(sorted(wanted.topics))
    async with ClusterClient(kafka) as cluster:
        known = await cluster.topics(None)
    matching = {
        topic for topic in known.leaders.keys() - known.internal if wanted.matches_pattern(topic)
    }
    if not (selected := wanted.topics | matching):
        patterns = ", ".join(pattern.text for pattern in wanted.patterns)
        raise SettingsError(
            f"topic_patterns: no topic at {kafka.bootstrap_servers} matches {patterns}"
        )
    return tuple(sorted(selected))


async def ensure_topic(
    cluster: ClusterClient,
    kafka: KafkaSettings,
    topic: str,
    partitions: int,
    config: Mapping[str, str],
) -> None:
    """Create the topic or add partitions, then wait until each partition has a leader.

    A new topic with three replicas has min.insync.replicas=2, unless `config` sets it.

    Raises:
        BrokerUnavailable: Kafka refuses, or is not done within the request timeout.
    """
    waiting_for = "no broker answered"
    try:
        async with asyncio.timeout(kafka.request_timeout_s):
            while True:
                leaders = await cluster.leaders(topic)
                if len(leaders) < partitions:
                    step = min(partitions, len(leaders) + PARTITIONS_PER_REQUEST)
                    request = (
                        _growth(kafka, topic, step)
                        if leaders
                        else await _creation(cluster, kafka, topic, step, config)
                    )
                    waiting_for = await _request(cluster, request, topic, step)
                elif NO_LEADER not in leaders.values():
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
    cluster: ClusterClient,
    kafka: KafkaSettings,
    topic: str,
    partitions: int,
    config: Mapping[str, str],
) -> Request[Any]:
    replicas = await replication_factor(cluster, kafka)
    safe = {"min.insync.replicas": "2"} if replicas == REPLICAS else {}
    wanted: Any = (topic, partitions, replicas, [], list({**safe, **config}.items()))
    patience_ms = round(kafka.request_timeout_s * 1000)
    return CreateTopicsRequest([wanted], patience_ms, validate_only=False)


async def _request(
    cluster: ClusterClient, request: Request[Any], topic: str, partitions: int
) -> str:
    """Send the request; return what is still to be waited for."""
    _, code, *message = (await cluster.send_to_controller(request)).topic_errors[0]
    error = for_code(code)
    if error is NoError:
        log(TOPIC_CREATED, topic=topic, partitions=partitions)
        return "not every broker knows it yet"
    reason = f"{error.__name__}: {(message and message[0]) or error.description}"
    # Another process was faster, or this broker does not know the partitions of the last request.
    raced = error in (TopicAlreadyExistsError, InvalidPartitionsError)
    if raced or error.retriable:
        return reason
    raise BrokerUnavailable(f"Kafka refuses {partitions} partitions of topic {topic}: {reason}")


async def oldest_records(
    cluster: ClusterClient, topic: str, partition: int, offset: int
) -> Sequence[Record] | None:
    """Return the records at an offset and behind it, of about `OLDEST_BYTES`; None: no right.

    Raises:
        BrokerUnavailable: No broker answers, or the batch cannot be decoded.
        TopicMissing: There is no such partition.
    """
    leaders = await cluster.leaders(topic)
    if (leader := leaders.get(partition)) is None:
        raise TopicMissing(f"there is no partition {topic}-{partition}")
    wanted = [(topic, [(partition, offset, OLDEST_BYTES)])]
    request = FetchRequest(0, 0, OLDEST_BYTES, 0, wanted)
    response: Any = await cluster.send_request(leader, request)
    ((_, ((_, code, *_, stored),)),) = response.topics
    error = for_code(code)
    if error is TopicAuthorizationFailedError:
        return None
    if error is not NoError:
        raise BrokerUnavailable(f"read {topic}-{partition} at {offset}: {error.__name__}")
    batches, records = Batches(stored), list[Record]()
    try:
        while batches.has_next():  # a batch may be empty: what was in it was compacted away
            records += [Record(r.offset, r.timestamp, r.key, r.value) for r in batches.next_batch()]
    except (KafkaError, ValueError) as exc:
        raise BrokerUnavailable(f"decode {topic}-{partition} at {offset}: {exc}") from exc
    return records


async def describe_topic(
    cluster: ClusterClient, topic: str, names: Collection[str]
) -> TopicDescription:
    """Return the configuration of a topic; entries without read permission are left out.

    Raises:
        BrokerUnavailable: No broker answers.
        TopicMissing: There is no such topic.
    """
    replicas = await cluster.replicas(topic)
    config = (await topic_configs(cluster, [topic], names)).get(topic, {})
    return TopicDescription(config, replicas, await cluster.brokers())


async def topic_configs(
    cluster: ClusterClient, topics: Collection[str], names: Collection[str]
) -> dict[str, dict[str, str]]:
    """Return these entries of the topics' configurations; topics that Kafka refuses are left out.

    Raises:
        BrokerUnavailable: No broker answers.
    """
    request = DescribeConfigsRequest([(_TOPIC, topic, sorted(names)) for topic in sorted(topics)])
    configs = {}
    for code, _, _, topic, entries in (await cluster.send_to_controller(request)).resources:
        if for_code(code) is NoError:
            configs[topic] = {name: value or "" for name, value, *_ in entries}
        else:
            log(TOPIC_DESCRIBE_FAILED, topic=topic, reason=for_code(code).__name__)
    return configs


class RefusedCreations(NamedTuple):
    """Topics that could not be created."""

    denied: set[str]  # this user may not
    others: dict[str, str]  # topic -> why Kafka would not


async def refused_creations(
    cluster: ClusterClient, kafka: KafkaSettings, topics: Mapping[str, int]
) -> RefusedCreations:
    """Ask which of these topics could not be created, without creating any.

    Args:
        cluster: Where.
        kafka: The connection, with the number of replicas.
        topics: Topic -> partitions; what exists meanwhile is not refused.

    Raises:
        BrokerUnavailable: No broker answers.
    """
    refused = RefusedCreations(set(), {})
    if not topics:
        return refused
    replicas = await replication_factor(cluster, kafka)
    wanted: Any = [(topic, number, replicas, [], []) for topic, number in sorted(topics.items())]
    patience_ms = round(kafka.request_timeout_s * 1000)
    request = CreateTopicsRequest(wanted, patience_ms, validate_only=True)
    for topic, code, *message in (await cluster.send_to_controller(request)).topic_errors:
        error = for_code(code)
        if error in (TopicAuthorizationFailedError, ClusterAuthorizationFailedError):
            refused.denied.add(topic)
        elif error not in (NoError, TopicAlreadyExistsError):
            why = (message and message[0]) or error.description
            refused.others[topic] = f"{error.__name__}: {why}"
    return refused
