"""What is tried before a system starts, so that a fault is told at once and in one sentence."""

import asyncio
from datetime import datetime
from functools import partial

from binwright.consumer.stage.file_staging import FileStaging
from binwright.kafka.client import ClusterClient
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import SESSION_S, election_members
from binwright.lake.lake_reader import connection, delta_table, lake_reader
from binwright.look.follower import read_group
from binwright.protocol.errors import BrokerUnavailable, SettingsError
from binwright.runtime.clock import loop_s
from binwright.runtime.settings.group import Settings

RETRY_S = 0.5
PROBE_TOPIC = "_none"  # no topic is called so


async def check_topics(bus: KafkaControlTopics, settings: Settings) -> None:
    """Check that Kafka has the topics: nothing is created in a Kafka of the user's.

    Raises:
        SettingsError: It lacks one.
        BrokerUnavailable: It does not answer.
    """
    missing = [topic for topic in settings.topics if not await bus.partitions(topic)]
    if missing:
        raise SettingsError(
            f"no such topic at {settings.kafka.bootstrap_servers}: {', '.join(missing)}; "
            "create it first"
        )


async def check_group(bus: KafkaControlTopics, settings: Settings) -> None:
    """Check that nobody leads the group; a leader that was killed counts for `SESSION_S` more.

    Raises:
        SettingsError: A controller of the group runs: says where, since when, and what to do.
        BrokerUnavailable: Kafka does not answer.
    """
    deadline = loop_s() + SESSION_S + 2
    async with ClusterClient(settings.kafka) as cluster:
        while True:
            try:
                hosts = await election_members(cluster, f"{settings.group}.controllers")
            except BrokerUnavailable:
                if loop_s() > deadline:  # a new cluster's coordinators need a moment
                    raise
            else:
                if not hosts:
                    return
                if loop_s() > deadline:
                    break
            await asyncio.sleep(RETRY_S)
    kafka = settings.kafka.bootstrap_servers
    raise SettingsError(
        f"group {settings.group} is led already, by a controller on {', '.join(sorted(set(hosts)))}"
        f"{await _since(bus, settings)}: land these topics as another group (--group NAME), or "
        f"look at that one (binwright status --group {settings.group} --bootstrap-servers {kafka})"
    )


async def _since(bus: KafkaControlTopics, settings: Settings) -> str:
    if not await bus.partitions(settings.metadata_topic):
        return ""
    view = await read_group(bus, settings.group)
    if view.leadership is None:
        return ""
    at = datetime.fromtimestamp(view.leadership.at_ms / 1000).astimezone()
    return f" since {at:%H:%M on %d %B}"


async def check_staging(settings: Settings) -> None:
    """Check that staged files can be written.

    Raises:
        StagingUnavailable: They cannot.
    """
    async with FileStaging(settings.staging_path) as staging:
        await staging.prepare()


async def check_lake(settings: Settings) -> None:
    """Check that Spark can look at the lake.

    Raises:
        LakeUnavailable: A Spark server does not answer, or does not know the lake's storage.
    """
    for server in settings.lake.servers:
        async with lake_reader(connection(settings.lake, server)) as reader:
            path = settings.lake.path.rstrip("/")
            probe = settings.lake.table_path(PROBE_TOPIC)
            await reader.run(f"look at {path}", partial(delta_table, path=probe))
