"""How long decoding takes and what it finds bad, by table: for metrics."""

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
from binwright.runtime.settings import Target


class DecodingCounts:
    """Sums over all decoders of a process, which work in several threads."""

    def __init__(self) -> None:
        self._seconds = defaultdict[Target, float](float)
        self._bad: Counter[tuple[Target, str]] = Counter()
        self._lock = Lock()

    def counted(self, target: Target, decoder: ValueDecoder) -> ValueDecoder:
        """Return the decoder of a table's records, whose work is added to the sums."""
        return _CountedDecoder(self, target, decoder)

    def add(self, target: Target, seconds: float, bad: Mapping[str, int]) -> None:
        """Add one call: how long it took, and how many records are bad, by kind."""
        with self._lock:
            self._seconds[target] += seconds
            self._bad.update({(target, kind): count for kind, count in bad.items()})

    def snapshot(self) -> tuple[Mapping[Target, float], Mapping[tuple[Target, str], int]]:
        """Return the sums by now: seconds by table, bad records by table and kind."""
        with self._lock:
            return dict(self._seconds), dict(self._bad)


class _CountedDecoder:
    def __init__(self, counts: DecodingCounts, target: Target, decoder: ValueDecoder) -> None:
        self._counts, self._target, self._decoder = counts, target, decoder
        self.columns: Columns = decoder.columns
        self.settings = decoder.settings

    def decode(self, values: Any, headers: Any = None, keys: Any = None) -> tuple[Any, Any]:
        began = time.perf_counter()
        rows, bad = self._decoder.decode(values, headers, keys)
        self._counts.add(self._target, time.perf_counter() - began, _kinds(bad))
        return rows, bad


def _kinds(bad: "pa.Array[Any]") -> Mapping[str, int]:
    if bad.null_count == len(bad):
        return MappingProxyType({})
    kinds = pc.value_counts(pc.struct_field(bad.drop_null(), "kind"))
    return {each["values"]: each["counts"] for each in kinds.to_pylist()}
