"""How long decoding takes and what it finds bad, by table: for metrics."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from threading import Lock
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decide.wire_forms import recognised
from binwright.consumer.decoding.arrow_types import BAD
from binwright.consumer.decoding.one_by_one import REASON_LENGTH
from binwright.consumer.decoding.record_decoder import OF_KEY
from binwright.consumer.decoding.schema_names import Part
from binwright.protocol.columns import Columns
from binwright.protocol.ports.lake import ValueDecoder
from binwright.runtime.settings import Target

_OF_FORM = frozenset(["malformed", "schema_unknown"])
"""Kinds of bad records that may be of another form than the table's."""


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
        parts = () if target.decoded is None else target.decoded.parts
        self._by_schema = {part.part: part.by_schema for part in parts}

    def decode(self, values: Any, headers: Any = None, keys: Any = None) -> tuple[Any, Any]:
        began = time.perf_counter()
        rows, bad = self._decoder.decode(values, headers, keys)
        bad = self._explained(bad, values, headers, keys)
        self._counts.add(self._target, time.perf_counter() - began, _kinds(bad))
        return rows, bad

    def _explained(self, bad: Any, values: Any, headers: Any, keys: Any) -> Any:
        """Return bad records whose reasons say what their bytes were recognised as."""
        if bad.null_count == len(bad):
            return bad
        reasons = pc.struct_field(bad, "reason").to_pylist()
        for row, kind in enumerate(pc.struct_field(bad, "kind").to_pylist()):
            if kind is None or kind.removeprefix(OF_KEY) not in _OF_FORM:
                continue
            part: Part = "key" if kind.startswith(OF_KEY) else "value"
            content = (keys if part == "key" else values)[row].as_py()
            names = [] if headers is None else [each["key"] for each in headers[row].as_py() or ()]
            if what := recognised(content or b"", names, by_schema=self._by_schema[part]):
                seems = f"; it looks like {what}"
                reasons[row] = reasons[row][: REASON_LENGTH - len(seems)] + seems
        parts: list[Any] = [pc.struct_field(bad, "value"), pc.struct_field(bad, "kind")]
        found: list[Any] = [*parts, pa.array(reasons, pa.string())]
        return pa.StructArray.from_arrays(found, fields=[*BAD], mask=bad.is_null())


def _kinds(bad: "pa.Array[Any]") -> Mapping[str, int]:
    if bad.null_count == len(bad):
        return MappingProxyType({})
    kinds = pc.value_counts(pc.struct_field(bad.drop_null(), "kind"))
    return {each["values"]: each["counts"] for each in kinds.to_pylist()}
