"""Chooses what decodes the values of a topic.

What decodes is imported when it is needed, in a thread: that takes a while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Records
from binwright.protocol.ports.lake import ValueDecoder
from binwright.runtime.settings import DecodingSettings, Settings, Target

DecoderOf = Callable[
    [Target, Mapping[TopicPartition, Sequence[Records]]], Awaitable[ValueDecoder | None]
]
"""Returns the decoder of records for a table of their topic; None: they are staged as they are."""


async def no_decoder(_target: Target, _rows: Mapping[TopicPartition, Sequence[Records]]) -> None:
    """Fit `DecoderOf`: records are staged as they are."""


@dataclass(frozen=True, slots=True)
class DecodingTotals:
    """What a process has decoded since it began, and asked of the schema registry."""

    seconds: Mapping[Target, float] = field(default_factory=dict)  # by table
    bad: Mapping[tuple[Target, str], int] = field(default_factory=dict)  # table, kind -> records
    versions: Mapping[Target, int] = field(default_factory=dict)
    """Table -> the newest version of its subject, where its columns are those of the versions."""
    requests: Mapping[str, int] = field(default_factory=dict)  # to the registry, by outcome


class Decoders:
    """Makes the decoders that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._modules: dict[str, Any] = {}
        self._registry: Any = None  # a `SchemaRegistry`, once it is needed
        self._by_schema: Any = None  # a `RegistryDecoders`, like it
        self._counts: Any = None  # a `DecodingCounts`, once something is decoded
        self._versions: dict[Target, int] = {}  # table -> newest version of its subject

    async def __aenter__(self) -> Self:
        """Return self; the registry is asked when its first schema is needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End requests to the registry."""
        await self._stack.aclose()

    def totals(self) -> DecodingTotals:
        """Return what was decoded by now, and asked of the registry."""
        seconds, bad = ({}, {}) if self._counts is None else self._counts.snapshot()
        requests = {} if self._registry is None else self._registry.requests
        return DecodingTotals(seconds, bad, self._versions, requests)

    async def of(
        self, target: Target, rows: Mapping[TopicPartition, Sequence[Records]]
    ) -> ValueDecoder | None:
        """Return the decoder of these records; see `DecoderOf`.

        Raises:
            RegistryUnavailable: Their schemas cannot be had now.
        """
        if (table := target.decoded) is None:
            return None
        decoder = await self._of_part(table, target, rows, widen=table.widen)
        if table.key is not None or table.tombstones != "row":
            keys = table.key and await self._of_part(table.key, target, rows, widen=table.widen)
            form = table.key and table.key.format
            decoder = (await self._module("record_decoder")).RecordDecoder(
                decoder, keys, form, table.tombstones
            )
        decoder.settings = table.decoding
        counts = await self._module("counts")
        if self._counts is None:
            self._counts = counts.DecodingCounts()
        return self._counts.counted(target, decoder)  # type: ignore[no-any-return]

    async def _of_part(
        self,
        table: DecodingSettings,
        target: Target,
        rows: Mapping[TopicPartition, Sequence[Records]],
        *,
        widen: bool,
    ) -> ValueDecoder:
        """Return the decoder of a topic's values, or of its keys."""
        decoder: ValueDecoder
        match table.format:
            case _ if table.by_schema:
                decoder = await self._of_registry(table, target, rows, widen=widen)
            case "json":
                decoder = (await self._module("json_values")).JsonDecoder(table.as_read)
            case "string":
                decoder = (await self._module("text_values")).TextDecoder(table.parsed)
            case "variant":
                decoder = (await self._module("variant_values")).VariantDecoder(table.parsed)
            case "csv":
                values = await self._module("csv_values")
                decoder = values.CsvDecoder(table.parsed, table.delimiter)
        return decoder

    async def _of_registry(
        self,
        table: DecodingSettings,
        target: Target,
        rows: Mapping[TopicPartition, Sequence[Records]],
        *,
        widen: bool,
    ) -> ValueDecoder:
        client, decoders = await self._module("registry"), await self._module("registry_decoders")
        if self._by_schema is None:
            self._registry = client.SchemaRegistry(self._settings.registry)
            self._stack.push_async_exit(self._registry)
            self._by_schema = decoders.RegistryDecoders(self._registry)
        reading: Any
        match table.format:
            case "avro":
                reading = (await self._module("avro_values")).AvroReading()
            case "json":
                reading = (await self._module("json_by_schema")).JsonReading()
            case _:
                values = await self._module("protobuf_values")
                reading = values.ProtobufReading(table.message_read)
        subject = table.subject_of(target.topic)
        found: ValueDecoder = await self._by_schema.decoder(
            subject, reading, table.parsed, rows.values(), table.part, widen=widen
        )
        version = self._by_schema.newest_version(subject, reading, widen=widen)
        if table.part == "value" and version is not None:
            self._versions[target] = version
        return found

    async def _module(self, name: str) -> Any:
        if name not in self._modules:
            full = f"binwright.consumer.decoding.{name}"
            self._modules[name] = await asyncio.to_thread(import_module, full)
        return self._modules[name]
