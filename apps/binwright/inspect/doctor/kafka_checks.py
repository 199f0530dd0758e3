"""Looks at Kafka: its servers, what they support, topics, and what this user may do. Only reads."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
)
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest

from binwright.inspect.decide.doctor.brokers import SIZES, RequestKind
from binwright.inspect.decide.doctor.rights import Permitted
from binwright.inspect.decide.doctor.topics import CONFIGS, VisibleTopic
from binwright.kafka.client import ClusterClient
from binwright.kafka.control_records import LANDING_PARTITIONS
from binwright.kafka.frames import ListOffsets, Metadata
from binwright.kafka.group_requests import FindCoordinators
from binwright.kafka.log_dirs import DescribeLogDirs, dead_directories
from binwright.kafka.permitted import (
    Operations,
    PermittedMetadata,
    permitted_cluster,
    permitted_on_group,
)
from binwright.kafka.topics import refused_creations, topic_configs
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.rights import Names
from binwright.protocol.selection import CONTROLLERS_SUFFIX
from binwright.runtime.settings.group import Settings

ANSWER_S = 10.0  # of one broker

SENT: Mapping[str, Any] = {
    "Produce": ProduceRequest,
    "Fetch": FetchRequest,
    "ListOffsets": ListOffsets,
    "Metadata": Metadata,
    "Metadata with rights": PermittedMetadata,
    "OffsetCommit": OffsetCommitRequest,
    "OffsetFetch": OffsetFetchRequest,
    "FindCoordinator": FindCoordinators,
    "JoinGroup": JoinGroupRequest,
    "Heartbeat": HeartbeatRequest,
    "SyncGroup": SyncGroupRequest,
    "CreateTopics": CreateTopicsRequest,
    "CreatePartitions": CreatePartitionsRequest,
    "InitProducerId": InitProducerIdRequest,
    "DescribeConfigs": DescribeConfigsRequest,
    SIZES: DescribeLogDirs,
}
"""What services send, and this command."""


def sent_apis() -> Sequence[RequestKind]:
    """Return the requests that are sent, with the versions that this client has of each."""
    return [
        RequestKind(name, kind.API_KEY, [struct.API_VERSION for struct in kind._CLASSES])  # noqa: SLF001 - aiokafka has no other way
        for name, kind in SENT.items()
    ]


@dataclass(frozen=True, slots=True)
class Seen:
    """What this user sees in the cluster."""

    names: Names
    topics: Mapping[str, VisibleTopic]  # the data topics, and the group's own
    permitted: Permitted
    brokers: int
    refused: Mapping[str, str]  # topics that Kafka would not create, though this user may -> why
    dead: Mapping[int, Sequence[str]]  # broker -> its log directories that are dead


async def look_at_topics(settings: Settings) -> Seen:
    """Describe the topics of the settings and the group's own, and ask what is permitted.

    Raises:
        BrokerUnavailable: No broker answers.
    """
    async with ClusterClient(settings.kafka, broker_timeout_s=ANSWER_S) as cluster:
        names = Names(
            group=settings.group,
            data=await _data_topics(cluster, settings),
            metadata=settings.metadata_topic,
            commands=settings.commands_topic,
            landing=settings.landing_topic,
            orders=settings.orders_topic,
            metrics=settings.monitor.topic,
            needs=settings.needs_topic,
        )
        wanted_partitions = {
            **dict.fromkeys((names.metadata, names.commands, names.orders), 1),
            **dict.fromkeys((names.metrics, names.needs), 1),
            names.landing: LANDING_PARTITIONS,
        }
        seen = await permitted_cluster(cluster, {*names.data, *wanted_partitions})
        there = [name for name, topic in seen.topics.items() if topic.leaders]
        configs = await topic_configs(cluster, there, CONFIGS)
        topics = {
            name: VisibleTopic(
                name,
                partitions=len(topic.leaders),
                leaderless=topic.leaderless,
                replicas=topic.replicas,
                permitted=topic.permitted,
                hidden=topic.is_hidden,
                error=topic.error,
                config=configs.get(name),
            )
            for name, topic in seen.topics.items()
        }
        missing = {
            name: number
            for name, number in wanted_partitions.items()
            if not (topics[name].exists or topics[name].hidden or topics[name].error)
        }
        denied, refused = await refused_creations(cluster, settings.kafka, missing)
        dead = await _dead_directories(cluster, seen.brokers)
        groups = await _groups(cluster, [names.group, names.group + CONTROLLERS_SUFFIX])
    permitted = Permitted(seen.permitted, topics, groups, denied)
    return Seen(names, topics, permitted, len(seen.brokers), refused, dead)


async def _dead_directories(
    cluster: ClusterClient, brokers: Collection[int]
) -> dict[int, Sequence[str]]:
    """Return the directories that brokers name, as far as they answer and this user may know."""

    async def ask(broker: int) -> Sequence[str]:
        try:
            return dead_directories(await cluster.send_request(broker, DescribeLogDirs({})))
        except BrokerUnavailable:
            return ()  # how it is reached is judged elsewhere

    directories = await asyncio.gather(*map(ask, brokers))
    return {broker: dead for broker, dead in zip(brokers, directories, strict=True) if dead}


async def _data_topics(cluster: ClusterClient, settings: Settings) -> Sequence[str]:
    """Return the topics that are named, and those that match a pattern."""
    wanted = settings.landed_topics
    if wanted is None:
        return ()
    if not wanted.patterns:
        return sorted(wanted.topics)
    known = await cluster.topics(None)
    visible = known.leaders.keys() - known.internal
    return sorted(wanted.topics | {topic for topic in visible if wanted.matches_pattern(topic)})


async def _groups(cluster: ClusterClient, groups: Collection[str]) -> dict[str, Operations]:
    permitted = await asyncio.gather(*(permitted_on_group(cluster, group) for group in groups))
    return dict(zip(groups, permitted, strict=True))
