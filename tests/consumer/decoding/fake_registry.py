"""A registry in memory."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

from tests.consumer.decoding.avro import parsed

from binwright.consumer.decoding.protobuf_schemas import ProtobufSchema
from binwright.consumer.decoding.registry import Schema, Version
from binwright.consumer.decoding.registry_schemas import SchemaName
from binwright.protocol.errors import RegistryUnavailable
from binwright.protocol.json_schemas import JsonSchema
from binwright.protocol.schemas import SchemaRefused

SUBJECT = "orders-value"


class FakeRegistry:
    """A registry in memory that counts what it is asked."""

    def __init__(self) -> None:
        self.schemas: dict[SchemaName, Schema | SchemaRefused] = {}
        self.subjects: dict[str, list[int]] = {}
        self.asked: Counter[Any] = Counter()
        self.away = False

    def register(
        self, number: int, schema: Any, subject: str = SUBJECT, guid: UUID | None = None
    ) -> None:
        """Register a schema with this id as the next version of a subject."""
        known = isinstance(schema, SchemaRefused | ProtobufSchema | JsonSchema)
        self.schemas[number] = schema if known else parsed(schema)
        if guid is not None:
            self.schemas[guid] = self.schemas[number]
        self.subjects.setdefault(subject, []).append(number)

    async def schema(self, name: SchemaName) -> Schema | SchemaRefused | None:
        await self._ask(name)
        return self.schemas.get(name)

    async def versions(self, subject: str) -> tuple[int, ...]:
        await self._ask(subject)
        return tuple(range(1, 1 + len(self.subjects.get(subject, ()))))

    async def version(self, subject: str, version: int) -> Version | None:
        await self._ask((subject, version))
        number = self.subjects[subject][version - 1]
        return Version(number, self.schemas[number])

    async def _ask(self, what: Any) -> None:
        await asyncio.sleep(0)
        self.asked[what] += 1
        if self.away:
            raise RegistryUnavailable("away")
