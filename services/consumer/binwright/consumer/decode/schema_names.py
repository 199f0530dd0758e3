"""Values that name their schema by a GUID, by an id of Apicurio's, or in a header of their record.

Beside a byte 0 and an id in front of a value, Confluent's serializers write a byte 1 and the 16
bytes of the schema's GUID, most significant first (`SchemaId.guidToBytes` of its Schema Registry):
in front too, or as the record's header `__value_schema_id` (`HeaderSchemaIdSerializer`), and then
the value has nothing in front. The indexes of a message of Protobuf stand behind the GUID, so they
are in the header as well. What reads both is its `DualSchemaIdDeserializer`: the last header of
that name counts, which may also hold 0 and an id; where there is none, or its value is null, the
schema is named in front. Its Python client does the same
(`confluent_kafka.schema_registry.dual_schema_id_deserializer`), but takes the first header.

Apicurio's own serializers write an id of eight bytes, most significant first: behind a byte 0 in
front of a value, where only the settings tell it from Confluent's, or in the header
`apicurio.value.globalId` or `apicurio.value.contentId`.

Decoders read values with an id in front. So values of the other forms get one before: for a GUID,
or an id of Apicurio's, one that stands for it within the file.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decode.arrow_types import BAD
from binwright.consumer.decode.one_by_one import REASON_LENGTH, Bad, Decoded
from binwright.consumer.decode.registry_schemas import (
    HEADER,
    ApicurioId,
    OwnIds,
    SchemaName,
    has_header,
    schema_id,
)
from binwright.protocol.ports.kafka import Records
from binwright.tables.columns import Columns
from binwright.tables.ports import ValueDecoder

Part = Literal["value", "key"]
"""Of a record."""
GUID_HEADER = 17
"""Bytes that name a schema by its GUID: 1, and the GUID."""
LONG_HEADER = 9
"""Bytes that name a schema by an id of Apicurio's in front of a value: 0, and the id."""
_TAGS: Mapping[OwnIds, bytes] = {
    "globalId": b"apicurio globalId ",
    "contentId": b"apicurio contentId ",
}
"""What is put in front of an id of Apicurio's, so that its kind stays with it."""
_FRONT = 100  # bytes of memory for what is put in front of a value
FIRST_LOCAL_ID = 1 << 31  # registries give no such id
_BINARY = pa.binary()
_NOTHING, _ZERO, _ONE = (pa.scalar(each, _BINARY) for each in (b"", b"\0", b"\1"))


class LocalId(int):
    """An id that stands for another name of a schema within one file. Its text is that name."""

    name: UUID | ApicurioId

    @classmethod
    def of(cls, number: int, name: UUID | ApicurioId) -> "LocalId":
        """Return this id of a name."""
        made = cls(number)
        made.name = name
        return made

    def __str__(self) -> str:
        """Return the name, as reasons have it."""
        return str(self.name)


@dataclass(frozen=True, slots=True)
class Apicurio:
    """The registry is Apicurio's: headers may have its ids."""

    in_front: OwnIds | None = None  # ids in front of values have eight bytes, and are these


