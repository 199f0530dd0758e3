"""Decodes JSON values that name a schema: the header is cut off, the rest read in blocks."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.new_fields import CountedFields
from binwright.consumer.decode.one_by_one import Bad, Decoded
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.consumer.decode.registry_schemas import (
    HEADER,
    has_header,
    nothing_behind,
    refused,
    schema_id,
    without_header,
)
from binwright.tables.columns import Array, Columns, ColumnType, Map, Simple, Struct, folded
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.schemas import SchemaRefused

Schemas = Mapping[int, JsonSchema | Bad]
"""Schemas by id; why values are bad that name one which cannot be used."""


@dataclass(frozen=True, slots=True)
class JsonReading:
    """How a table of JSON reads schemas."""

    new: Counter[str] = field(default_factory=Counter, compare=False)
    """In which fields are counted that no column has."""
    within: str = field(default="", compare=False)  # which column they are of, if one is meant
    most_bytes: int = MOST_BYTES  # of memory, for a value

    def of(self, schema: object) -> JsonSchema:
        """Return the schema; raise `SchemaRefused` if it is no JSON Schema."""
        if not isinstance(schema, JsonSchema):
            raise SchemaRefused("is no JSON Schema, and the table is of JSON")
        return schema

    def decoder(self, columns: Columns, schemas: Schemas) -> "JsonSchemaDecoder":
        """Return the decoder of a table."""
        return JsonSchemaDecoder(
            columns,
            schemas,
            CountedFields(columns, self.new, self.within),
            most_bytes=self.most_bytes,
        )

    def misfit(self, schema: JsonSchema, columns: Columns) -> str:
        """Return why no value of a schema can be read into these columns, "" if some may be."""
        try:
            return misfit(Struct(columns), Struct(schema.columns))
        except SchemaRefused as exc:
            return str(exc)

    def header_fault(self, rest: bytes) -> str:
        """Return what is wrong with a record's header; see `SchemaReading`."""
        return nothing_behind(rest)


class JsonSchemaDecoder:
    """A `ValueDecoder` of JSON with headers.

    Attributes:
        columns: Of the rows.
    """

    proposed: Columns = ()

    def __init__(
        self,
        columns: Columns,
        schemas: Schemas,
        beyond: CountedFields | None = None,
        *,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Read values that name one of these schemas; see `JsonDecoder`."""
        self._bodies = JsonDecoder(columns, beyond, most_bytes=most_bytes)
        self.columns, self.settings = self._bodies.columns, ""
        self._faults = {number: _fault(number, each, columns) for number, each in schemas.items()}

    def memory(self, values: "pa.Array[Any]", *_: Any) -> int:
        """Return what these values take; see `ValueDecoder.memory`."""
        return self._bodies.memory(values)

    def decode(self, values: "pa.Array[Any]", *_: Any) -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        anything: Any = values  # its types do not know these calls
        headers = pc.dictionary_encode(pc.binary_slice(anything, 0, HEADER))
        faults = [self._header_fault(header) for header in headers.dictionary.to_pylist()]
        is_faulty = np.array([fault is not None for fault in faults] + [False])
        # A tombstone, which has no header, has the index -1: the last one.
        indexes = headers.indices.fill_null(-1).to_numpy()
        faulty = is_faulty[indexes]
        bodies = pc.binary_replace_slice(anything, 0, HEADER, b"")
        if not faulty.any():
            return self._read(bodies, anything)
        good, rest = np.flatnonzero(~faulty), np.flatnonzero(faulty)
        rows, bad = self._read(bodies.take(good), anything.take(good))
        bads = [
            {"value": value, "kind": fault.kind, "reason": fault.reason}
            for value, index in zip(anything.take(rest).to_pylist(), indexes[rest], strict=True)
            if (fault := faults[index]) is not None
        ]
        order = np.argsort(np.concatenate([good, rest]))
        all_rows = pa.concat_arrays([rows, pa.nulls(len(rest), row_type(self.columns))])
        all_bad = pa.concat_arrays([bad, pa.array(bads, BAD)])
        return all_rows.take(order), all_bad.take(order)

    def _read(self, bodies: Any, values: Any) -> Decoded:
        """Return what the values without headers become; a bad one is kept with its header."""
        rows, of_bodies = self._bodies.decode(bodies)
        bad: Any = of_bodies
        if bad.null_count == len(bad):
            return rows, bad
        parts: Any = [values, bad.field("kind"), bad.field("reason")]
        names = [field.name for field in BAD]
        return rows, pa.StructArray.from_arrays(parts, names=names, mask=bad.is_null())

    def _header_fault(self, header: bytes) -> Bad | None:
        if not has_header(header):
            return without_header(header)
        return self._faults[schema_id(header)]


def _fault(number: int, schema: JsonSchema | Bad, columns: Columns) -> Bad | None:
    """Return why values of a schema cannot be read into these columns, None if they can."""
    if isinstance(schema, Bad):
        return schema
    why = JsonReading().misfit(schema, columns)
    return refused(number, why) if why else None


def misfit(wanted: ColumnType, there: ColumnType, path: str = "") -> str:
    """Return where values of one type would lose something by the reader of another, "" if none.

    Whether single values fit, the reader sees. It finds fields by their names, and leaves out those
    that a struct has not; it takes text for Base64.
    """
    match wanted, there:
        case Struct(fields), Struct(others):
            return _misfit_of_fields(fields, others, path)
        case (Array(one), Array(other)) | (Map(one), Map(other)):
            return misfit(one, other, path)
        case Map(one), Struct(others):
            misfits = (misfit(one, other.type, f"{path}.{other.name}") for other in others)
            return next(filter(None, misfits), "")
    is_lossy = wanted != there and _has_struct_or_bytes(wanted)
    return f"{path.removeprefix('.')} is {there}, and {wanted} in the table" if is_lossy else ""


def _misfit_of_fields(fields: Columns, others: Columns, path: str) -> str:
    known = {folded(field.name): field for field in fields}
    for other in others:
        if (field := known.get(folded(other.name))) is None:
            continue  # its schema is refused elsewhere
        within = f"{path}.{other.named}"
        if field.named != other.named:
            return f"{within.removeprefix('.')} is {field.named} in the table: names match exactly"
        if why := misfit(field.type, other.type, within):
            return why
    return ""


def _has_struct_or_bytes(kind: ColumnType) -> bool:
    match kind:
        case Struct():
            return True
        case Array(inner) | Map(inner):
            return _has_struct_or_bytes(inner)
        case _:
            return kind == Simple("binary")
