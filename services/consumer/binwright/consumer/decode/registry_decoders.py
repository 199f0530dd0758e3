"""Makes decoders of values with the schemas that a registry has."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from binwright.consumer.decide.columns import united
from binwright.consumer.decode.one_by_one import Bad
from binwright.consumer.decode.registry import Schema, Version
from binwright.consumer.decode.registry_schemas import SchemaName, refused
from binwright.consumer.decode.schema_names import (
    Apicurio,
    NamesDecoder,
    Part,
    schema_names,
)
from binwright.protocol.errors import RegistryUnavailable, SchemaAtFault
from binwright.protocol.log_events import LogEvent
from binwright.protocol.ports.kafka import Records
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.run import ungrouped
from binwright.tables.columns import Columns
from binwright.tables.ports import ValueDecoder
from binwright.tables.schemas import SchemaRefused

SCHEMA_MISFIT = LogEvent.warning(
    "schema.misfit",
    "A version of a subject has no columns, or gives one another type than an older version: "
    "values that do not fit are bad.",
)

ASKED_AGAIN, PAUSE_S = 2, 1.0
"""How often, for a schema that is not there: the registry's followers may be behind."""
AT_ONCE = 100  # ids of a file that are asked for together, the most frequent ones first
FORGOTTEN_S = 60.0  # after which the registry is asked again for a schema that it did not have
CONCURRENT = 4  # requests


_Key = tuple[str, SchemaName]
"""A subject and a name: of each context's own ids, those of the subject's are meant."""


class HasColumns(Protocol):
    """A schema as a table reads it."""

    @property
    def columns(self) -> Columns:
        """Return the columns of all that it has; raise `SchemaRefused`."""


Read = TypeVar("Read", bound=HasColumns)


class SchemaReading(Protocol[Read]):
    """How a table reads schemas. Equal ones read alike."""

    def of(self, schema: Schema) -> Read:
        """Return what the table reads values by; raise `SchemaRefused` if it cannot."""

    def decoder(self, columns: Columns, schemas: Mapping[int, Read | Bad]) -> ValueDecoder:
        """Return the decoder into these columns, by the schemas that values name."""

    def misfit(self, schema: Read, columns: Columns) -> str:
        """Return why no value of a schema can be read into these columns, "" if some may be."""

    def header_fault(self, rest: bytes) -> str:
        """Return why a record's header is wrong in which this follows the schema, "" if not."""


class Registry(Protocol):
    """What a `SchemaRegistry` answers."""

    async def schema(self, name: SchemaName, subject: str) -> Schema | SchemaRefused | None:
        """Return the schema with this id or GUID, in the context of a subject."""

    async def subjects_of(self, number: int, subject: str) -> Collection[str]:
        """Return the subjects that have, or had, the schema of an id; none: it cannot be told."""

    async def versions(self, subject: str) -> tuple[int, ...]:
        """Return the numbers of a subject's versions."""

    async def version(self, subject: str, version: int) -> Version | None:
        """Return a version of a subject."""


@dataclass(slots=True)
class _Subject:
    """What is known of one subject."""

    widen: bool  # see `RegistryDecoders.decoder`
    versions: dict[int, Version] = field(default_factory=dict)
    order: tuple[int, ...] = ()  # of their numbers: those that count first come first
    asked: frozenset[SchemaName] = frozenset()  # schemas that it was asked about
    columns: Columns = ()  # of all versions, in their order