@dataclass(slots=True)
class SchemaNames:
    """How the values, or the keys, of a file name their schemas."""

    part: Part = "value"
    counts: Counter[SchemaName] = field(default_factory=Counter)  # name -> values
    elsewhere: bool = False  # some name it by a GUID, by an id of Apicurio's, or in a header
    apicurio: "Apicurio | None" = None

    def ids(self) -> dict[SchemaName, int]:
        """Return the id of each schema: for a GUID one that no value names."""
        free = (number for number in count(FIRST_LOCAL_ID) if number not in self.counts)
        return {
            name: name if isinstance(name, int) else LocalId.of(next(free), name)
            for name in self.counts
        }

    def add(self, records: Records) -> None:
        """Add records."""
        given_values = records.values if self.part == "value" else records.keys
        values: Any = pa.array(given_values, _BINARY)
        if (given := _headers_of(records.headers, self.part, self.apicurio)) is not None:
            self.elsewhere = True
            self._add_names(given.filter(pc.is_valid(values)))
            values = values.filter(pc.is_null(given))
        if (own_ids := _in_front(self.apicurio)) is not None:
            self.elsewhere = True
            self._add_names(_own_names(values.filter(_has_own_id(values)), own_ids))
            return
        by_guid = False
        for start, number in _counted(pc.binary_slice(values, 0, HEADER)):
            if has_header(start):
                self.counts[schema_id(start)] += number
            by_guid |= start[:1] == b"\1"
        if by_guid and pc.any(has_guid := _has_guid(values)).as_py():
            self.elsewhere = True
            self._add_names(pc.binary_slice(values.filter(has_guid), 0, GUID_HEADER))

    def _add_names(self, texts: Any) -> None:
        for text, number in _counted(texts):
            if (name := named(text)) is not None:
                self.counts[name[0]] += number


def header_of(part: Part) -> str:
    """Return the name of the header that names the schema of a part."""
    return f"__{part}_schema_id"


def schema_names(
    records: Iterable[Sequence[Records]], part: Part = "value", apicurio: Apicurio | None = None
) -> SchemaNames:
    """Return which schemas values, or keys, name, and how many do.

    Args:
        records: Of a file.
        part: Which part of them is meant.
        apicurio: Which of Apicurio's forms are read, if the registry is Apicurio's.
    """
    names = SchemaNames(part, apicurio=apicurio)
    for parts in records:
        for each in parts:
            names.add(each)
    return names


def named(text: bytes) -> tuple[SchemaName, bytes] | None:
    """Return the schema that these bytes name, and what stands behind; None: they name none."""
    if len(text) >= GUID_HEADER and text[0] == 1:
        return UUID(bytes=text[1:GUID_HEADER]), text[GUID_HEADER:]
    for kind, tag in _TAGS.items():
        if text.startswith(tag) and len(text) == len(tag) + LONG_HEADER - 1:
            return ApicurioId(kind, int.from_bytes(text[len(tag) :], "big")), b""
    return (schema_id(text), text[HEADER:]) if has_header(text) else None


