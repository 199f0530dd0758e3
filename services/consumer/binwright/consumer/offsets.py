"""A group's committed offsets: for people's tools and a quick start, never the truth.

Asked for and committed by request, not through a consumer. So a group that we may not write, or
whose coordinator is away, stops no reading; and an error is never taken for "no offsets", as by
aiokafka's admin client, which overlooks a coordinator that has moved.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import groupby
from typing import Any

import orjson
from aiokafka.errors import NoError, for_code
from aiokafka.protocol.api import Request, Response
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest

from binwright.core.errors import BrokerUnavailable
from binwright.core.model import TopicPartition
from binwright.core.ports import GroupOffset
from binwright.shell.broker import Cluster

RETRY_S = 0.1
_OF_A_GROUP = 0  # Kafka's word for what kind of coordinator is looked for
_NOBODY, _NO_MEMBER, _AS_THE_BROKER_LIKES = -1, "", -1


class GroupOffsets:
    """The offsets of one group. A call takes `limit_s` seconds at most, with all its retries.

    `via` is any broker that is alive; it tells who keeps the group's offsets.
    """

    def __init__(self, cluster: Cluster, group: str, limit_s: float) -> None:
        self._cluster, self._group, self._limit_s = cluster, group, limit_s
        self._keeper: int | None = None

    async def read(
        self, partitions: Collection[TopicPartition], via: int
    ) -> dict[TopicPartition, GroupOffset]:
        """Return our own among the group's offsets of these partitions.

        Raises:
            BrokerUnavailable: Kafka does not say, or we may not know.
        """
        wanted = [(topic, [p.partition for p in some]) for topic, some in _by_topic(partitions)]
        answer = await self._ask(via, OffsetFetchRequest(self._group, wanted), _read_codes)
        found = {
            TopicPartition(topic, number): _parsed(offset, metadata)
            for topic, rows in answer.topics
            for number, offset, metadata, _ in rows
        }
        return {partition: offset for partition, offset in found.items() if offset}

    async def write(self, offsets: Mapping[TopicPartition, GroupOffset], via: int) -> None:
        """Commit these; raises like `read`, and then it may be done or not."""
        rows = [
            (topic, [(p.partition, offsets[p].offset, _metadata(offsets[p])) for p in some])
            for topic, some in _by_topic(offsets)
        ]
        request = OffsetCommitRequest(self._group, _NOBODY, _NO_MEMBER, _AS_THE_BROKER_LIKES, rows)
        await self._ask(via, request, _written_codes)

    async def _ask(
        self, via: int, request: Request[Any], codes: Callable[[Response], Iterable[int]]
    ) -> Response:
        fault = "no answer in time"
        try:
            async with asyncio.timeout(self._limit_s):
                while True:
                    try:
                        answer = await self._cluster.ask(await self._found(via), request)
                        self._check(codes(answer))
                    except _Passing as exc:
                        fault, self._keeper = str(exc), None  # ask again who keeps them
                        await asyncio.sleep(RETRY_S)
                    except BrokerUnavailable:
                        self._keeper = None
                        raise
                    else:
                        return answer
        except TimeoutError as exc:
            raise BrokerUnavailable(f"offsets of group {self._group}: {fault}") from exc

    async def _found(self, via: int) -> int:
        if self._keeper is None:
            answer = await self._cluster.ask(via, FindCoordinatorRequest(self._group, _OF_A_GROUP))
            self._check([answer.error_code])
            self._keeper = answer.coordinator_id
        return self._keeper

    def _check(self, codes: Iterable[int]) -> None:
        for error in map(for_code, codes):
            if error is not NoError:
                told = f"{error.__name__}: {error.description}"
                if error.retriable:
                    raise _Passing(told)
                raise BrokerUnavailable(f"offsets of group {self._group}: {told}")


class _Passing(Exception):
    """An error of which Kafka says: try again."""


def _read_codes(answer: Response) -> Iterable[int]:
    yield answer.error_code
    yield from (code for _, rows in answer.topics for *_, code in rows)


def _written_codes(answer: Response) -> Iterable[int]:
    yield from (code for _, rows in answer.topics for *_, code in rows)


def _by_topic(
    partitions: Collection[TopicPartition],
) -> Iterable[tuple[str, list[TopicPartition]]]:
    for topic, some in groupby(sorted(partitions), key=lambda p: p.topic):
        yield topic, list(some)


def _metadata(offset: GroupOffset) -> str:
    return orjson.dumps({"i": offset.topic_id}).decode()


def _parsed(offset: int, metadata: str | None) -> GroupOffset | None:
    """Return the offset, if it is ours; other tools may have committed what they like.

    Version 0.1 told more beside the topic's id: which version of which table it was.
    """
    try:
        match orjson.loads(metadata or ""):
            case {"i": str() | None as topic_id} if offset >= 0:
                return GroupOffset(offset, topic_id)
    except orjson.JSONDecodeError:
        return None
    return None
