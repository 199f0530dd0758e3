"""Reads and commits a group's offsets: for monitoring tools and a quick start, not authoritative.

Uses requests of its own, not a consumer. So a group that this user may not write, or whose
coordinator is unavailable, does not stop reading. An error is never taken for "no offsets", unlike
in aiokafka's admin client, which ignores that a coordinator has moved.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Any

import orjson
from aiokafka.errors import NoError, for_code
from aiokafka.protocol.api import Request, Response
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest

from binwright.kafka.client import ClusterClient
from binwright.kafka.group_requests import find_coordinator
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset

RETRY_S = 0.1
_NO_GENERATION, _NO_MEMBER, _DEFAULT_RETENTION = -1, "", -1


class GroupOffsets:
    """The offsets of one group. A call takes `limit_s` seconds at most, including its retries.

    `via` is any live broker; it names the group's coordinator.
    """

    def __init__(self, cluster: ClusterClient, group: str, limit_s: float) -> None:
        self._cluster, self._group, self._limit_s = cluster, group, limit_s
        self._coordinator: int | None = None

    async def read(
        self, partitions: Collection[TopicPartition], via: int
    ) -> dict[TopicPartition, GroupOffset]:
        """Return the group's offsets of these partitions that binwright committed.

        Raises:
            BrokerUnavailable: Kafka does not reply in time, or refuses.
        """
        wanted = [(topic, [p.partition for p in some]) for topic, some in _by_topic(partitions)]
        reply = await self._send(via, OffsetFetchRequest(self._group, wanted), _fetch_codes)
        committed = {
            TopicPartition(topic, number): _parsed(offset, metadata)
            for topic, rows in reply.topics
            for number, offset, metadata, _ in rows
        }
        return {partition: offset for partition, offset in committed.items() if offset}

    async def write(self, offsets: Mapping[TopicPartition, GroupOffset], via: int) -> None:
        """Commit these; raise like `read`, and then it is unknown whether they are committed."""
        rows = [
            (topic, [(p.partition, offsets[p].offset, _metadata(offsets[p])) for p in some])
            for topic, some in _by_topic(offsets)
        ]
        request = OffsetCommitRequest(
            self._group, _NO_GENERATION, _NO_MEMBER, _DEFAULT_RETENTION, rows
        )
        await self._send(via, request, _commit_codes)

    async def _send(
        self, via: int, request: Request[Any], codes: Callable[[Response], Iterable[int]]
    ) -> Response:
        fault = "no reply in time"
        try:
            async with asyncio.timeout(self._limit_s):
                while True:
                    try:
                        reply = await self._cluster.send_request(
                            await self._coordinator_via(via), request
                        )
                        self._check(codes(reply))
                    except _Retriable as exc:
                        fault, self._coordinator = str(exc), None  # look the coordinator up again
                        await asyncio.sleep(RETRY_S)
                    except BrokerUnavailable:
                        self._coordinator = None
                        raise
                    else:
                        return reply
        except TimeoutError as exc:
            raise BrokerUnavailable(f"offsets of group {self._group}: {fault}") from exc

    async def _coordinator_via(self, via: int) -> int:
        if self._coordinator is None:
            ask = partial(self._cluster.send_request, via)
            reply = await find_coordinator(self._group, ask)
            self._check([reply.error_code])
            self._coordinator = reply.broker
        return self._coordinator

    def _check(self, codes: Iterable[int]) -> None:
        for error in map(for_code, codes):
            if error is not NoError:
                text = f"{error.__name__}: {error.description}"
                if error.retriable:
                    raise _Retriable(text)
                raise BrokerUnavailable(f"offsets of group {self._group}: {text}")


class _Retriable(Exception):
    """An error that Kafka marks as retriable."""


def _fetch_codes(reply: Response) -> Iterable[int]:
    yield reply.error_code
    yield from (code for _, rows in reply.topics for *_, code in rows)


def _commit_codes(reply: Response) -> Iterable[int]:
    yield from (code for _, rows in reply.topics for *_, code in rows)


def _by_topic(
    partitions: Collection[TopicPartition],
) -> Iterable[tuple[str, list[TopicPartition]]]:
    for topic, some in groupby(sorted(partitions), key=lambda p: p.topic):
        yield topic, list(some)


def _metadata(offset: GroupOffset) -> str:
    return orjson.dumps({"i": offset.topic_id}).decode()


def _parsed(offset: int, metadata: str | None) -> GroupOffset | None:
    """Return the offset if binwright committed it, None for one of another tool."""
    try:
        match orjson.loads(metadata or ""):
            case {"i": str() | None as topic_id} if offset >= 0:
                return GroupOffset(offset, topic_id)
    except orjson.JSONDecodeError:
        return None
    return None
