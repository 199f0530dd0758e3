"""Chooses what decodes the values of a topic.

What decodes is imported when it is needed, in a thread: that takes a while.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

from binwright.consumer.decide.new_columns import filled
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.protocol.errors import SchemaAtFault
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Records
from binwright.runtime.logs import log
from binwright.runtime.settings.group import Settings
from binwright.tables.columns import KAFKA_KEY, Columns, stored
from binwright.tables.masks import MaskSettings
from binwright.tables.ports import RecordMask, ValueDecoder
from binwright.tables.settings import DecodingSettings, TableSettings
from binwright.tables.targets import Target

SCHEMA_REFUSED = LogEvent.error(
    "schema.refused",
    "A schema of a table's subject cannot be used: the topic's records wait until it, or the "
    "table's entry, is mended.",
)

NAMED = 20  # fields of a table, in reports
DecoderOf = Callable[
    [Target, Mapping[TopicPartition, Sequence[Records]]], Awaitable[ValueDecoder | None]
]
"""Returns the decoder of records for a table of their topic; None: they are staged as they are."""


async def no_decoder(_target: Target, _rows: Mapping[TopicPartition, Sequence[Records]]) -> None:
    """Fit `DecoderOf`: records are staged as they are."""


MaskOf = Callable[[Target], Awaitable[RecordMask | None]]
"""Returns the mask of what decoders leave of a table's records; None: it has none."""


async def no_mask(_target: Target) -> None:
    """Fit `MaskOf`: nothing is masked."""


AddedOf = Callable[[str], Awaitable[Columns]]
"""Returns which columns a table of this name got for new fields."""


async def none_added(_table: str) -> Columns:
    """Fit `AddedOf`: new fields are all kept among the rest."""
    return ()


@dataclass(frozen=True, slots=True)
class DecodingTotals:
    """What a process has decoded since it began, and asked of the schema registry."""

    seconds: Mapping[Target, float] = field(default_factory=dict)  # by table
    bad: Mapping[tuple[Target, str], int] = field(default_factory=dict)  # table, kind -> records
    versions: Mapping[Target, int] = field(default_factory=dict)
    """Table -> the newest version of its subject, where its columns are those of the versions."""
    requests: Mapping[str, int] = field(default_factory=dict)  # to the registry, by outcome
    schema_faults: Mapping[Target, int] = field(default_factory=dict)
    """Table -> how often its records had to wait since a schema is at fault."""
    new_fields: Mapping[Target, Mapping[str, int]] = field(default_factory=dict)
    """Table -> fields of JSON that none of its columns has -> how many were left out."""


