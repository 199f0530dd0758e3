"""What the formats of a registry have in common: headers that name schemas, and refusals.

A value has a header: a byte 0, and four of the schema's id, most significant first. Values of which
that is not so get one before they are decoded (`schema_names`).
"""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from binwright.consumer.decode.one_by_one import REASON_LENGTH, Bad, described

OwnIds = Literal["globalId", "contentId"]
"""The two kinds of ids that Apicurio's registry gives schemas."""


@dataclass(frozen=True, slots=True)
class ApicurioId:
    """An id of eight bytes, as Apicurio's own serializers write it."""

    kind: OwnIds
    number: int

    def __str__(self) -> str:
        """Return both, as reasons name it."""
        return f"{self.kind} {self.number}"


SchemaName = int | UUID | ApicurioId
"""How a value names its schema: by the id or the GUID that the registry gave it."""

HEADER = 5
"""Bytes in front of a value: 0, and the id of its schema."""


def has_header(value: bytes) -> bool:
    """Return whether a value names a schema."""
    return len(value) >= HEADER and value[0] == 0


def schema_id(value: bytes) -> int:
    """Return the id of the schema that a value names."""
    return int.from_bytes(value[1:HEADER], "big")


def without_header(value: bytes) -> Bad:
    """Return a value as bad that names no schema."""
    start = described(value[:HEADER].hex(" "))
    return Bad("malformed", f"needs 0 and a schema's id in front, has {start}")


def refused(name: SchemaName, why: str) -> Bad:
    """Return why values of this schema are bad."""
    return Bad("incompatible", f"schema {name}: {why}"[:REASON_LENGTH])


def nothing_behind(rest: bytes) -> str:
    """Return why a record's header is wrong in which bytes follow the schema, "" if none do."""
    return f"has {len(rest)} more bytes than a schema's name" if rest else ""
