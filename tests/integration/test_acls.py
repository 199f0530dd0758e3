"""The ACLs of docs/reference/acls.md are enough for everything that services and people do."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiokafka import AIOKafkaProducer
from structlog.testing import capture_logs
from tests.integration.command_line import binwright
from tests.integration.topics import create_topic
from tests.waiting import until

from binwright.balancer.__main__ import balance
from binwright.balancer.admin_client import AdminClient
from binwright.balancer.decide.throttles import Copy, Throttles
from binwright.balancer.executor import check, read_throttles
from binwright.balancer.ports import Configs
from binwright.balancer.probe import LONGEST_S, producer_probe
from binwright.balancer.settings import BalancerProgramSettings, BrokerSettings
from binwright.consumer.read.group_offsets import GroupOffsets
from binwright.kafka.client import ClusterClient, client_options
from binwright.kafka.control_records import ORDERS_PARTITION
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.local.child import Child, Command
from binwright.local.server import HOST, reserve_port
from binwright.protocol.model import TopicPartition
from binwright.protocol.orders import Approved
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.health import HealthSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import settings_environment

from .authorization import Acl, guarded_broker, parse_command

pytestmark = pytest.mark.integration

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "acls.md"
COMMANDS = re.findall(r"^allow User:.*$", PAGE.read_text(), re.MULTILINE)
USERS = ("monitor", "controller", "consumer", "viewer", "operator")
BALANCER = "User:balancer"
OTHERS = {BALANCER, "User:scaler", "User:approver"}
"""They have tests of their own: here, in test_scaler and in security/test_apart."""
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
        code, output, errors = await binwright(*arguments, environment=self.environment(user))
        return code, output + errors


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


def refusals(logs: list[Path]) -> Iterator[str]:
    """Yield what is refused."""
    for log in logs:
        for line in log.read_text().splitlines():
            if REFUSED.search(line):
                yield line


@pytest.mark.nightly
async def test_services_land_records_and_people_look_with_these_acls_and_no_others(
    tmp_path: Path, spark_url: str
) -> None:
    every = (rule for line in COMMANDS for rule in parse_command(line))
    rules = [rule for rule in every if rule.principal not in OTHERS]
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

        await until(is_landed, DEADLINE_S)

        async def is_shown() -> bool:
            code, output = await site.command("viewer", "status", "--json")
            assert code == 0, output
            (group,) = json.loads(output)
            return len(group["consumers"]) == 2 and group["lag"] == 0

        await until(is_shown, DEADLINE_S)

        async with KafkaControlTopics(users["operator"]) as bus:
            approved = Approved(plan=1, by="an operator")
            await publish_message(bus, "binwright.group-orders", ORDERS_PARTITION, approved)

        async def is_refused() -> bool:
            return "approval.refused" in logs[1].read_text()

        await until(is_refused, DEADLINE_S)
        for order in (["pause", "--reason", "a repair"], ["resume"]):
            code, output = await site.command("operator", "table", *order, "orders")
            assert code == 0, output
        code, output = await site.command("operator", "group", "freeze", "--reason", "a release")
        assert code == 0, output

        async def stands() -> bool:
            code, output = await site.command("viewer", "group", "orders")
            assert code == 0, output
            return "moves are frozen" in output

        await until(stands, DEADLINE_S)
        assert list(refusals(logs)) == []


ORDERS = TopicPartition("orders", 0)


@asynccontextmanager
async def balancers_site(
    directory: Path, rules: Sequence[Acl]
) -> AsyncIterator[BalancerProgramSettings]:
    """Give what a balancer that acts connects to, as its own user."""
    async with guarded_broker(directory, ["balancer"], rules, denies=True) as (owner, users):
        for topic in TOPICS:
            await create_topic(owner, topic, PARTITIONS)
        with reserve_port() as port:
            health = HealthSettings(port=port)
        yield BalancerProgramSettings(
            kafka=users["balancer"],
            health=health,
            brokers=BrokerSettings(mode="act", interval_s=1),
        )


async def move_as_the_leader_does(kafka: KafkaSettings) -> None:
    """Throttle, probe, reassign, elect and take back, by the parts of which `act` is made."""
    async with AdminClient(kafka) as brokers:
        state = await brokers.state()
        assert {partition.topic for partition in state.partitions} >= {*TOPICS}
        replicas = {ORDERS: state.placed(ORDERS)}
        await check(brokers, replicas, replication_may_change=False)
        throttles = Throttles.of_configs({}).until(1_000_000, [Copy(ORDERS, (1,), (1,))])
        async with producer_probe(kafka, replicas, wanted=True) as probe:
            assert probe is not None
            assert await probe.measure() < LONGEST_S
            await brokers.set_configs(throttles)
            await brokers.reassign(replicas)
            await brokers.elect_preferred([ORDERS])

        async def ours() -> Configs:
            return (await read_throttles(brokers, await brokers.state())).ours

        async def are_set() -> bool:  # a broker shows a change once it has read it from the log
            return (await ours()).keys() >= throttles.keys()

        async def are_removed() -> bool:
            return not await ours()

        await until(are_set, DEADLINE_S)
        await brokers.set_configs(Throttles(await ours()).until(None, []))
        await until(are_removed, DEADLINE_S)


async def test_the_documented_rights_are_enough_for_a_balancer_that_acts(tmp_path: Path) -> None:
    lines = [line for line in COMMANDS if f"{BALANCER} " in line]
    rules = [rule for line in lines for rule in parse_command(line)]
    async with asyncio.timeout(DEADLINE_S), balancers_site(tmp_path / "kafka", rules) as settings:

        async def has_looked() -> bool:
            with suppress(aiohttp.ClientConnectionError):
                async with (
                    aiohttp.ClientSession(f"http://{HOST}:{settings.health.port}") as session,
                    session.get("/metrics") as response,
                ):
                    return "binwright_brokers_imbalance_ratio{" in await response.text()
            return False

        with capture_logs() as logs:
            async with background_tasks(balance(settings)):
                await until(has_looked, DEADLINE_S)
        assert not [each for each in logs if each["log_level"] in {"warning", "error"}]
        await move_as_the_leader_does(settings.kafka)