class Decoders:
    """Makes the decoders that the settings name."""

    def __init__(
        self,
        settings: Settings,
        most_bytes: int = MOST_BYTES,
        *,
        waits: bool = True,
        added_of: AddedOf = none_added,
    ) -> None:
        """Decode by these settings.

        Args:
            settings: Their entries say what is decoded, and how.
            most_bytes: Of memory that a value may take while it is decoded.
            waits: Whether an entry may have records wait whose schema is at fault; else all of
                these are bad.
            added_of: Returns the columns that a table got for new fields.
        """
        self._settings, self._most_bytes, self._waits = settings, most_bytes, waits
        self._added_of = added_of
        self._faults: dict[Target, str] = {}  # of schemas, by the tables that wait
        self._fault_counts: Counter[Target] = Counter()
        self._stack = AsyncExitStack()
        self._modules: dict[str, Any] = {}
        self._registry: Any = None  # a `SchemaRegistry`, once it is needed
        self._by_schema: Any = None  # a `RegistryDecoders`, like it
        self._counts: Any = None  # a `DecodingCounts`, once something is decoded
        self._versions: dict[Target, int] = {}  # table -> newest version of its subject
        self._mask_keys: Any = None  # `MaskKeys`, once something is masked

    async def __aenter__(self) -> Self:
        """Return self; the registry is asked when its first schema is needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End requests to the registry."""
        await self._stack.aclose()

    def totals(self) -> DecodingTotals:
        """Return what was decoded by now, and asked of the registry."""
        seconds, bad, new = ({}, {}, {}) if self._counts is None else self._counts.snapshot()
        requests = {} if self._registry is None else self._registry.requests
        faults = dict(self._fault_counts)
        return DecodingTotals(seconds, bad, self._versions, requests, faults, new)

    def new_fields(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names of fields that tables leave out, some of them, by the table's name."""
        by_table: dict[str, dict[str, None]] = {}
        for target, counts in self.totals().new_fields.items():
            by_table.setdefault(target.name, {}).update(dict.fromkeys(counts))
        return {table: tuple(sorted(names)[:NAMED]) for table, names in sorted(by_table.items())}

    async def of(
        self, target: Target, rows: Mapping[TopicPartition, Sequence[Records]]
    ) -> ValueDecoder | None:
        """Return the decoder of these records; see `DecoderOf`.

        Raises:
            RegistryUnavailable: Their schemas cannot be had now.
            StagingUnavailable: The columns of their table cannot be had now.
            SchemaAtFault: One of them cannot be used, and the records are to wait.
            MaskUnavailable: They cannot be masked or filtered as the settings want.
        """
        if (table := target.decoded) is None:
            return None
        keys: ValueDecoder | None = None
        new = Counter[str]()
        try:
            decoder = await self._of_part(table, target, rows, table, new)
            if table.envelope is not None:
                decoder = await self._of_events(decoder, table)
            if table.key is not None:
                keys = await self._of_part(table.key, target, rows, table, new)
            if table.key is not None or table.tombstones != "row":
                form = table.key and table.key.format
                decoder = (await self._module("record_decoder")).RecordDecoder(
                    decoder, keys, form, table.tombstones
                )
            if table.mode == "upsert":
                decoder = await self._of_changes(decoder, table)
        except SchemaAtFault as exc:
            raise self._waiting(target, str(exc)) from exc
        self._faults.pop(target, None)
        decoder.settings = table.decoding
        counts = await self._module("counts")
        if self._counts is None:
            self._counts = counts.DecodingCounts()
        counted: ValueDecoder = self._counts.counted(target, decoder, new)
        if table.mask is None and not table.where:
            return counted
        masking, key = await self._masking(table.mask)
        masked: ValueDecoder = masking.MaskedDecoder(counted, table, key)
        return masked

    async def mask_of(self, target: Target) -> RecordMask | None:
        """Return the mask of the rest of a table's records; see `MaskOf`.

        Raises:
            MaskUnavailable: Its secret cannot be read.
        """
        if target.entry is None or target.entry.mask is None:
            return None
        masking, key = await self._masking(target.entry.mask)
        mask: RecordMask | None = masking.record_mask(target, key)
        return mask

    async def _masking(self, mask: MaskSettings | None) -> tuple[Any, bytes]:
        """Return the module that masks, and the secret of a mask."""
        module = await self._module("masking")
        self._mask_keys = self._mask_keys or module.MaskKeys()
        return module, b"" if mask is None else await asyncio.to_thread(self._mask_keys.of, mask)

    def _waiting(self, target: Target, fault: str) -> SchemaAtFault:
        """Count and log that a table waits; return why."""
        reason = (
            f"records of topic {target.topic} wait: {fault}; mend the schema or the table's entry, "
            "or have them land as bad records (on_schema_fault)"
        )
        if self._faults.get(target) != fault:
            log(SCHEMA_REFUSED, topic=target.topic, table=target.name, reason=fault)
        self._faults[target] = fault
        self._fault_counts[target] += 1
        return SchemaAtFault(reason)

    async def _of_part(
        self,
        part: DecodingSettings,
        target: Target,
        rows: Mapping[TopicPartition, Sequence[Records]],
        table: TableSettings,
        new: Counter[str],
    ) -> ValueDecoder:
        """Return the decoder of a topic's values, or of its keys; it counts `new` fields."""
        decoder: ValueDecoder
        match part.format:
            case _ if part.by_schema:
                decoder = await self._of_registry(part, target, rows, table, new)
            case "json":
                fields, columns = await self._module("new_fields"), part.of_values
                added: Columns = ()
                if part is table and table.envelope is not None:
                    events = await self._module("change_events")
                    beyond = events.CountedRowFields(part.as_read, new)
                elif part is not table or table.new_fields == "ignore":
                    beyond = fields.CountedFields(columns, new, _within(part))
                elif table.new_fields == "rest":
                    beyond = fields.KeptFields(columns)
                else:
                    added = filled(await self._added_of(target.name), table.known)
                    beyond = fields.AddedFields(columns, added, new)
                decoder = (await self._module("json_values")).JsonDecoder(
                    columns, beyond, added=added, most_bytes=self._most_bytes
                )
            case "string":
                decoder = (await self._module("text_values")).TextDecoder(part.parsed)
            case "variant":
                decoder = (await self._module("variant_values")).VariantDecoder(
                    part.parsed, self._most_bytes
                )
            case "csv":
                values = await self._module("csv_values")
                decoder = values.CsvDecoder(part.parsed, part.delimiter, self._most_bytes)
        return decoder

    async def _of_registry(
        self,
        part: DecodingSettings,
        target: Target,
        rows: Mapping[TopicPartition, Sequence[Records]],
        table: TableSettings,
        new: Counter[str],
    ) -> ValueDecoder:
        client, decoders = await self._module("registry"), await self._module("registry_decoders")
        if self._by_schema is None:
            self._registry = client.SchemaRegistry(self._settings.registry)
            self._stack.push_async_exit(self._registry)
            names, settings = await self._module("schema_names"), self._settings.registry
            apicurio = names.Apicurio(settings.eight_byte_ids) if settings.is_apicurio else None
            self._by_schema = decoders.RegistryDecoders(self._registry, apicurio)
        reading: Any
        match part.format:
            case "avro":
                reading = (await self._module("avro_values")).AvroReading(self._most_bytes)
            case "json":
                reading = (await self._module("json_by_schema")).JsonReading(
                    new, _within(part), self._most_bytes
                )
            case _:
                values = await self._module("protobuf_values")
                reading = values.ProtobufReading(part.message_read, self._most_bytes)
        subject = part.subject_of(target.topic)
        decoder: ValueDecoder = await self._by_schema.decoder(
            subject,
            reading,
            stored(part.of_values),
            rows.values(),
            part.part,
            widen=table.widen,
            waits=self._waits and table.on_schema_fault == "wait",
        )
        version = self._by_schema.newest_version(subject, reading, widen=table.widen)
        if part.part == "value" and version is not None:
            self._versions[target] = version
        return decoder

    async def _of_events(self, events: ValueDecoder, table: TableSettings) -> ValueDecoder:
        """Return the decoder of the rows of events; raise `SchemaAtFault` if they are none."""
        module = await self._module("change_events")
        try:
            decoder: ValueDecoder = module.ChangeEventDecoder(events, table.primary_key)
        except ValueError as exc:
            raise SchemaAtFault(f"the subject of an `envelope` {exc}") from exc
        return decoder

    async def _of_changes(self, records: ValueDecoder, table: TableSettings) -> ValueDecoder:
        """Return the decoder of changes of rows; raise `SchemaAtFault` if they name no row."""
        module = await self._module("keyed_changes")
        try:
            decoder: ValueDecoder = module.KeyedDecoder(records, table)
        except ValueError as exc:
            raise SchemaAtFault(f"by the columns of the subject, {exc}") from exc
        return decoder

    async def _module(self, name: str) -> Any:
        if name not in self._modules:
            full = f"binwright.consumer.decode.{name}"
            self._modules[name] = await asyncio.to_thread(import_module, full)
        return self._modules[name]


def _within(part: DecodingSettings) -> str:
    """Return the column that has what is decoded as a struct, "": it becomes columns."""
    return KAFKA_KEY if part.part == "key" else ""