class NamesDecoder:
    """A `ValueDecoder` of values of which some name their schema by a GUID or in a header.

    Bad values are kept as they came.

    Attributes:
        columns: Of the rows.
    """

    proposed: Columns = ()

    def __init__(
        self,
        decoder: ValueDecoder,
        ids: Mapping[SchemaName, int],
        header_fault: Callable[[bytes], str],
        part: Part = "value",
        apicurio: Apicurio | None = None,
    ) -> None:
        """Decode by another, which reads ids in front.

        Args:
            decoder: Reads the values, once all have an id in front.
            ids: Of all schemas that are named.
            header_fault: As that of `SchemaReading`.
            part: Which part of the records is decoded.
            apicurio: As that of `schema_names`.
        """
        self._apicurio, self._own_ids = apicurio, _in_front(apicurio)
        self._decoder, self._ids, self._header_fault = decoder, ids, header_fault
        self._part: Part = part
        self.columns, self.settings = decoder.columns, ""

    def memory(self, values: "pa.Array[Any]", *_: Any) -> int:
        """Return what these values take; see `ValueDecoder.memory`."""
        return self._decoder.memory(values) + _FRONT * len(values)

    def decode(self, values: "pa.Array[Any]", headers: Any = None, *_: Any) -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        given = None if headers is None else _last_headers(headers, self._part, self._apicurio)
        with_ids, faults = self._with_ids(values, given)
        rows, bad = self._decoder.decode(with_ids)
        kinds, reasons = (pc.struct_field(bad, name) for name in ("kind", "reason"))
        is_good = pc.is_null(bad)
        if faults:
            mask = np.zeros(len(values), bool)
            mask[list(faults)] = True
            is_faulty = pa.array(mask)
            in_order = [faults[row] for row in sorted(faults)]
            kinds = pc.replace_with_mask(kinds, is_faulty, pa.array([f.kind for f in in_order]))
            reasons = pc.replace_with_mask(
                reasons, is_faulty, pa.array([f.reason for f in in_order])
            )
            is_good = pa.array(is_good.to_numpy(zero_copy_only=False) & ~mask)
            rows = rows.take(pa.array(np.arange(len(values)), mask=mask))
        parts: Any = [values, kinds, reasons]
        names = [each.name for each in BAD]
        return rows, pa.StructArray.from_arrays(parts, names=names, mask=is_good)

    def _with_ids(self, values: Any, given: Any) -> tuple[Any, dict[int, Bad]]:
        """Return the values with ids in front, NULL if a header is wrong, and what is wrong."""
        in_front = _has_guid(values) if self._own_ids is None else pc.is_valid(values)
        faults: dict[int, Bad] = {}
        if given is not None:
            in_header = pc.and_(pc.is_valid(given), pc.is_valid(values))
            in_front = pc.and_(in_front, pc.is_null(given))
            encoded = pc.dictionary_encode(given.filter(in_header))
            fronts = [self._front(text) for text in encoded.dictionary.to_pylist()]
            rows = np.flatnonzero(in_header.to_numpy(zero_copy_only=False))
            for row, index in zip(rows, encoded.indices.to_numpy(), strict=True):
                if isinstance(front := fronts[index], Bad):
                    faults[int(row)] = front
            bodies = values.filter(in_header)
            values = _replaced(values, in_header, _put(fronts, encoded.indices, bodies))
        if not pc.any(in_front).as_py():
            return values, faults
        if self._own_ids is not None:
            for row in np.flatnonzero(
                pc.and_not(in_front, _has_own_id(values)).to_numpy(zero_copy_only=False)
            ):
                start = values[int(row)].as_py()[:LONG_HEADER].hex(" ") or "nothing"
                why = f"needs 0 and an id of eight bytes in front, has {start}"
                faults[int(row)] = Bad("malformed", why)
        to_name = values.filter(in_front)
        length = GUID_HEADER if self._own_ids is None else LONG_HEADER
        starts = (
            pc.binary_slice(to_name, 0, GUID_HEADER)
            if self._own_ids is None
            else _own_names(to_name, self._own_ids)
        )
        encoded = pc.dictionary_encode(starts)
        fronts = [self._front(text, checked=False) for text in encoded.dictionary.to_pylist()]
        bodies = pc.binary_replace_slice(to_name, 0, length, b"")
        return _replaced(values, in_front, _put(fronts, encoded.indices, bodies)), faults

    def _front(self, text: bytes, *, checked: bool = True) -> bytes | Bad:
        """Return what names the same schema in front of a value."""
        header = header_of(self._part)
        if tagged := next((kind for kind, tag in _TAGS.items() if text.startswith(tag)), None):
            header, rest = f"apicurio.{self._part}.{tagged}", text[len(_TAGS[tagged]) :]
        if (name := named(text)) is None and tagged:
            why = f"needs an id of eight bytes, has {rest[:GUID_HEADER].hex(' ') or 'nothing'}"
        elif name is None:
            start = text[: GUID_HEADER + 1].hex(" ") or "nothing"
            why = f"needs 1 and a schema's GUID of 16 bytes, has {start}"
        else:
            schema, rest = name
            why = self._header_fault(rest) if checked else ""
            if not why:
                return b"\0" + self._ids[schema].to_bytes(HEADER - 1, "big") + rest
        return Bad("malformed", f"header {header} {why}"[:REASON_LENGTH])


def _counted(values: Any) -> Iterable[tuple[bytes, int]]:
    """Yield the values that are not NULL, and how often each is there."""
    for entry in pc.value_counts(values).to_pylist():
        if entry["values"] is not None:
            yield entry["values"], entry["counts"]


