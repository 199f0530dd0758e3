"""How long decoding takes and what it finds bad, by topic: for metrics."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from threading import Lock
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binwright.protocol.columns import Columns
from binwright.protocol.ports.lake import ValueDecoder


class DecodingCounts:
    """Sums over all decoders of a process, which work in several threads."""

    def __init__(self) -> None:
        self._seconds = defaultdict[str, float](float)
        self._bad: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def counted(self, topic: str, decoder: ValueDecoder) -> ValueDecoder:
        """Return the decoder of a topic's records, whose work is added to the sums."""
        return _CountedDecoder(self, topic, decoder)

    def add(self, topic: str, seconds: float, bad: Mapping[str, int]) -> None:
        """Add one call: how long it took, and how many records are bad, by kind."""
        with self._lock:
            self._seconds[topic] += seconds
            self._bad.update({(topic, kind): count for kind, count in bad.items()})

    def snapshot(self) -> tuple[Mapping[str, float], Mapping[tuple[str, str], int]]:
        """Return the sums by now: seconds by topic, bad records by topic and kind."""
        with self._lock:
            return dict(self._seconds), dict(self._bad)


class _CountedDecoder:
    def __init__(self, counts: DecodingCounts, topic: str, decoder: ValueDecoder) -> None:
        self._counts, self._topic, self._decoder = counts, topic, decoder
        self.columns: Columns = decoder.columns
        self.settings = decoder.settings

    def decode(self, values: Any, headers: Any = None, keys: Any = None) -> tuple[Any, Any]:
        began = time.perf_counter()
        rows, bad = self._decoder.decode(values, headers, keys)
        self._counts.add(self._topic, time.perf_counter() - began, _kinds(bad))
        return rows, bad


def _kinds(bad: "pa.Array[Any]") -> Mapping[str, int]:
    if bad.null_count == len(bad):
        return MappingProxyType({})
    kinds = pc.value_counts(pc.struct_field(bad.drop_null(), "kind"))
    return {each["values"]: each["counts"] for each in kinds.to_pylist()}
