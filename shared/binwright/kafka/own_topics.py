"""Keeps a client of aiokafka to the topics that it uses, without a change to the library.

By default a client that uses no topics yet requests the metadata of all of them, and each refresh
creates a used topic anew that was deleted, with the broker's default settings.
"""

import random
from collections.abc import Collection
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest


def keep_to_own_topics(user: Any) -> None:
    """Have a consumer or producer request its own topics only, and create none."""
    client: AIOKafkaClient = inner_client(user)

    async def update(cluster: ClusterMetadata, topics: Collection[str] | None) -> bool:
        request = MetadataRequest(sorted(topics or ()), allow_auto_topic_creation=False)
        brokers = [broker.nodeId for broker in client.cluster.brokers()]
        for broker in random.sample(brokers, len(brokers)):
            try:
                found = await client.send(broker, request)
            except KafkaError:
                continue  # another broker may answer
            cluster.update_metadata(found)
            return True
        cluster.failed_update(None)
        return False

    client._metadata_update = update  # noqa: SLF001 - aiokafka has no option for it


def inner_client(user: Any) -> AIOKafkaClient:
    """Return the client of an aiokafka consumer or producer."""
    return user.client if hasattr(user, "client") else user._client  # noqa: SLF001
