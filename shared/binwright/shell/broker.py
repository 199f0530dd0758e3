"""Kafka spoken to: where it is, as whom, what went wrong, and who leads what.

Everything here and in `bus` turns aiokafka's errors into ours; nobody else catches `KafkaError`.
"""

import asyncio
import random
import ssl
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import structlog
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    KafkaError,
    LeaderNotAvailableError,
    MessageSizeTooLargeError,
    NoError,
    RecordListTooLargeError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.api import Request, Response
from aiokafka.protocol.metadata import MetadataRequest

from binwright.core.errors import BrokerUnavailable, RecordTooLarge, SettingsError, TopicMissing
from binwright.shell.frames import ListOffsets, Metadata
from binwright.shell.settings import KafkaSettings
from binwright.shell.topic_id import TopicId, topic_id

log = structlog.get_logger()

NOBODY = -1
"""The leader of a partition that has none."""
LATEST, EARLIEST = -1, -2
DIAGNOSIS_S = 5.0
CLOSE_S = 5.0


class Unsupported(BrokerUnavailable):
    """The broker and we have no version of a request in common."""


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Return what every aiokafka client is opened with: address, security, request timeout.

    Raises:
        SettingsError: A certificate or key cannot be read.
    """
    password = kafka.sasl_password
    return {
        "bootstrap_servers": kafka.bootstrap_servers,
        "client_id": "binwright",
        "request_timeout_ms": round(kafka.request_timeout_s * 1000),
        "security_protocol": kafka.security_protocol,
        "ssl_context": _ssl_context(kafka),
        "sasl_mechanism": kafka.sasl_mechanism,
        "sasl_plain_username": kafka.sasl_username,
        "sasl_plain_password": password.get_secret_value() if password else None,
    }


def _ssl_context(kafka: KafkaSettings) -> ssl.SSLContext | None:
    if not kafka.security_protocol.endswith("SSL"):
        return None
    try:
        context = ssl.create_default_context(cafile=kafka.ssl_ca_file)
        if kafka.ssl_certificate_file:
            context.load_cert_chain(kafka.ssl_certificate_file, kafka.ssl_key_file)
    except OSError as exc:  # ssl.SSLError is one
        files = kafka.ssl_ca_file, kafka.ssl_certificate_file, kafka.ssl_key_file
        named = ", ".join(str(file) for file in files if file)
        raise SettingsError(
            f"kafka.ssl_ca_file, ssl_certificate_file or ssl_key_file cannot be used ({named}): "
            f"{exc}. Each must be a PEM file."
        ) from exc
    return context


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn what aiokafka raises inside into our own errors, with a cause."""
    try:
        yield
    except UnknownTopicOrPartitionError as exc:
        raise TopicMissing(f"{doing}: there is no such topic or partition") from exc
    except (MessageSizeTooLargeError, RecordListTooLargeError) as exc:
        raise RecordTooLarge(f"{doing}: the record is too large (max.message.bytes)") from exc
    except (KafkaError, OSError) as exc:  # a time-out is an OSError
        raise BrokerUnavailable(f"{doing}: {_reason(exc)}") from exc


def _reason(exc: BaseException) -> str:
    if isinstance(exc, TimeoutError):
        return "no answer in time"
    return str(exc) or type(exc).__name__


async def unreachable(kafka: KafkaSettings, exc: BaseException) -> BrokerUnavailable:
    """Return the error for a failed start: the address, the reason, and what to check.

    aiokafka says "unable to bootstrap" and keeps the reason (a wrong password, say) to itself, so
    each server is knocked at once more. `exc` is told where that finds nothing.
    """
    hosts = collect_hosts(kafka.bootstrap_servers)
    found = await asyncio.gather(*(_knock(kafka, *host) for host in hosts))
    reasons = "; ".join(reason for reason in found if reason) or _reason(exc)
    checks = [
        f"that a broker listens at kafka.bootstrap_servers ({kafka.bootstrap_servers})",
        f"that this listener speaks {kafka.security_protocol} (kafka.security_protocol)",
    ]
    if kafka.security_protocol.startswith("SASL"):
        who = f"{kafka.sasl_username} by {kafka.sasl_mechanism}"
        checks.append(f"that it knows {who} and this password (kafka.sasl_*)")
    return BrokerUnavailable(f"Kafka cannot be used: {reasons}. Check {', '.join(checks)}.")


