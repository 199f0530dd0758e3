"""A registry in memory."""

import asyncio
from collections import Counter, defaultdict
from typing import Any
from uuid import UUID

from tests.consumer.decode.avro import parsed

from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.consumer.decode.registry import Schema, Version
from binwright.consumer.decode.registry_schemas import SchemaName
from binwright.protocol.errors import RegistryUnavailable
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.schemas import SchemaRefused

SUBJECT = "orders-value"


class FakeRegistry:
    """A registry in memory that counts what it is asked."""

    def __init__(self) -> None:
        self.schemas: dict[Any, Schema | SchemaRefused] = {}  # of a context by it and the id
        self.subjects: dict[str, list[int]] = {}
        self.deleted: defaultdict[str, set[int]] = defaultdict(set)  # subject -> versions
        self.asked: Counter[Any] = Counter()
        self.away = False

    def register(
        self, number: int, schema: Any, subject: str = SUBJECT, guid: UUID | None = None
    ) -> None:
        """Register a schema with this id as the next version of a subject."""
        known = isinstance(schema, SchemaRefused | ProtobufSchema | JsonSchema)
        key = _key(number, subject)
        self.schemas[key] = schema if known else parsed(schema)
        if guid is not None:
            self.schemas[guid] = self.schemas[key]
        self.subjects.setdefault(subject, []).append(number)

    async def schema(self, name: SchemaName, subject: str) -> Schema | SchemaRefused | None:
        await self._ask(name)
        return self.schemas.get(_key(name, subject))

    async def versions(self, subject: str) -> tuple[int, ...]:
        await self._ask(subject)
        deleted = self.deleted[subject]
        known = range(1, 1 + len(self.subjects.get(subject, ())))
        return (*(n for n in known if n not in deleted), *sorted(deleted))

    async def subjects_of(self, number: int, subject: str) -> frozenset[str]:
        await self._ask(("subjects", number))
        found = {name for name, numbers in self.subjects.items() if number in numbers}
        return frozenset(name for name in found if _context(name) == _context(subject))

    async def version(self, subject: str, version: int) -> Version | None:
        await self._ask((subject, version))
        number = self.subjects[subject][version - 1]
        return Version(number, self.schemas[_key(number, subject)])

    async def _ask(self, what: Any) -> None:
        await asyncio.sleep(0)
        self.asked[what] += 1
        if self.away:
            raise RegistryUnavailable("away")


def _context(subject: str) -> str:
    return subject.split(":")[1] if subject.startswith(":.") else ""


def _key(name: SchemaName, subject: str) -> Any:
    return (context, name) if isinstance(name, int) and (context := _context(subject)) else name
