"""Connections to Kafka: options of every client, requests to brokers, translated errors.

This module and `control_topics` translate aiokafka's errors; no other code catches `KafkaError`.
"""

import asyncio
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

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
from aiokafka.protocol.admin import ApiVersionRequest
from aiokafka.protocol.api import Request, Response

from binwright.kafka.aiokafka_patches import inner_client, keep_to_own_topics
from binwright.kafka.connection_faults import (
    ConnectionFault,
    connection_fault,
    general_checks,
    reason_of,
)
from binwright.kafka.credentials import sasl_password, tls_context
from binwright.kafka.frames import (
    ListOffsets,
    Metadata,
    MetadataWithIds,
    TopicId,
    replicas_in,
    take_ids,
    topic_id,
)
from binwright.kafka.kerberos import kerberos_options
from binwright.kafka.tokens import token_source
from binwright.protocol.errors import BrokerUnavailable, RecordTooLarge, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log
from binwright.runtime.settings.kafka import KafkaSettings

CLIENT_ABANDONED = LogEvent.warning(
    "client.abandoned", "A Kafka client did not close in time and was left behind."
)
CLIENT_STOP_FAILED = LogEvent.debug(
    "client.stop_failed",
    "A Kafka client ended its closing with an error; its connections are gone.",
)

NO_LEADER = -1
"""The leader of a partition that has none."""
LATEST, EARLIEST = -1, -2
DIAGNOSIS_S = 5.0
PROMPT_S = 2.0
"""A client that has started later looks for the reason."""
CLOSE_S = 5.0


class UnsupportedVersion(BrokerUnavailable):
    """The broker supports no version of a request that this client has."""


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Return the options of every aiokafka client: address, security, request timeout.

    Raises:
        SettingsError: A certificate, key, password or token cannot be read, or GSSAPI needs a
            package.
    """
    return {
        "bootstrap_servers": kafka.bootstrap_servers,
        "client_id": "binwright",
        "request_timeout_ms": round(kafka.request_timeout_s * 1000),
        "security_protocol": kafka.security_protocol,
        "ssl_context": tls_context(kafka),
        "sasl_mechanism": kafka.sasl_mechanism,
        "sasl_plain_username": kafka.sasl_username,
        "sasl_plain_password": sasl_password(kafka),
        "sasl_oauth_token_provider": token_source(kafka),
        **kerberos_options(kafka),
    }


@contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Translate aiokafka's errors inside into binwright's; `doing` names the call."""
    try:
        yield
    except UnknownTopicOrPartitionError as exc:
        raise TopicMissing(f"{doing}: there is no such topic or partition") from exc
    except (MessageSizeTooLargeError, RecordListTooLargeError) as exc:
        raise RecordTooLarge(f"{doing}: the record is too large (max.message.bytes)") from exc
    except (KafkaError, OSError) as exc:  # a time-out is an OSError
        raise BrokerUnavailable(f"{doing}: {reason_of(exc)}") from exc


@dataclass(frozen=True, slots=True)
class Reached:
    """How the servers of the settings, and the brokers that they name, are reached from here."""

    bootstrap: Mapping[str, ConnectionFault | None]
    """Address -> why that server cannot be used; None: it can."""
    advertised: Mapping[int, tuple[str, ConnectionFault | None]]
    """Broker -> the address that it advertises, and why it cannot be used there."""
    versions: Response | None
    """What one broker supports."""


async def reach(kafka: KafkaSettings) -> Reached:
    """Connect to each server and to each broker, one connection each.

    Raises:
        SettingsError: A certificate, key, password or token cannot be read.
    """
    hosts = [
        (host, port) for host, port, _ in collect_hosts(kafka.bootstrap_servers, randomize=False)
    ]
    replies = await asyncio.gather(*(ask_server(kafka, *host, Metadata([])) for host in hosts))
    bootstrap = {
        f"{host}:{port}": reply if isinstance(reply, ConnectionFault) else None
        for (host, port), reply in zip(hosts, replies, strict=True)
    }
    metadata: Any = next((r for r in replies if not isinstance(r, ConnectionFault)), None)
    if metadata is None:
        return Reached(bootstrap, {}, None)
    brokers = {number: (host, port) for number, host, port, *_ in sorted(metadata.brokers)}
    versions = await asyncio.gather(
        *(ask_server(kafka, *address, ApiVersionRequest()) for address in brokers.values())
    )
    advertised = {
        number: (f"{host}:{port}", reply if isinstance(reply, ConnectionFault) else None)
        for (number, (host, port)), reply in zip(brokers.items(), versions, strict=True)
    }
    first = next((each for each in versions if not isinstance(each, ConnectionFault)), None)
    return Reached(bootstrap, advertised, first)