async def _knock(kafka: KafkaSettings, host: str, port: int, _family: int) -> str:
    """Return what is wrong with this server, or nothing."""
    options = client_options(kafka)
    options.pop("bootstrap_servers")
    try:
        async with asyncio.timeout(DIAGNOSIS_S):
            conn = await create_conn(host, port, **options)
            try:
                await conn.send(MetadataRequest([]))
            finally:
                conn.close()
    except (KafkaError, OSError) as exc:
        return f"{host}:{port}: {_reason(exc)}"
    return ""


async def stop_client(client: Any) -> None:
    """Stop an aiokafka consumer or producer, within `CLOSE_S`; raise nothing of its own.

    A consumer of which a fetch has just failed ends its `stop` with a cancellation that nobody
    asked for, before it has closed its connections.
    """
    stopping = asyncio.ensure_future(client.stop())
    await asyncio.wait({stopping}, timeout=CLOSE_S)
    if not stopping.done():
        stopping.cancel()
        log.warning("client.abandoned", waited_s=CLOSE_S)
    elif stopping.cancelled() or stopping.exception():
        log.debug("client.cut_off", reason=repr(stopping))
    else:
        return
    inner = client.client if hasattr(client, "client") else client._client  # noqa: SLF001
    await asyncio.wait({asyncio.ensure_future(inner.close())}, timeout=CLOSE_S)


@dataclass(frozen=True, slots=True)
class Topics:
    """What a broker knows about the topics that were asked for."""

    leaders: Mapping[str, Mapping[int, int]]
    """Of each topic that exists: partition -> broker, or `NOBODY`."""
    refused: Mapping[str, str]
    """Of which Kafka says nothing, and why; a topic in neither does not exist."""
    internal: frozenset[str] = frozenset()
    """Those that Kafka keeps for itself."""


