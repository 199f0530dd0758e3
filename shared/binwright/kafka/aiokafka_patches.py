"""What binwright replaces or uses of aiokafka's clients, as of aiokafka 0.14, and why.

- `keep_to_own_topics`: a client that uses no topics yet requests the metadata of all of them
  (aio-libs/aiokafka#440 mended its start alone), and each refresh creates a used topic anew that
  was deleted, with the broker's default settings. No option turns that off.
- `abandon_producer`: without brokers `stop` waits for ever, since an idempotent batch never expires
  (aio-libs/aiokafka#1101).
- `fetcher_has_died`: a fetcher whose task has ended is not started again, and no public attribute
  tells (aio-libs/aiokafka#983, #1037).
- `hasten_first_fetches`: a fetch waits until the broker has `fetch_min_bytes`, which a consumer has
  for all its fetches alike; a partition that has just been started should not wait for them.
- `AuthenticatedConnection`: a client keeps the password that it was made with. Where that is a
  function, each connection calls it, so that a password in a file may change. A refused token
  counts as accepted until the broker hangs up, because its reason has to be asked for (RFC 7628).
  And a broker hangs up where a session has ended, whatever is sent (KIP-368): a request that comes
  later than `SESSION_SHARE` of it goes over another connection. An error of gssapi is none that
  aiokafka catches.
- `_Protocol`: why a connection was lost is an exception of a future that nobody awaits. Where the
  garbage collector frees it before its protocol, asyncio reports it with a traceback.
- `inner_client`, `known_topics`: a consumer's connections and metadata have no public name, as a
  producer's have.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Collection
from contextlib import suppress
from typing import Any

import aiokafka.conn
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import SaslAuthenticateRequest
from aiokafka.protocol.api import Request
from aiokafka.protocol.metadata import MetadataRequest

from binwright.kafka.kerberos import translate_gss_errors

SESSION_SHARE = 0.85
"""How much of a session is used: what is sent last needs its time to arrive."""


class _TokenAuthenticator(aiokafka.conn.OAuthAuthenticator):  # type: ignore[misc]  # no types
    """Sends a token, and what makes a broker say why it refuses it."""

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        if payload:
            return b"\x01", True
        sent: tuple[bytes, bool] | None = await super().step(payload)
        return sent


class _KerberosAuthenticator(aiokafka.conn.SaslGSSAPIAuthenticator):  # type: ignore[misc]  # no types
    """Fails as connections do where there is no ticket, so clients try again."""

    _principal: str

    def _step(self, payload: bytes | None) -> tuple[bytes, bool] | None:  # in a thread
        with translate_gss_errors(self._principal):
            sent: tuple[bytes, bool] | None = super()._step(payload)
        return sent


class AuthenticatedConnection(aiokafka.conn.AIOKafkaConnection):  # type: ignore[misc]  # has no types
    """What every client opens: its password may be a function, its refused token has a reason.

    It counts as lost before its session ends, and closes once all requests have their responses.
    """

    _sasl_plain_password: Any
    _sasl_oauth_token_provider: Any
    _renewed_at = math.inf  # s, monotonic

    def connected(self) -> bool:
        """Whether the next request may be sent here; clients ask before each one."""
        if not super().connected():
            return False
        if time.monotonic() < self._renewed_at:
            return True
        if self._requests:
            *_, (_, _, last) = self._requests
            last.add_done_callback(self._retire)
        else:
            self._retire()
        return False

    def _retire(self, _last: object = None) -> None:
        self.close(reason=aiokafka.conn.CloseReason.SHUTDOWN)

    def send(self, request: Request[Any], expect_response: bool = True) -> Awaitable[Any]:
        """Fit `AIOKafkaConnection`; the response to a login has the length of the session."""
        sent: Awaitable[Any] = super().send(request, expect_response)
        return self._note_session(sent) if isinstance(request, SaslAuthenticateRequest) else sent

    async def _note_session(self, sent: Awaitable[Any]) -> Any:
        response = await sent
        if lifetime_ms := getattr(response, "session_lifetime_ms", 0):  # brokers before 2.2: none
            self._renewed_at = time.monotonic() + SESSION_SHARE * lifetime_ms / 1000
        return response

    async def _do_sasl_handshake(self) -> None:
        if callable(self._sasl_plain_password):
            self._sasl_plain_password = self._sasl_plain_password()
        await super()._do_sasl_handshake()

    def authenticator_oauth(self) -> _TokenAuthenticator:
        """Fit `AIOKafkaConnection`."""
        return _TokenAuthenticator(sasl_oauth_token_provider=self._sasl_oauth_token_provider)

    def authenticator_gssapi(self) -> _KerberosAuthenticator:
        """Fit `AIOKafkaConnection`."""
        return _KerberosAuthenticator(loop=self._loop, principal=self.sasl_principal)


class _Protocol(aiokafka.conn.AIOKafkaProtocol):  # type: ignore[misc]  # has no types
    """What reads a connection: its end is known from the requests that fail."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        closed = self._get_close_waiter(None)
        if closed.done() and not closed.cancelled():
            closed.exception()  # so it counts as retrieved