async def check_advertised(kafka: KafkaSettings) -> None:
    """Check that a broker can be used at the address that it advertises, if any names itself.

    Raises:
        BrokerUnavailable: None can.
        SettingsError: A certificate, key, password or token cannot be read.
    """
    reached = await reach(kafka)
    if reached.advertised and all(fault for _, fault in reached.advertised.values()):
        raise _unusable(kafka, reached, "")


async def unreachable_error(kafka: KafkaSettings, exc: BaseException) -> BrokerUnavailable:
    """Return the error where Kafka cannot be used: the address, the reason, and what to check.

    aiokafka raises "unable to bootstrap" or "not ready" without the reason (such as a wrong
    password, or a name that does not resolve), so each server and each broker is connected to once
    more. `exc` is the reason if that succeeds.
    """
    return _unusable(kafka, await reach(kafka), reason_of(exc))


def _unusable(kafka: KafkaSettings, reached: Reached, otherwise: str) -> BrokerUnavailable:
    faults = {server: fault for server, fault in reached.bootstrap.items() if fault}
    reasons = [f"{server}: {fault.reason}" for server, fault in faults.items()]
    checks = [fault.check for fault in faults.values()]
    if not faults:
        for broker, (address, fault) in reached.advertised.items():
            if fault is not None:
                reasons.append(
                    f"broker {broker} advertises {address}, which cannot be used from here: "
                    f"{fault.reason}"
                )
                checks.append(fault.check or "advertised.listeners of the broker, and the network")
    if not all(checks) or not checks:
        checks = general_checks(kafka)
    return BrokerUnavailable(
        f"Kafka cannot be used: {'; '.join(reasons) or otherwise}. "
        f"Check {', '.join(dict.fromkeys(checks))}."
    )


async def ask_server(
    kafka: KafkaSettings, host: str, port: int, request: Request[Any]
) -> Response | ConnectionFault:
    """Return the reply of one server, on a connection of its own, or why it cannot be used.

    Raises:
        SettingsError: A certificate, key, password or token cannot be read.
    """
    options = client_options(kafka)
    options.pop("bootstrap_servers")
    try:
        async with asyncio.timeout(DIAGNOSIS_S):
            conn = await create_conn(host, port, **options)
            try:
                return await conn.send(request)
            finally:
                conn.close()
    except (KafkaError, OSError) as exc:
        return connection_fault(exc, kafka)


async def start_client(client: Any, kafka: KafkaSettings) -> None:
    """Start an aiokafka consumer or producer that knows its own topics only.

    aiokafka waits for brokers whose advertised address nobody can use, as for any that is away: so
    a start that takes longer than `PROMPT_S` is looked into.

    Raises:
        BrokerUnavailable: Kafka cannot be used; says what to check. The client is stopped.
    """
    keep_to_own_topics(client)
    starting = asyncio.ensure_future(client.start())
    try:
        async with asyncio.timeout(kafka.request_timeout_s):
            await asyncio.wait({starting}, timeout=PROMPT_S)
            if not starting.done():
                await check_advertised(kafka)
            await asyncio.shield(starting)
    except BaseException as exc:
        starting.cancel()
        await asyncio.wait({starting})
        await stop_client(client)
        if isinstance(exc, (KafkaError, OSError)):  # a time-out is an OSError
            raise await unreachable_error(kafka, exc) from exc
        raise


async def stop_client(client: Any) -> None:
    """Stop an aiokafka consumer or producer within `CLOSE_S`; raise none of its errors.

    When a fetch has just failed, aiokafka's `stop` is cancelled from inside before it has closed
    the consumer's connections.
    """
    stopping = asyncio.ensure_future(client.stop())
    await asyncio.wait({stopping}, timeout=CLOSE_S)
    if not stopping.done():
        stopping.cancel()
        log(CLIENT_ABANDONED, waited_s=CLOSE_S)
    elif stopping.cancelled() or stopping.exception():
        log(CLIENT_STOP_FAILED, reason=repr(stopping))
    else:
        return
    await asyncio.wait({asyncio.ensure_future(inner_client(client).close())}, timeout=CLOSE_S)


@dataclass(frozen=True, slots=True)
class TopicsMetadata:
    """What a broker knows about the requested topics."""

    leaders: Mapping[str, Mapping[int, int]]
    """Each topic that exists -> partition -> broker, or `NO_LEADER`."""
    errors: Mapping[str, str]
    """Topics without metadata -> why; a topic that is in neither mapping does not exist."""
    internal: frozenset[str] = frozenset()
    """Topics that are internal to Kafka."""
    racks: Mapping[str, Mapping[int, Sequence[str]]] = field(default_factory=dict)
    """Topic -> partition -> racks of its replicas, the preferred leader's first, "" where that is
    not known; empty unless brokers are in several."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Topic -> its id, unique also among topics of its name; if they were asked for, and the
    cluster has ids (Kafka 2.8)."""


