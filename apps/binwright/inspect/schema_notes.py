"""Which fields of values have no column of their own, or one of another name, and why."""

import asyncio
from collections.abc import Sequence
from typing import Any

from binwright.consumer.decode.avro_values import AvroReading
from binwright.consumer.decode.json_by_schema import JsonReading
from binwright.consumer.decode.protobuf_values import ProtobufReading
from binwright.consumer.decode.registry import SchemaRegistry
from binwright.consumer.decode.registry_decoders import Registry
from binwright.protocol.errors import RegistryUnavailable
from binwright.runtime.settings.registry import RegistrySettings
from binwright.tables.schemas import SchemaRefused, renamed
from binwright.tables.settings import DecodingSettings
from binwright.tables.targets import Target


async def schema_notes(registry: RegistrySettings, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the notes of a table's settings, or of all versions of its topics' subjects."""
    if (table := targets[0].decoded) is None:
        return ()
    if not table.by_subject:
        return tuple(renamed(table.as_read))
    try:
        async with SchemaRegistry(registry) as client:
            subjects = dict.fromkeys(table.subject_of(target.topic) for target in targets)
            of_subjects = [await subject_notes(client, subject, table) for subject in subjects]
    except RegistryUnavailable as exc:
        return (f"unknown: {exc}",)
    return tuple(dict.fromkeys(note for notes in of_subjects for note in notes))


async def subject_notes(registry: Registry, subject: str, table: DecodingSettings) -> list[str]:
    """Return the notes of all versions of a subject; raise `RegistryUnavailable`."""
    reading, notes = _reading(table), list[str]()
    for number in await registry.versions(subject):
        if (version := await registry.version(subject, number)) is None:
            continue
        try:
            if isinstance(version.schema, SchemaRefused):
                raise version.schema
            schema = reading.of(version.schema)
            columns = await asyncio.to_thread(getattr, schema, "columns")
            notes += [*renamed(columns), *schema.notes]
        except SchemaRefused as exc:
            notes.append(f"version {number} of {subject} has no columns: it {exc}")
    return notes


def _reading(table: DecodingSettings) -> Any:
    match table.format:
        case "avro":
            return AvroReading()
        case "json":
            return JsonReading()
        case _:
            return ProtobufReading(table.message_read)
