"""Three groups under load, each by another kind of credentials, which are renewed all the while."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tests.integration.security.secured_broker import (
    USER,
    SecuredBroker,
    change_password,
    run_secured_broker,
)

from binwright.inspect.audit import AuditResult, audit
from binwright.inspect.row_ages import Freshness, freshness
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.spark import run_spark
from binwright.local.stack import Stack, services
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

PARTITIONS = 2
RECORD_BYTES = 1_000
BYTES_PER_S = 20_000  # of each partition
ROW_S = 10.0
DELIVERY_S = 120.0
READY_S = 240.0
LAND_S = 240.0
SERVICES = 3  # monitor, controller, one consumer

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """How long a run takes and what it does, seconds.

    Attributes:
        load_s: How long records are written.
        certificate_s: Life of a client certificate.
        token_s: Life of a token.
        password_s: From one password to the next.
        restarts: Of the broker, at equal distances.
    """

    load_s: float
    certificate_s: float
    token_s: float
    password_s: float
    restarts: int


@dataclass(slots=True)
class Group:
    """One group, its credentials, and what becomes of both.

    Attributes:
        settings: What its services run with.
        life_s: How long what it connects with is accepted.
        renew: Replaces it, on the broker too where it must know.
        renewals: How often that was done.
        began: Its processes when the load began.
        ended: Its processes when the load ended.
    """

    settings: Settings
    life_s: float
    renew: Callable[[], Awaitable[None]]
    renewals: int = 0
    began: Sequence[int] = ()
    ended: Sequence[int] = ()

    async def keep_renewed(self) -> None:
        """Renew twice in each life, until cancelled."""
        while True:
            await asyncio.sleep(self.life_s / 2)
            await self.renew()
            self.renewals += 1


@dataclass(slots=True)
class Renewals:
    """A run, and what it came to."""

    lives: Lives
    directory: Path
    log: Log
    spark: str | None = None
    """Address of a server whose token is in the environment; None: one of its own."""
    groups: Sequence[Group] = ()
    records: int = 0
    restarts: int = 0
    audit: AuditResult | None = None
    row_ages: Sequence[Freshness] = ()

    @property
    def restarted(self) -> Mapping[str, tuple[Sequence[int], Sequence[int]]]:
        """The groups whose processes are others than when the load began, with both."""
        return {g.settings.group: (g.began, g.ended) for g in self.groups if g.began != g.ended}

    @property
    def clean(self) -> bool:
        """Whether no process was started again, and each record has one row."""
        return self.audit is not None and self.audit.clean and not self.restarted

    async def run(self) -> None:
        """Set up, load, renew, restart, land, audit; everything is taken down again.

        Raises:
            ExternalError: A group did not begin to land.
        """
        async with AsyncExitStack() as stack:
            broker = run_secured_broker(self.directory, session_s=self.lives.token_s)
            secured = await stack.enter_async_context(broker)
            lake = {"path": str(self.directory / "lake"), "spark": self.spark}
            if self.spark is None:
                own = await stack.enter_async_context(run_spark(self.directory / "spark"))
                lake |= {"spark": own.address, "token_file": str(own.token_file)}
            self.groups = groups(secured, lake, self.directory, self.lives)
            await make_topics(secured.owner(), [group.settings for group in self.groups])
            for group in self.groups:
                await group.renew()
            renewing = (group.keep_renewed() for group in self.groups)
            await stack.enter_async_context(background_tasks(*renewing))
            running = [
                await stack.enter_async_context(services(group.settings, logs_of(group.settings)))
                for group in self.groups
            ]
            await self._load(secured, running)
            self.log("waiting until everything has landed")
            await self._land(secured.owner())

    async def _load(self, secured: SecuredBroker, running: Sequence[Stack]) -> None:
        topics = [topic for group in self.groups for topic in group.settings.topics]
        partitions = [TopicPartition(t, number) for t in topics for number in range(PARTITIONS)]
        load = Pacing(
            row_s=ROW_S,
            bytes_per_per_cent=BYTES_PER_S,
            record_bytes=RECORD_BYTES,
            delivery_s=DELIVERY_S,
        )
        done = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            written = tasks.create_task(
                run_load(
                    [dict.fromkeys(partitions, PerCent(1.0))],
                    secured.owner(),
                    replace(load, duration_s=READY_S + 2 * self.lives.load_s),
                    stop=done,
                )
            )
            try:
                await self._until_landing(running, topics)
                for group, stack in zip(self.groups, running, strict=True):
                    group.began = stack.pids()
                await self._restart(secured)
                for group, stack in zip(self.groups, running, strict=True):
                    group.ended = stack.pids()
            finally:
                done.set()
        self.records = sum(sent.records for sent in written.result().partitions.values())

    async def _until_landing(self, running: Sequence[Stack], topics: Sequence[str]) -> None:
        self.log("waiting until each group lands")
        try:
            async with asyncio.timeout(READY_S):
                while not (all(map(exists, self._tables(topics))) and all(map(whole, running))):  # noqa: ASYNC110 - other processes work
                    await asyncio.sleep(0.2)
        except TimeoutError as exc:
            raise ExternalError(f"nothing lands after {READY_S:g} s: {self.directory}") from exc

    def _tables(self, topics: Sequence[str]) -> Sequence[Path]:
        return [self.directory / "lake" / topic for topic in topics]

    async def _restart(self, secured: SecuredBroker) -> None:
        """Restart the broker at equal distances, until the load ends."""
        pause_s = self.lives.load_s / (self.lives.restarts + 1)
        await asyncio.sleep(pause_s)
        for _ in range(self.lives.restarts):
            self.log("restarting the broker")
            await secured.broker.stop()
            await secured.broker.start()
            self.restarts += 1
            await asyncio.sleep(pause_s)

    async def _land(self, owner: KafkaSettings) -> None:
        topics = [topic for group in self.groups for topic in group.settings.topics]
        lake = self.groups[0].settings.lake
        ends = time.monotonic() + LAND_S
        while time.monotonic() < ends and not (self.audit and self.audit.clean):
            self.audit = await audit(topics, owner, lake)
        self.row_ages = await freshness(topics, lake)


def whole(stack: Stack) -> bool:
    """Whether a group's monitor, controller and consumer run."""
    return len(stack.pids()) == SERVICES