class RegistryDecoders:
    """Makes the decoders of files, by the schemas of their values.

    A table has the columns that its settings name, or those of all versions of its topic's
    subject: then its columns do not depend on which records a consumer saw.
    """

    def __init__(self, registry: Registry, apicurio: Apicurio | None = None) -> None:
        """Ask a registry.

        Args:
            registry: It has the schemas.
            apicurio: Which of Apicurio's forms values may have, if it is Apicurio's.
        """
        self._registry, self._apicurio = registry, apicurio
        self._schemas: dict[_Key, Schema | Bad] = {}
        self._missing: dict[_Key, float] = {}  # not in the registry -> when it was asked
        self._subjects: dict[tuple[str, SchemaReading[Any], bool], _Subject] = {}
        self._of_other_subjects: dict[_Key, float] = {}  # of other subjects -> when that was asked
        self._slots = asyncio.Semaphore(CONCURRENT)

    async def decoder(
        self,
        subject: str,
        reading: SchemaReading[Read],
        columns: Columns,
        rows: Collection[Sequence[Records]],
        part: Part = "value",
        *,
        widen: bool = False,
        waits: bool = False,
    ) -> ValueDecoder:
        """Return the decoder of these records.

        Args:
            subject: Of the registry.
            reading: How the table reads schemas.
            columns: Of the table; none: those of the subject's versions.
            rows: The records of a file.
            part: Which part of them is decoded.
            widen: Whether a column has the widest type that it has in any version.
            waits: Whether records wait whose schema is at fault; else they are bad.

        Raises:
            RegistryUnavailable: It does not answer, or has no such subject.
            SchemaAtFault: Some records name a schema of the subject that cannot be used.
        """
        names = await asyncio.to_thread(schema_names, rows, part, self._apicurio)
        named = await self._named(subject, names.counts)
        schemas = {name: _read(name, each, reading) for name, each in named.items()}
        used = {n: each for n, each in schemas.items() if not isinstance(each, Bad)}
        if used and not columns:
            known = self._subjects.setdefault((subject, reading, widen), _Subject(widen))
            columns = await self._subject_columns(subject, reading, known, frozenset(used))
            schemas |= _checked(used, columns, subject)
        if waits:
            faults = await asyncio.to_thread(_faults, reading, columns, schemas)
            for name, why in faults.items():
                if await self._is_own((subject, name)):
                    # Both are asked for again, as they may be mended.
                    self._subjects.pop((subject, reading, widen), None)
                    if isinstance(named[name], Bad):
                        self._schemas.pop((subject, name), None)
                    raise SchemaAtFault(f"schema {name} of {subject}: {why}")
        ids = names.ids()
        decoder = reading.decoder(columns, {ids[name]: each for name, each in schemas.items()})
        if not names.elsewhere:
            return decoder
        return NamesDecoder(decoder, ids, reading.header_fault, part, self._apicurio)

    def newest_version(
        self, subject: str, reading: SchemaReading[Any], *, widen: bool = False
    ) -> int | None:
        """Return the newest version of a subject whose versions a table has the columns of."""
        known = self._subjects.get((subject, reading, widen))
        return None if known is None else max(known.versions, default=None)

    async def _named(
        self, subject: str, counts: Counter[SchemaName]
    ) -> dict[SchemaName, Schema | Bad]:
        """Return the schemas that values of a subject name."""
        now = loop_s()
        self._missing = {key: at for key, at in self._missing.items() if now - at < FORGOTTEN_S}
        keys: list[_Key] = [(subject, name) for name, _ in counts.most_common()]
        missing = await self._look_up(
            [key for key in keys if key not in self._schemas and key not in self._missing]
        )
        for _ in range(ASKED_AGAIN):
            if not missing:
                break
            await asyncio.sleep(PAUSE_S)
            await self._all(self._ask(key) for key in missing[:AT_ONCE])
            missing = [key for key in missing if key not in self._schemas]
        self._missing.update(dict.fromkeys(missing, loop_s()))
        return {key[1]: self._schemas.get(key) or self._unknown(key) for key in keys}

    async def _look_up(self, keys: Sequence[_Key]) -> list[_Key]:
        """Ask for schemas, as long as some are there; return which of those asked for are not."""
        missing: list[_Key] = []
        for begin in range(0, len(keys), AT_ONCE):
            asked = keys[begin : begin + AT_ONCE]
            await self._all(self._ask(key) for key in asked)
            not_there = [key for key in asked if key not in self._schemas]
            missing += not_there
            if len(not_there) == len(asked):
                break  # what is left is rarer garbage
        return missing

    def _unknown(self, key: _Key) -> Bad:
        name = key[1]
        if key in self._missing:
            return Bad("schema_unknown", f"the registry has no schema {name}")
        why = f"after {AT_ONCE} of its file that are not there"
        return Bad("schema_unknown", f"the registry was not asked for schema {name} {why}")

    async def _ask(self, key: _Key) -> None:
        subject, name = key
        match await self._registry.schema(name, subject):
            case None:
                pass
            case SchemaRefused() as exc:
                self._schemas[key] = refused(name, str(exc))
            case schema:
                self._schemas[key] = schema

    async def _is_own(self, key: _Key) -> bool:
        """Return whether a schema is one of the subject, as far as the registry can tell.

        One of another subject is named by mistake, or by what only looks like an id: then a single
        record would stop its topic. Of a topic without the subject any schema may be. No bytes are
        a GUID by chance, and an id of Apicurio's is one where the settings or a header say so.
        """
        subject, name = key
        if not isinstance(name, int):
            return True
        now = loop_s()
        self._of_other_subjects = {
            key: at for key, at in self._of_other_subjects.items() if now - at < FORGOTTEN_S
        }
        if key in self._of_other_subjects:
            return False
        subjects = await self._registry.subjects_of(name, subject)
        if not subjects or subject in subjects or not await self._registry.versions(subject):
            return True
        self._of_other_subjects[key] = now
        return False

    async def _subject_columns(
        self,
        subject: str,
        reading: SchemaReading[Any],
        known: _Subject,
        used: frozenset[SchemaName],
    ) -> Columns:
        """Return the columns of a subject, asked again if it may have a version that is new."""
        if used <= known.asked:
            return known.columns
        numbers = await self._registry.versions(subject)
        if not numbers:
            raise RegistryUnavailable(
                f"the registry has no subject {subject}; name the right one as `subject` of the "
                "table's entry in `tables`"
            )

        async def ask(version: int) -> None:
            if (registered := await self._registry.version(subject, version)) is not None:
                known.versions[version] = registered

        await self._all(ask(version) for version in numbers if version not in known.versions)
        known.order = numbers
        known.columns = _columns_of(subject, reading, known)
        known.asked |= used
        return known.columns

    async def _all(self, requests: Iterable[Awaitable[None]]) -> None:
        async def one(request: Awaitable[None]) -> None:
            async with self._slots:
                await request

        with ungrouped(RegistryUnavailable):
            async with asyncio.TaskGroup() as tasks:
                for request in requests:
                    tasks.create_task(one(request))


