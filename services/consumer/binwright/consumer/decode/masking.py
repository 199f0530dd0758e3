"""Masks and filters what was decoded, and the rest of the records, as Arrow has them.

Whatever fails here fails the whole file: no value is taken for a bad one, which would land as it
is, and no message has any of a value or of the key.
"""

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decode.arrow_types import BAD, arrow_type, row_type
from binwright.consumer.decode.one_by_one import Decoded, decode_parts
from binwright.protocol.errors import MaskUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log
from binwright.runtime.secret_files import read_secret
from binwright.tables.columns import Columns, ColumnType, Decimal, Simple, folded
from binwright.tables.comparisons import Comparison, Value
from binwright.tables.masks import (
    DROP,
    MASKED_REASON,
    NULL,
    OTHER_HEADERS,
    SHA256,
    MaskSettings,
    Rules,
    masked_columns,
)
from binwright.tables.ports import RecordMask, ValueDecoder
from binwright.tables.settings import RAW, TableSettings
from binwright.tables.targets import Target

MASK_KEY_CHANGED = LogEvent.warning(
    "mask.key_changed",
    "The file with the secret of `sha256` has another one: hashes differ from those before.",
)

LEAST_KEY = 16  # characters
HIDDEN = "***"
_WIDEST = pa.decimal256(76, 38)
"""Holds all decimals, of columns and of comparisons."""
_ORDER: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
Hide = Callable[[Any], Any]
"""Returns the masked text, or the masked bytes, of one value that is not NULL."""


class MaskKeys:
    """The secrets of masks, each read from its file whenever it is needed."""

    def __init__(self) -> None:
        self._known: dict[Path, bytes] = {}

    def of(self, mask: MaskSettings) -> bytes:
        """Return a mask's secret, b"": it needs none; raise `MaskUnavailable`."""
        if mask.key_file is None:
            return b""
        try:
            key = read_secret(mask.key_file, "mask.key_file").encode()
        except OSError as exc:
            raise MaskUnavailable(str(exc)) from exc
        if len(key) < LEAST_KEY:
            raise MaskUnavailable(
                f"{mask.key_file} (mask.key_file) has fewer than {LEAST_KEY} characters"
            )
        if self._known.setdefault(mask.key_file, key) != key:
            log(MASK_KEY_CHANGED, file=str(mask.key_file))
            self._known[mask.key_file] = key
        return key


@contextmanager
def _secretly() -> Iterator[None]:
    """Say of what fails only what kind of fault it is: messages of Arrow may quote values."""
    try:
        yield
    except (MemoryError, MaskUnavailable):
        raise
    except Exception as exc:  # noqa: BLE001 - as the docstring says
        raise MaskUnavailable(f"records cannot be masked: {type(exc).__name__}") from None


# --- values --------------------------------------------------------------------------------------


def _hiding(how: str, key: bytes) -> Hide:
    """Return what masks one value by `sha256`, or by `last` and a number."""
    if how == SHA256:

        def hashed(value: Any) -> Any:
            content = value.encode() if isinstance(value, str) else value
            digest = hmac.digest(key, content, "sha256").hex()
            return digest if isinstance(value, str) else digest.encode()

        return hashed
    kept = int(how.split()[1])

    def cut(value: Any) -> Any:
        hidden = HIDDEN if isinstance(value, str) else HIDDEN.encode()
        return hidden + value[-kept:] if len(value) > kept else hidden

    return cut


def masked_array(array: Any, rule: str | Rules, key: bytes) -> Any:
    """Return an array of a column, masked by a rule that its type takes."""
    if rule == NULL:
        return pa.nulls(len(array), array.type)
    if pa.types.is_list(array.type):
        counts = pc.fill_null(pc.list_value_length(array), 0)
        ends: Any = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(counts)])
        items = masked_array(array.flatten(), rule, key)
        return pa.ListArray.from_arrays(ends, items, mask=array.is_null())
    if not isinstance(rule, str):
        return masked_struct(array, rule, key)
    texts = array if pa.types.is_binary(array.type) else array.cast(pa.string())
    unique = texts.dictionary_encode()
    hidden = [*map(_hiding(rule, key), unique.dictionary.to_pylist())]
    return pa.array(hidden, texts.type).take(unique.indices)


def masked_struct(rows: Any, rules: Rules, key: bytes) -> Any:
    """Return structs whose fields are masked, NULL where they were."""
    fields, arrays = [], []
    for field, array in zip(rows.type, rows.flatten(), strict=True):
        rule = rules.get(folded(field.name))
        if rule != DROP:
            arrays.append(array if rule is None else masked_array(array, rule, key))
            fields.append(pa.field(field.name, arrays[-1].type))
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=rows.is_null())


Read = tuple[Comparison, ColumnType, Sequence[Value]]
"""A comparison, and what it reads of columns; see `Comparison.values`."""


def taken(rows: Any, comparisons: Sequence[Read]) -> Any:
    """Return a mask of the rows for which all comparisons hold: of NULL none holds, as in SQL."""
    hold = reduce(pc.and_kleene, [_holds(rows, *each) for each in comparisons])
    return pc.coalesce(hold, pa.scalar(value=False))


def part_of(rows: Any, path: Sequence[str]) -> Any:
    """Return a column of rows, or a field within it."""
    for name in path:
        fields = [folded(field.name) for field in rows.type]
        rows = rows.flatten()[fields.index(folded(name))]
    return rows


