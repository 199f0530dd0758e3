"""Bytes per record where sizes are not told: a batch is fetched now and then, and its header read.

A batch is drawn by one of the offsets that are new since the last look, so that large batches come
up as often as their records do: the mean of bytes / offsets over such draws is that of the log.
"""

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiokafka.errors import NoError, for_code
from aiokafka.protocol.fetch import FetchRequest

from binwright.shell.broker import Cluster

LOOKS = 50
"""At most, at each broker in each pass: the broker answers with a whole batch."""
GOLDEN = 0.6180339887498949
_HEADER = struct.Struct(">qi4xb6xi")  # base offset, bytes that follow, format, last offset's delta
_BEFORE = 12  # bytes that the length does not count
_FORMAT = 2  # since Kafka 0.11; older ones have no such header

Key = tuple[str, int]
Tell = Callable[[str, object, str | None], None]
NO_BATCHES = "this user needs the right READ on the topic too; without it its rates are not known"


def bytes_per_offset(records: bytes) -> float | None:
    """Return what the first batch weighs for each offset it uses; None if it is not whole."""
    if len(records) < _HEADER.size:
        return None
    _, length, version, delta = _HEADER.unpack_from(records)
    return (_BEFORE + length) / (delta + 1) if version == _FORMAT else None


class Scales:
    """Weighs batches; remembers how far it has looked."""

    def __init__(self, cluster: Cluster, tell: Tell) -> None:
        """Ask `cluster`; `tell` logs what is refused."""
        self._cluster, self._tell = cluster, tell
        self._ends: dict[Key, int] = {}
        self._draw = 0.0

    async def weigh(
        self, broker: int, wanted: Sequence[Key], ends: Mapping[Key, int]
    ) -> Mapping[Key, float]:
        """Return bytes per offset of a recent batch of some of the partitions `broker` leads.

        Raises:
            BrokerUnavailable: It does not answer.
        """
        keys = [key for key in wanted if ends.get(key)][:LOOKS]
        found = await asyncio.gather(*(self._look(broker, key, ends[key]) for key in keys))
        return {key: price for key, price in zip(keys, found, strict=True) if price is not None}

    async def _look(self, broker: int, key: Key, end: int) -> float | None:
        topic, partition = key
        since = min(self._ends.get(key, end - 1), end - 1)
        self._ends[key] = end
        self._draw = (self._draw + GOLDEN) % 1.0
        offset = since + int(self._draw * (end - since))
        # One partition a request: of the first the broker sends a whole batch, however small the
        # limit. Nothing is waited for: it is there, or retention was quicker.
        request = FetchRequest(0, 0, 1, 0, [(topic, [(partition, offset, 1)])])
        answer: Any = await self._cluster.ask(broker, request)
        for _, rows in answer.topics:
            for _, code, *_, records in rows:
                refused = for_code(code)
                denied = refused.__name__ == "TopicAuthorizationFailedError"
                self._tell("batches.untold", topic, NO_BATCHES if denied else None)
                return bytes_per_offset(records) if refused is NoError and records else None
        return None
