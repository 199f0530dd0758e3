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
from binwright.consumer.decode.arrow_types import BAD
from binwright.consumer.decode.new_fields import MOST_NAMES, OTHER_NAMES
from binwright.consumer.decode.one_by_one import REASON_LENGTH
from binwright.consumer.decode.record_decoder import OF_KEY
from binwright.consumer.decode.schema_names import Part
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log
from binwright.tables.columns import Columns
from binwright.tables.ports import ValueDecoder
from binwright.tables.targets import Target

TABLE_FIELD_UNKNOWN = LogEvent.warning(
    "table.field_unknown",
    "Records have a field that no column of the table has or takes: see `new_fields`. Once for "
    "each name and process.",
)

_OF_FORM = frozenset(["malformed", "schema_unknown"])
"""Kinds of bad records that may be of another form than the table's."""


class DecodingCounts:
    """Sums over all decoders of a process, which work in several threads."""

    def __init__(self) -> None:
        self._seconds = defaultdict[Target, float](float)
        self._bad: Counter[tuple[Target, str]] = Counter()
        self._new = defaultdict[Target, Counter[str]](Counter)
        self._lock = Lock()

    def counted(self, target: Target, decoder: ValueDecoder, new: Counter[str]) -> ValueDecoder:
        """Return the decoder of a table's records, whose work is added to the sums.

        Args:
            target: The table.
            decoder: Of its records.
            new: In which that counts fields which it leaves out.
        """
        return _CountedDecoder(self, target, decoder, new)

    def add(
        self, target: Target, seconds: float, bad: Mapping[str, int], new: Mapping[str, int]
    ) -> None:
        """Add one call: how long it took, bad records by kind, fields that were left out."""
        with self._lock:
            self._seconds[target] += seconds
            self._bad.update({(target, kind): count for kind, count in bad.items()})
            known = self._new[target] if new else Counter[str]()
            for name, count in new.items():
                if name not in known and len(known) >= MOST_NAMES:
                    known[OTHER_NAMES] += count
                    continue
                if name not in known:
                    log(TABLE_FIELD_UNKNOWN, table=target.name, field=name)
                known[name] += count

    def snapshot(
        self,
    ) -> tuple[
        Mapping[Target, float],
        Mapping[tuple[Target, str], int],
        Mapping[Target, Mapping[str, int]],
    ]:
        """Return the sums by now: seconds, bad records by kind, fields left out by name."""
        with self._lock:
            new = {target: dict(names) for target, names in self._new.items()}
            return dict(self._seconds), dict(self._bad), new


class _CountedDecoder:
    def __init__(
        self, counts: DecodingCounts, target: Target, decoder: ValueDecoder, new: Counter[str]
    ) -> None:
        self._counts, self._target, self._decoder, self._new = counts, target, decoder, new
        self.columns: Columns = decoder.columns
        self.settings = decoder.settings
        parts = () if target.decoded is None else target.decoded.parts
        self._by_schema = {part.part: part.by_schema for part in parts}

    @property
    def proposed(self) -> Columns:
        return self._decoder.proposed

    def memory(self, values: Any, keys: Any = None) -> int:
        return self._decoder.memory(values, keys)

    def decode(self, values: Any, headers: Any = None, keys: Any = None) -> tuple[Any, Any]:
        began = time.perf_counter()
        rows, bad = self._decoder.decode(values, headers, keys)
        bad = self._explained(bad, values, headers, keys)
        self._counts.add(self._target, time.perf_counter() - began, _kinds(bad), self._new)
        self._new.clear()
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
        arrays: list[Any] = [*parts, pa.array(reasons, pa.string())]
        return pa.StructArray.from_arrays(arrays, fields=[*BAD], mask=bad.is_null())


def _kinds(bad: "pa.Array[Any]") -> Mapping[str, int]:
    if bad.null_count == len(bad):
        return MappingProxyType({})
    kinds = pc.value_counts(pc.struct_field(bad.drop_null(), "kind"))
    return {each["values"]: each["counts"] for each in kinds.to_pylist()}