def _holds(rows: Any, comparison: Comparison, kind: ColumnType, values: Sequence[Value]) -> Any:
    array = part_of(rows, comparison.path)
    match comparison.operator:
        case "is null":
            return array.is_null()
        case "is not null":
            return array.is_valid()
    wanted = arrow_type(kind)
    if kind == Simple("float") or isinstance(kind, Decimal):
        wanted = _WIDEST if isinstance(kind, Decimal) else pa.float64()
        array = array.cast(wanted)
    if comparison.operator in _ORDER:
        return _ORDER[comparison.operator](array, pa.scalar(values[0], wanted))
    is_one = reduce(pc.or_, [pc.equal(array, pa.scalar(value, wanted)) for value in values])
    return is_one if comparison.operator == "in" else pc.invert(is_one)


class MaskedDecoder:
    """A `ValueDecoder` of another's rows: masked, and without those that are left out.

    Attributes:
        columns: Of the rows once they are masked.
    """

    def __init__(self, decoder: ValueDecoder, table: TableSettings, key: bytes) -> None:
        """Mask what a decoder returns as a table's settings want.

        Raises:
            MaskUnavailable: They name a column that is not there, or whose type does not fit: they
                are those of a subject.
        """
        self._decoder, self._key = decoder, key
        self._where: list[Read] = []
        self._bad = "keep" if table.mask is None else table.mask.bad
        self._rules: Rules = {} if table.mask is None else table.mask.rules
        self.settings = decoder.settings
        self.columns: Columns = ()
        if not decoder.columns:  # all are bad
            return
        try:
            for text, comparison in zip(table.where, table.comparisons, strict=True):
                subject = f"where: {text!r}"
                self._where.append((comparison, *comparison.values(decoder.columns)))
            subject = "mask.fields"
            self.columns = masked_columns(decoder.columns, self._rules)
        except ValueError as exc:
            raise MaskUnavailable(f"{subject}: {exc}, by the columns of the subject") from exc

    @property
    def proposed(self) -> Columns:
        """Return columns for new fields, which no mask names."""
        return self._decoder.proposed

    def memory(self, values: Any, keys: Any = None) -> int:
        """Return what these records take; see `ValueDecoder.memory`."""
        return self._decoder.memory(values, keys)

    def decode(self, values: Any, headers: Any = None, keys: Any = None) -> Decoded:
        """Return the rows of these records, and the bad ones; see `ValueDecoder.decode`.

        Raises:
            MaskUnavailable: They cannot be masked.
        """
        nothing = pa.nulls(len(values))
        headers, keys = (nothing if part is None else part for part in (headers, keys))
        rows, bad = decode_parts(self._decoder, values, headers, keys)
        with _secretly():
            return self._masked(rows), self._masked_bad(bad)

    def _masked(self, rows: Any) -> Any:
        if not self.columns:
            return rows
        left_out = rows.is_null()
        if self._where:
            left_out = pc.or_(left_out, pc.invert(taken(rows, self._where)))
        kept = pa.StructArray.from_arrays(rows.flatten(), fields=[*rows.type], mask=left_out)
        masked = masked_struct(kept, self._rules, self._key)
        return masked.cast(row_type(self.columns))

    def _masked_bad(self, bad: Any) -> Any:
        if self._bad == "keep":
            return bad
        value, kind, _ = bad.flatten()
        reason = pa.repeat(pa.scalar(MASKED_REASON), len(bad))
        parts = [masked_array(value, self._bad, self._key), kind, reason]
        return pa.StructArray.from_arrays(parts, fields=[*BAD], mask=bad.is_null())


# --- the rest of records -------------------------------------------------------------------------


def record_mask(target: Target, key: bytes) -> RecordMask | None:
    """Return the mask of a table's keys and headers, and of values that land as bytes, if any."""
    if target.entry is None or (mask := target.entry.mask) is None:
        return None
    rules: dict[str, str] = {} if mask.key is None else {"key": mask.key}
    if target.format == RAW:
        rules |= {name: str(rule) for name, rule in mask.rules.items()}

    def masked(records: Any) -> Any:
        with _secretly():
            for name, how in rules.items():
                at = records.schema.get_field_index(name)
                hidden = masked_array(records[name], NULL if how == DROP else how, key)
                records = records.set_column(at, records.schema.field(at), hidden)
            if mask.headers:
                at = records.schema.get_field_index("headers")
                hidden = masked_headers(records["headers"], mask.headers, key)
                records = records.set_column(at, records.schema.field(at), hidden)
            return records

    return masked


def masked_headers(headers: Any, rules: Mapping[str, str], key: bytes) -> Any:
    """Return lists of headers, masked by their names."""

    def masked(header: Any) -> Any:
        how = rules.get(header["key"], rules.get(OTHER_HEADERS))
        if how is None or header["value"] is None:
            return header
        return {**header, "value": None if how == NULL else _hiding(how, key)(header["value"])}

    def is_kept(header: Any) -> bool:
        return rules.get(header["key"], rules.get(OTHER_HEADERS)) != DROP

    every = headers.to_pylist()
    lists = [each and [masked(h) for h in each if is_kept(h)] for each in every]
    return pa.array(lists, headers.type)