class Cluster:
    """Questions to Kafka, on connections that nothing else keeps busy.

    (On a connection with a fetch under way every answer waits for up to 500 ms.)
    Topics are never created by asking. Opened when first used; a cluster that moved as a whole is
    found again through the bootstrap servers. Close it at the end.
    """

    def __init__(self, kafka: KafkaSettings, *, answer_s: float | None = None) -> None:
        """Wait for each answer `answer_s` seconds at most; else the settings' request timeout."""
        self._kafka = kafka
        self._answer_s = answer_s or kafka.request_timeout_s
        self._client: AIOKafkaClient | None = None
        self._answering: int | None = None  # the broker that answered anybody's question last
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Connect now.

        Raises:
            BrokerUnavailable: No broker answers; says what to check.
        """
        await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of connections."""
        await self.close()

    async def close(self) -> None:
        """Let go of connections; they are opened again when needed."""
        client, self._client = self._client, None
        if client:
            await client.close()

    async def _opened(self) -> AIOKafkaClient:
        async with self._opening:
            if self._client is None:
                options = client_options(self._kafka)
                options["request_timeout_ms"] = round(self._answer_s * 1000)
                client = AIOKafkaClient(**options)
                try:
                    await client.bootstrap()
                except (KafkaError, OSError) as exc:
                    await client.close()
                    raise await unreachable(self._kafka, exc) from exc
                self._client = client
            return self._client

    async def ask(self, broker: int, request: Request[Any]) -> Response:
        """Send one request to one broker; raise `BrokerUnavailable` or `Unsupported`."""
        client = await self._opened()
        with translated(f"ask broker {broker}"):
            try:
                return await client.send(broker, request)
            except (IncompatibleBrokerVersion, NotImplementedError) as exc:
                raise Unsupported(f"broker {broker} is too old or too new: {exc}") from exc

    async def ask_controller(self, request: Request[Any]) -> Response:
        """Send a request that changes topics to whom Kafka wants it sent; raise like `ask`."""
        return await self.ask((await self._metadata(())).controller_id, request)

    async def _ask_any(self, request: Request[Any]) -> Response:
        client = await self._opened()
        brokers = [broker.nodeId for broker in client.cluster.brokers()]
        # Who answered last goes first: asking around would find one that hangs again and again.
        tries = sorted(random.sample(brokers, len(brokers)), key=lambda b: b != self._answering)
        faults = []
        for broker in tries:
            try:
                answer = await self.ask(broker, request)
            except BrokerUnavailable as exc:
                faults.append(str(exc))
            else:
                self._answering = broker
                return answer
        await self.close()  # so that the next question begins at the bootstrap servers
        raise BrokerUnavailable(f"no broker answers: {'; '.join(faults)}")

    async def _metadata(self, topics: Collection[str] | None) -> Response:
        names = None if topics is None else sorted(topics)
        metadata = await self._ask_any(Metadata(names))
        if self._client:  # nobody closed it meanwhile
            found, metadata.topics = metadata.topics, []
            # Keeps the brokers' addresses fresh; about missing topics it would write logs.
            self._client.cluster.update_metadata(metadata)
            metadata.topics = found
        return metadata

    async def brokers(self) -> int:
        """Return how many brokers are alive; raise `BrokerUnavailable`."""
        return len((await self._metadata(())).brokers)

    async def topics(self, names: Collection[str] | None) -> Topics:
        """Look up who leads each partition, of every topic if None; raise `BrokerUnavailable`."""
        if names is not None and not names:
            return Topics({}, {})
        leaders: dict[str, dict[int, int]] = {}
        refused: dict[str, str] = {}
        internal = set()
        for code, topic, is_internal, partitions in (await self._metadata(names)).topics:
            error = for_code(code)
            if error in (NoError, LeaderNotAvailableError):  # the latter: being created
                leaders[topic] = {p: leader for _, p, leader, *_ in partitions}
                if is_internal:
                    internal.add(topic)
            elif error is not UnknownTopicOrPartitionError:
                refused[topic] = f"{error.__name__}: {error.description}"
        return Topics(leaders, refused, frozenset(internal))

    async def leaders(self, topic: str) -> Mapping[int, int]:
        """Return who leads each partition of one topic: none where there is no such topic.

        Raises:
            BrokerUnavailable: Nobody answers, or we may not know.
        """
        topics = await self.topics([topic])
        if why := topics.refused.get(topic):
            raise BrokerUnavailable(f"Kafka tells nothing about topic {topic}: {why}")
        return topics.leaders.get(topic, {})

    async def replicas(self, topic: str) -> int:
        """Return how many replicas a topic has, by the partition with the fewest.

        Raises:
            BrokerUnavailable: Nobody answers.
            TopicMissing: There is no such topic.
        """
        ((_, _, _, partitions),) = (await self._metadata([topic])).topics
        # Rows are flat where all are of one size: a number, then the replicas. See `frames`.
        counts = (row[3] if isinstance(row[3], int) else len(row[3]) for row in partitions)
        if (fewest := min(counts, default=None)) is None:
            raise TopicMissing(f"no such topic: {topic}")
        return int(fewest)

    async def cluster_id(self) -> str:
        """Return what tells this cluster from all others; raise `BrokerUnavailable`."""
        return str((await self._metadata(())).cluster_id or "")

    async def topic_id(self, topic: str, broker: int | None = None) -> str | None:
        """Return the id of a topic, which no other of this name ever has; None before Kafka 2.8.

        Args:
            topic: Its name.
            broker: Who is asked; unset: any.

        Raises:
            BrokerUnavailable: Nobody answers, or we may not know.
            TopicMissing: There is no such topic.
        """
        question = TopicId(topic)
        answer = await (self._ask_any(question) if broker is None else self.ask(broker, question))
        error = for_code(answer.error_code)
        if error is UnknownTopicOrPartitionError:
            raise TopicMissing(f"no such topic: {topic}")
        if error not in (NoError, LeaderNotAvailableError):
            raise BrokerUnavailable(f"Kafka tells nothing about topic {topic}: {error.__name__}")
        return topic_id(answer)

    async def offsets(
        self, broker: int, partitions: Mapping[str, Collection[int]], when: int
    ) -> dict[tuple[str, int], int]:
        """Return the `LATEST` or `EARLIEST` offsets of partitions that `broker` leads.

        Those that it does not lead (any more) are left out. Raises `BrokerUnavailable`.
        """
        wanted = [(topic, [(p, when) for p in numbers]) for topic, numbers in partitions.items()]
        answer = await self.ask(broker, ListOffsets(wanted))
        return {
            (topic, partition): offset
            for topic, rows in answer.topics
            for partition, code, _timestamp, offset in rows
            if code == NoError.errno
        }
