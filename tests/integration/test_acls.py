"""The ACLs of docs/operations.md are enough for everything that services and people do."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.topics import create_topic

from binwright.consumer.reading.group_offsets import GroupOffsets
from binwright.kafka.client import ClusterClient, client_options
from binwright.kafka.control_records import CONTROLLER_PARTITION
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.local.child import Child, Command
from binwright.protocol.messages import Approved
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings import KafkaSettings, load_settings, settings_environment

from .authorization import guarded_broker, parse_command

pytestmark = pytest.mark.integration

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
COMMANDS = re.findall(r"^allow User:.*$", OPERATIONS.read_text(), re.MULTILINE)
USERS = ("monitor", "controller", "consumer", "viewer", "operator")
SCALER = "User:scaler"  # its rules have a test of their own, test_scaler
TOPICS = ("orders", "clicks")
PARTITIONS, RECORDS = 2, 500
DEADLINE_S, EXIT_S = 240.0, 30.0
REFUSED = re.compile(r"[Aa]uthoriz|sizes\.unavailable|describe_failed|unreadable")


class Site:
    """Services as processes, each logging in as its own user."""

    def __init__(self, users: Mapping[str, KafkaSettings], directory: Path, spark: str) -> None:
        self._users, self._directory, self._spark = users, directory, spark

    def environment(self, user: str) -> dict[str, str]:
        settings = load_settings(
            topics=TOPICS,
            kafka=self._users[user],
            controller={"fleet": "fixed", "max_slots": 2, "min_slots": 2},
            consumer={"drain_timeout_s": 10},
            lake={"path": str(self._directory / "lake"), "spark": self._spark},
        )
        return {**os.environ, **settings_environment(settings)}

    @asynccontextmanager
    async def service(self, user: str, *arguments: str) -> AsyncIterator[Path]:
        """Run a service; at the end it has to exit by itself, and in good order."""
        name = "".join((user, *arguments))
        child = Child(
            Command(
                title=f"the {user}",
                argv=(sys.executable, "-m", f"binwright.{user}", *arguments),
                directory=self._directory / name,
                log=self._directory / f"{name}.log",
                environment=self.environment(user),
            )
        )
        try:
            yield self._directory / f"{name}.log"
            await child.stop(grace_s=EXIT_S)
            assert child.returncode == 0, child.tail()
        finally:
            await child.kill()

    async def command(self, user: str, *arguments: str) -> tuple[int, str]:
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "binwright.cli", *arguments),
            env=self.environment(user),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await running.communicate()
        return running.returncode or 0, output.decode()


async def produce(owner: KafkaSettings) -> None:
    for topic in TOPICS:
        await create_topic(owner, topic, PARTITIONS)
    async with AIOKafkaProducer(**client_options(owner)) as producer:
        for number in range(RECORDS):
            for topic in TOPICS:
                await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


async def landed(owner: KafkaSettings) -> int:
    """Return how many records have landed, by the offsets that writers commit to Kafka."""
    partitions = [TopicPartition(t, number) for t in TOPICS for number in range(PARTITIONS)]
    async with ClusterClient(owner) as cluster:
        found = await GroupOffsets(cluster, "binwright", 10.0).read(partitions, 1)
    return sum(offset.offset for offset in found.values())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():  # noqa: ASYNC110 - neither Kafka nor a log calls back
        await asyncio.sleep(0.5)


def refusals(logs: list[Path]) -> Iterator[str]:
    """Yield what is refused."""
    for log in logs:
        for line in log.read_text().splitlines():
            if REFUSED.search(line):
                yield line


async def test_services_land_records_and_people_look_with_these_acls_and_no_others(
    tmp_path: Path, spark_url: str
) -> None:
    every = (rule for line in COMMANDS for rule in parse_command(line))
    rules = [rule for rule in every if rule.principal != SCALER]
    assert {rule.principal for rule in rules} == {f"User:{user}" for user in USERS}
    async with (
        asyncio.timeout(DEADLINE_S),
        guarded_broker(tmp_path / "kafka", USERS, rules, denies=True) as (owner, users),
        AsyncExitStack() as stack,
    ):
        await produce(owner)
        site = Site(users, tmp_path, spark_url)
        starts = (("monitor",), ("controller",), ("consumer", "--slot=0"), ("consumer", "--slot=1"))
        logs = [await stack.enter_async_context(site.service(*start)) for start in starts]

        async def is_landed() -> bool:
            return await landed(owner) == len(TOPICS) * RECORDS

        await until(is_landed)

        async def is_shown() -> bool:
            code, output = await site.command("viewer", "status", "--json")
            assert code == 0, output
            (group,) = json.loads(output)
            return len(group["consumers"]) == 2 and group["lag"] == 0

        await until(is_shown)

        async with KafkaControlTopics(users["operator"]) as bus:
            approved = Approved(plan=1, by="an operator")
            await publish_message(bus, "binwright.metadata", CONTROLLER_PARTITION, approved)

        async def is_refused() -> bool:
            return "approval.refused" in logs[1].read_text()

        await until(is_refused)
        assert list(refusals(logs)) == []