aiokafka.conn.AIOKafkaProtocol = _Protocol  # where a connection looks
aiokafka.conn.AIOKafkaConnection = AuthenticatedConnection  # where `create_conn` looks


def inner_client(user: Any) -> AIOKafkaClient:
    """Return the client of an aiokafka consumer or producer."""
    return user.client if hasattr(user, "client") else user._client  # noqa: SLF001


def keep_to_own_topics(user: Any) -> None:
    """Have a consumer or producer request its own topics only, and create none."""
    client: AIOKafkaClient = inner_client(user)

    async def update(cluster: ClusterMetadata, topics: Collection[str] | None) -> bool:
        request = MetadataRequest(sorted(topics or ()), allow_auto_topic_creation=False)
        brokers = [broker.nodeId for broker in client.cluster.brokers()]
        for broker in random.sample(brokers, len(brokers)):
            try:
                metadata = await client.send(broker, request)
            except KafkaError:
                continue  # another broker may answer
            cluster.update_metadata(metadata)
            return True
        cluster.failed_update(None)
        return False

    client._metadata_update = update  # noqa: SLF001


def known_topics(consumer: AIOKafkaConsumer) -> set[str]:
    """Return the topics in a consumer's metadata."""
    topics: set[str] = inner_client(consumer).cluster.topics(exclude_internal_topics=False)
    return topics


def fetcher_has_died(consumer: AIOKafkaConsumer) -> bool:
    """Return whether a consumer fetches no more; one that has not started has no fetcher yet."""
    fetching = getattr(consumer, "_fetcher", None)
    return fetching is not None and fetching.error_future.done()


def hasten_first_fetches(consumer: AIOKafkaConsumer) -> set[KafkaPartition]:
    """Return a set for partitions whose next fetch should return as soon as it has anything.

    A fetch takes the partitions that it is for out of the set.
    """
    fetcher: Any = consumer._fetcher  # noqa: SLF001 - has no public name
    build = fetcher._get_actions_per_node  # noqa: SLF001
    first: set[KafkaPartition] = set()

    def build_hastened(assignment: Any) -> Any:
        actions = build(assignment)
        for _, request in actions[0] if first else ():
            fetched = {
                KafkaPartition(t, number) for t, some in request.topics for number, *_ in some
            }
            if not first.isdisjoint(fetched):
                request._min_bytes = 1  # noqa: SLF001
                first.difference_update(fetched)
        return actions

    fetcher._get_actions_per_node = build_hastened  # noqa: SLF001
    return first


async def abandon_producer(producer: AIOKafkaProducer, patience_s: float) -> None:
    """Fail what a producer still has to send, and close its connections.

    The sender is closed first, within `patience_s`, as it may still use a batch that is failed.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await producer._sender.close()  # noqa: SLF001
    producer._message_accumulator.fail_all(KafkaError("given up at the end"))  # noqa: SLF001
    await producer.client.close()