def _has_guid(values: Any) -> Any:
    """Return which values have a GUID in front."""
    is_one = pc.equal(pc.binary_slice(values, 0, 1), _ONE)
    is_long = pc.greater_equal(pc.binary_length(values), pa.scalar(GUID_HEADER))
    return pc.and_(is_one, is_long).fill_null(False)  # noqa: FBT003 - its only argument


def _has_own_id(values: Any) -> Any:
    """Return which values have an id of Apicurio's in front."""
    is_zero = pc.equal(pc.binary_slice(values, 0, 1), _ZERO)
    is_long = pc.greater_equal(pc.binary_length(values), pa.scalar(LONG_HEADER))
    return pc.and_(is_zero, is_long).fill_null(False)  # noqa: FBT003 - its only argument


def _own_names(values: Any, kind: OwnIds) -> Any:
    """Return the ids of Apicurio's in front of values, as `named` reads them."""
    return _tagged(pc.binary_slice(values, 1, LONG_HEADER), kind)


def _tagged(ids: Any, kind: OwnIds) -> Any:
    return pc.binary_join_element_wise(pa.scalar(_TAGS[kind], _BINARY), ids, _NOTHING)


def _in_front(apicurio: Apicurio | None) -> OwnIds | None:
    return None if apicurio is None else apicurio.in_front


def _headers_of(headers: Any, part: Part, apicurio: Apicurio | None) -> Any:
    """Return the headers of records that name a schema, NULL where none does; None: all NULL.

    Ids of Apicurio's are as `named` reads them.
    """
    if isinstance(headers, pa.Array):
        return _last_headers(headers, part, apicurio)
    if not any(headers):
        return None
    there = dict(chain.from_iterable(headers))
    by_name = {
        name: pa.array([dict(each).get(name) if each else None for each in headers], _BINARY)
        for name in _header_names(part, apicurio)
        if name in there
    }
    return _first_of(by_name)


def _last_headers(headers: Any, part: Part, apicurio: Apicurio | None) -> Any:
    """Return the same of a list array of headers."""
    entries = headers.flatten()
    if not len(entries):
        return None
    names = pc.struct_field(entries, "key")
    by_name = {}
    for name in _header_names(part, apicurio):
        names_schema = pc.equal(names, pa.scalar(name))
        if not pc.any(names_schema).as_py():
            continue
        rows = pc.list_parent_indices(headers).filter(names_schema).to_numpy()
        at = np.full(len(headers), -1)
        at[rows] = np.arange(len(rows))  # of an index that is there twice the last value counts
        values = pc.struct_field(entries, "value").filter(names_schema)
        by_name[name] = values.take(pa.array(at, mask=at < 0))
    return _first_of(by_name)


def _header_names(part: Part, apicurio: Apicurio | None) -> list[str]:
    """Return the headers that name a schema, those that count first first."""
    own = [] if apicurio is None else [f"apicurio.{part}.{kind}" for kind in _TAGS]
    return [header_of(part), *own]


def _first_of(by_name: Mapping[str, Any]) -> Any:
    """Return the first header of each record, with the kind of its id if it is Apicurio's."""
    kinds: Mapping[str, OwnIds] = {kind: kind for kind in _TAGS}
    texts = [
        each if (kind := kinds.get(name.rpartition(".")[2])) is None else _tagged(each, kind)
        for name, each in by_name.items()
    ]
    if not texts:
        return None
    first = pc.coalesce(*texts)
    return None if first.null_count == len(first) else first


def _put(fronts: Sequence[bytes | Bad], indexes: Any, bodies: Any) -> Any:
    """Return bodies, each behind its front; NULL where that is bad."""
    known: Any = pa.array([None if isinstance(each, Bad) else each for each in fronts], _BINARY)
    return pc.binary_join_element_wise(known.take(indexes), bodies, _NOTHING)


def _replaced(values: Any, mask: Any, by: Any) -> Any:
    return by if len(by) == len(values) else pc.replace_with_mask(values, mask, by)