class ClusterClient:
    """Requests to brokers, on connections of their own.

    (On a connection with a fetch under way every response waits for up to 500 ms.)
    No request creates a topic. Connects when first used; after all brokers have moved, it connects
    again through the bootstrap servers. Close it at the end.
    """

    def __init__(self, kafka: KafkaSettings, *, broker_timeout_s: float | None = None) -> None:
        """Wait up to `broker_timeout_s` for each response; None: the settings' request timeout."""
        self._kafka = kafka
        self._broker_timeout_s = broker_timeout_s or kafka.request_timeout_s
        self._client: AIOKafkaClient | None = None
        self._answering: int | None = None  # the broker that answered last
        self._rack_of: dict[int, str] = {}  # of every broker that was ever seen: some may be away
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Connect now.

        Raises:
            BrokerUnavailable: No broker answers; the message names what to check.
        """
        await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections; the next request opens them again."""
        client, self._client = self._client, None
        if client:
            await client.close()

    async def _opened(self) -> AIOKafkaClient:
        async with self._opening:
            if self._client is None:
                options = client_options(self._kafka)
                options["request_timeout_ms"] = round(self._broker_timeout_s * 1000)
                client = AIOKafkaClient(**options)
                try:
                    await client.bootstrap()
                except (KafkaError, OSError) as exc:
                    await client.close()
                    raise await unreachable_error(self._kafka, exc) from exc
                self._client = client
            return self._client

    async def send_request(self, broker: int, request: Request[Any]) -> Response:
        """Send one request to one broker; raise `BrokerUnavailable` or `UnsupportedVersion`."""
        client = await self._opened()
        with translate_errors(f"ask broker {broker}"):
            try:
                return await client.send(broker, request)
            except (IncompatibleBrokerVersion, NotImplementedError) as exc:
                raise UnsupportedVersion(f"broker {broker} is too old or too new: {exc}") from exc

    async def send_to_controller(self, request: Request[Any]) -> Response:
        """Send a request that changes topics to the controller; raise like `send_request`."""
        return await self.send_request((await self._metadata(())).controller_id, request)

    async def ask_any(self, request: Request[Any]) -> Response:
        """Send a request that any broker can answer; raise like `send_request`, and say why."""
        client = await self._opened()
        brokers = [broker.nodeId for broker in client.cluster.brokers()]
        # The broker that answered last comes first: a random one may be one that hangs.
        tries = sorted(random.sample(brokers, len(brokers)), key=lambda b: b != self._answering)
        faults = []
        for broker in tries:
            try:
                answer = await self.send_request(broker, request)
            except UnsupportedVersion:
                raise  # the others are of the same version, or will be
            except BrokerUnavailable as exc:
                faults.append(str(exc))
            else:
                self._answering = broker
                return answer
        await self.close()  # so that the next request begins at the bootstrap servers
        raise await unreachable_error(self._kafka, BrokerUnavailable("; ".join(faults)))

    async def _metadata(
        self, topics: Collection[str] | None, ids: dict[str, str] | None = None
    ) -> Response:
        """Return metadata of topics; `ids` gets those of the topics, if it is given."""
        names = None if topics is None else sorted(topics)
        if names is None or ids is None:
            metadata = await self.ask_any(Metadata(names))
        else:
            metadata = await self.ask_any(MetadataWithIds(names))
            ids |= take_ids(metadata)
        if self._client:  # not closed meanwhile
            named, metadata.topics = metadata.topics, []
            # Updates the brokers' addresses; without topics, because missing ones would be logged.
            self._client.cluster.update_metadata(metadata)
            metadata.topics = named
        return metadata

    async def broker_ids(self) -> tuple[int, ...]:
        """Return the brokers that are alive, sorted; raise `BrokerUnavailable`."""
        return tuple(sorted(row[0] for row in (await self._metadata(())).brokers))

    async def brokers(self) -> int:
        """Return how many brokers are alive; raise `BrokerUnavailable`."""
        return len(await self.broker_ids())

    async def topics(
        self, names: Collection[str] | None, *, with_ids: bool = False
    ) -> TopicsMetadata:
        """Return the leaders of partitions, of every topic if None; raise `BrokerUnavailable`.

        Args:
            names: Of the topics.
            with_ids: Whether to ask for the ids of topics that are named, too.
        """
        if names is not None and not names:
            return TopicsMetadata({}, {})
        leaders: dict[str, dict[int, int]] = {}
        errors: dict[str, str] = {}
        internal = set()
        ids: dict[str, str] = {}
        metadata = await self._metadata(names, ids if with_ids else None)
        self._rack_of |= {broker: rack for broker, _, _, rack in metadata.brokers if rack}
        several, racks = len({*self._rack_of.values()}) > 1, dict[str, dict[int, list[str]]]()
        for code, topic, is_internal, partitions in metadata.topics:
            error = for_code(code)
            if error in (NoError, LeaderNotAvailableError):  # the latter: being created
                leaders[topic] = {p: leader for _, p, leader, *_ in partitions}
                if several:
                    racks[topic] = {
                        row[1]: [self._rack_of.get(broker, "") for broker in replicas_in(row)]
                        for row in partitions
                    }
                if is_internal:
                    internal.add(topic)
            elif error is not UnknownTopicOrPartitionError:
                errors[topic] = f"{error.__name__}: {error.description}"
        return TopicsMetadata(leaders, errors, frozenset(internal), racks, ids)

    async def leaders(self, topic: str) -> Mapping[int, int]:
        """Return the leader of each partition of one topic; empty if it does not exist.

        Raises:
            BrokerUnavailable: No broker answers, or describing the topic is not permitted.
        """
        topics = await self.topics([topic])
        if why := topics.errors.get(topic):
            raise BrokerUnavailable(f"Kafka does not describe topic {topic}: {why}")
        return topics.leaders.get(topic, {})

    async def replicas(self, topic: str) -> int:
        """Return the number of replicas of a topic, of the partition with the fewest.

        Raises:
            BrokerUnavailable: No broker answers.
            TopicMissing: There is no such topic.
        """
        ((_, _, _, partitions),) = (await self._metadata([topic])).topics
        if (fewest := min((len(replicas_in(row)) for row in partitions), default=None)) is None:
            raise TopicMissing(f"no such topic: {topic}")
        return fewest

    async def cluster_id(self) -> str:
        """Return the cluster's id; raise `BrokerUnavailable`."""
        return str((await self._metadata(())).cluster_id or "")

    async def topic_id(self, topic: str, broker: int | None = None) -> str | None:
        """Return the id of a topic, unique also among topics of its name; None before Kafka 2.8.

        Args:
            topic: Its name.
            broker: The broker to ask; None: any.

        Raises:
            BrokerUnavailable: No broker answers, or describing the topic is not permitted.
            TopicMissing: There is no such topic.
        """
        request = TopicId(topic)
        answer = await (
            self.ask_any(request) if broker is None else self.send_request(broker, request)
        )
        error = for_code(answer.error_code)
        if error is UnknownTopicOrPartitionError:
            raise TopicMissing(f"no such topic: {topic}")
        if error not in (NoError, LeaderNotAvailableError):
            raise BrokerUnavailable(f"Kafka does not describe topic {topic}: {error.__name__}")
        return topic_id(answer)

    async def topic_ids(self, topics: Collection[str], broker: int) -> dict[str, str | None]:
        """Return the ids of those of these topics that a broker describes, in one request.

        Raises:
            BrokerUnavailable: It does not answer.
        """
        if len(topics) == 1:  # a smaller response, whose partitions are not decoded
            (topic,) = topics
            try:
                return {topic: await self.topic_id(topic, broker)}
            except TopicMissing:
                return {}
        answer = await self.send_request(broker, MetadataWithIds(sorted(topics)))
        ids = take_ids(answer)
        described = (NoError.errno, LeaderNotAvailableError.errno)
        return {topic: ids.get(topic) for code, topic, *_ in answer.topics if code in described}

    async def offsets(
        self,
        broker: int,
        partitions: Mapping[str, Collection[int]],
        when: int,
        *,
        stable: bool = False,
    ) -> dict[tuple[str, int], int]:
        """Return the `LATEST` or `EARLIEST` offsets of partitions, or of a time, ms since 1970.

        Partitions that `broker` does not lead are left out. A log without a record of the time or
        later has -1. Raises `BrokerUnavailable`.

        Args:
            broker: Who is asked.
            partitions: Topic -> numbers of partitions.
            when: Which offsets.
            stable: Whether the latest one is where the first open transaction begins.
        """
        wanted = [(topic, [(p, when) for p in numbers]) for topic, numbers in partitions.items()]
        answer = await self.send_request(broker, ListOffsets(wanted, stable=stable))
        return {
            (topic, partition): offset
            for topic, rows in answer.topics
            for partition, code, _timestamp, offset in rows
            if code == NoError.errno
        }
