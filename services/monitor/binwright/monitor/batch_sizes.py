"""Estimates bytes per record where log sizes are unavailable: samples headers of batches.

The sampled batch is that of a random offset among those new since the last sample. So a batch is
sampled in proportion to its records, and the mean of bytes / offsets over samples is that of the
log.
"""

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiokafka.errors import NoError, for_code
from aiokafka.protocol.fetch import FetchRequest

from binwright.kafka.client import ClusterClient

SAMPLES = 50
"""At most, per broker and pass: the broker responds with a whole batch."""
GOLDEN_RATIO = 0.6180339887498949
_HEADER = struct.Struct(">qi4xb6xi")  # base offset, bytes that follow, format, last offset's delta
_BEFORE = 12  # bytes before those that the length counts
_FORMAT = 2  # since Kafka 0.11; older ones have no such header

Key = tuple[str, int]
LogChange = Callable[[str, object, str | None], None]
NO_BATCHES = "this user needs the right READ on the topic too; without it its rates are not known"


def bytes_per_offset(records: bytes) -> float | None:
    """Return the first batch's bytes per offset; None if its header is incomplete or older."""
    if len(records) < _HEADER.size:
        return None
    _, length, version, delta = _HEADER.unpack_from(records)
    return (_BEFORE + length) / (delta + 1) if version == _FORMAT else None


class BatchSampler:
    """Samples batches among the records new since the last sample of each partition."""

    def __init__(self, cluster: ClusterClient, log_change: LogChange) -> None:
        """Sample through `cluster`; `log_change` logs refusals when they begin and end."""
        self._cluster, self._log_change = cluster, log_change
        self._ends: dict[Key, int] = {}
        self._fraction = 0.0

    async def measure_batches(
        self, broker: int, wanted: Sequence[Key], ends: Mapping[Key, int]
    ) -> Mapping[Key, float]:
        """Return bytes per offset of a recent batch of some of the partitions `broker` leads.

        Raises:
            BrokerUnavailable: It does not answer.
        """
        keys = [key for key in wanted if ends.get(key)][:SAMPLES]
        found = await asyncio.gather(*(self._sample(broker, key, ends[key]) for key in keys))
        return {key: ratio for key, ratio in zip(keys, found, strict=True) if ratio is not None}

    async def _sample(self, broker: int, key: Key, end: int) -> float | None:
        topic, partition = key
        since = min(self._ends.get(key, end - 1), end - 1)
        self._ends[key] = end
        self._fraction = (self._fraction + GOLDEN_RATIO) % 1.0
        offset = since + int(self._fraction * (end - since))
        # One partition per request: of the first one the broker sends a whole batch, whatever the
        # limit. No wait: the records exist, unless retention has deleted them.
        request = FetchRequest(0, 0, 1, 0, [(topic, [(partition, offset, 1)])])
        reply: Any = await self._cluster.send_request(broker, request)
        for _, rows in reply.topics:
            for _, code, *_, records in rows:
                error = for_code(code)
                denied = error.__name__ == "TopicAuthorizationFailedError"
                self._log_change("batches.unavailable", topic, NO_BATCHES if denied else None)
                return bytes_per_offset(records) if error is NoError and records else None
        return None