def exists(table: Path) -> bool:
    """Whether a table has rows."""
    return any(table.glob("*.parquet"))


def logs_of(settings: Settings) -> Path:
    """Return where a group's services log."""
    assert settings.controller.process_logs is not None
    return settings.controller.process_logs


async def make_topics(kafka: KafkaSettings, every: Sequence[Settings]) -> None:
    """Create the topics of groups, and what their services read."""
    async with KafkaControlTopics(kafka) as bus:
        for settings in every:
            await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
            await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
            for topic in settings.topics:
                await bus.ensure(topic, PARTITIONS, {})


def groups(
    secured: SecuredBroker, lake: Mapping[str, str | None], directory: Path, lives: Lives
) -> Sequence[Group]:
    """Return a group for each kind of credentials.

    Args:
        secured: The broker that accepts them.
        lake: Settings of their tables.
        directory: Of credentials and logs.
        lives: How long each kind lives.
    """
    token, password = directory / "token", directory / "password"

    async def renew_certificate() -> None:
        secured.authority.client(USER, valid_s=lives.certificate_s)

    async def renew_token() -> None:
        token.write_text(secured.issuer.token(USER, valid_s=lives.token_s))

    async def renew_password() -> None:
        new = secrets.token_urlsafe()
        await asyncio.to_thread(change_password, secured.owner().bootstrap_servers, new)
        password.write_text(new)

    tokens = secured.connection("OAUTHBEARER", sasl_token_file=token)
    passwords = {"sasl_password": None, "sasl_password_file": password}
    scram = secured.connection("SCRAM-SHA-512", **passwords)

    def of(name: str, kafka: KafkaSettings) -> Settings:
        group = f"renewed-{name}"
        return load_settings(
            group=group,
            topics=(group,),
            kafka=kafka.model_dump(exclude_unset=True),
            lake=lake,
            monitor={"window_s": 8.0, "topic": f"{group}.metrics"},
            controller={"process_logs": directory / "logs" / name, "max_slots": 1},
        )

    return (
        Group(
            of("certificate", secured.connection("MUTUAL")), lives.certificate_s, renew_certificate
        ),
        Group(of("token", tokens), lives.token_s, renew_token),
        Group(of("password", scram), lives.password_s, renew_password),
    )