def _read(name: SchemaName, schema: Schema | Bad, reading: SchemaReading[Read]) -> Read | Bad:
    if isinstance(schema, Bad):
        return schema
    try:
        return reading.of(schema)
    except SchemaRefused as exc:
        return refused(name, str(exc))


def _faults(
    reading: SchemaReading[Read], columns: Columns, schemas: Mapping[SchemaName, Read | Bad]
) -> dict[SchemaName, str]:
    """Return the schemas that the registry has, and of which no value can be read, and why."""
    faults: dict[SchemaName, str] = {}
    for name, schema in schemas.items():
        if not isinstance(schema, Bad):
            why = reading.misfit(schema, columns)
        else:
            why = "" if schema.kind == "schema_unknown" else schema.reason
        if why:
            faults[name] = why.removeprefix(f"schema {name}: ")
    return faults


def _columns_of(subject: str, reading: SchemaReading[Any], known: _Subject) -> Columns:
    """Return the columns of all versions; of one with two types the first, or the wider."""
    columns: Columns = ()
    widen = known.widen
    for number in known.order:
        if (version := known.versions.get(number)) is None:
            continue  # it was deleted between two requests
        fault, added = "", ()
        try:
            if not isinstance(version.schema, SchemaRefused):
                added = reading.of(version.schema).columns
            columns = united(columns, added, widen=widen)
        except SchemaRefused as exc:
            fault = str(exc)
        except ValueError as exc:
            columns, fault = united(columns, added, first_wins=True, widen=widen), str(exc)
        if fault:
            log(SCHEMA_MISFIT, subject=subject, version=number, reason=fault)
    return columns


def _checked(
    used: Mapping[SchemaName, Read], columns: Columns, subject: str
) -> dict[SchemaName, Read | Bad]:
    """Return the schemas, without those that have more than the columns do: nothing is left out."""
    faults = {number: _fault(schema, columns, subject) for number, schema in used.items()}
    return {n: refused(n, fault) if (fault := faults[n]) else used[n] for n in used}


def _fault(schema: HasColumns, columns: Columns, subject: str) -> str:
    """Return why not all fields of a schema have columns, "" if they have."""
    try:
        has_more = united(columns, schema.columns, first_wins=True) != columns
    except SchemaRefused as exc:
        return str(exc)
    return f"is none of {subject}, and has fields that no version of it has" if has_more else ""
