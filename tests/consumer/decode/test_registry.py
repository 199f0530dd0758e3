"""Replies of a registry become schemas; `tests/integration/registry` asks a real one."""

import json
import sys
from collections.abc import AsyncIterator, Coroutine
from email.message import Message
from io import BytesIO
from typing import Any
from urllib.error import HTTPError
from uuid import UUID

import pytest
from tests.consumer.decode.avro import record
from tests.consumer.decode.json_schema import objects
from tests.consumer.decode.protobuf import proto

from binwright.consumer.decode import registry
from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.consumer.decode.registry import SchemaRegistry
from binwright.protocol.errors import RegistryUnavailable
from binwright.runtime.settings.registry import RegistrySettings
from binwright.tables.columns import columns_text
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.schemas import SchemaRefused


def stored(text: str, *references: tuple[str, str], kind: str = "PROTOBUF") -> dict[str, Any]:
    """Return a reply: a schema and those that it uses, as names and subjects."""
    used = [{"name": name, "subject": subject, "version": 1} for name, subject in references]
    return {"id": 1, "schema": text, "schemaType": kind, "references": used}


POINT = stored('syntax = "proto3"; package geo; message Point { int32 x = 1; }')
OTHER_POINT = stored('syntax = "proto3"; package geo; message Point { string x = 1; }')
LINE = stored(
    'syntax = "proto3"; package geo; import "point.proto"; message Line { Point a = 1; }',
    ("point.proto", "points"),
)
HEAD = 'import "point.proto"; import "line.proto";'
BOTH = proto("geo.Point at", "geo.Line line", head=HEAD)


class Replies(SchemaRegistry):
    """A client of a registry in memory."""

    def __init__(self) -> None:
        super().__init__(RegistrySettings(url="http://127.0.0.1:1"))
        self.replies: dict[str, Any] = {
            "subjects/points/versions/1": POINT,
            "subjects/other-points/versions/1": OTHER_POINT,
            "subjects/lines/versions/1": LINE,
        }

    def _get(self, path: str) -> Any:
        return self.replies.get(path)

    async def of(self, reply: dict[str, Any]) -> Any:
        """Return the schema of a reply."""
        self.replies["schemas/ids/7"] = reply
        return await self.schema(7)


@pytest.fixture
async def client() -> AsyncIterator[Replies]:
    async with Replies() as client:
        yield client


async def test_each_schema_is_of_its_own_format(client: Replies) -> None:
    avro = stored(json.dumps(record(("id", "int"))))
    del avro["schemaType"]  # as registries leave it out
    assert isinstance(await client.of(avro), AvroSchema)
    assert isinstance(await client.of(stored(proto("int32 id"))), ProtobufSchema)
    assert isinstance(await client.of(stored("{}", kind="JSON")), JsonSchema)
    refused = await client.of(stored("{}", kind="XML"))
    assert isinstance(refused, SchemaRefused)
    assert str(refused) == "is of XML, not of Avro, Protobuf or JSON"


async def test_a_file_that_is_imported_twice_comes_once(client: Replies) -> None:
    found = await client.of(stored(BOTH, ("point.proto", "points"), ("line.proto", "lines")))
    assert isinstance(found, ProtobufSchema), found
    assert columns_text(found.columns("")) == "at struct<x:int>, line struct<a:struct<x:int>>"


async def test_a_json_schema_comes_with_those_that_it_uses(client: Replies) -> None:
    client.replies["subjects/points/versions/1"] = stored(json.dumps(objects(x="integer")))
    schema = json.dumps(objects(at={"$ref": "point.json"}))
    found = await client.of(stored(schema, ("point.json", "points"), kind="JSON"))
    assert isinstance(found, JsonSchema), found
    assert columns_text(found.columns) == "at struct<x:bigint>"


@pytest.mark.parametrize(
    ("references", "reason"),
    [
        (
            [("point.proto", "other-points"), ("line.proto", "lines")],
            "uses two versions of point",
        ),
        ([("point.proto", "nobody")], "uses version 1 of nobody, which is not there"),
        ([("point.proto", "points")], "is no Protobuf schema: line.proto: File not found"),
        ([("../point.proto", "points")], "imports '../point.proto', which is no name of a file"),
    ],
)
async def test_a_schema_whose_imports_cannot_be_had_is_refused(
    client: Replies, references: list[tuple[str, str]], reason: str
) -> None:
    refused = await client.of(stored(BOTH, *references))
    assert isinstance(refused, SchemaRefused)
    assert str(refused).startswith(reason)


async def test_schemas_that_use_each_other_are_refused(client: Replies) -> None:
    client.replies["subjects/points/versions/1"] = stored("", ("line.proto", "lines"))
    refused = await client.of(stored(BOTH, ("line.proto", "lines")))
    assert isinstance(refused, SchemaRefused)
    assert str(refused) == "uses more than 100 other schemas"


async def test_protoc_that_cannot_be_run_is_not_the_records_fault(
    client: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/not/there")
    with pytest.raises(RegistryUnavailable, match="protoc cannot be run"):
        await client.of(stored(proto("int32 id")))
    assert client.requests == {"failed": 1}
    monkeypatch.undo()
    assert isinstance(await client.of(stored(proto("int32 id"))), ProtobufSchema)


# --- contexts, and what was deleted ---------------------------------------------------------------


async def test_an_id_is_asked_for_in_the_context_of_its_subject(client: Replies) -> None:
    """Each context counts its ids from 1: the default one mostly has the same id, too."""
    client.replies["schemas/ids/5"] = stored(proto("string wrong"))
    client.replies["schemas/ids/5?subject=%3A.staging%3Aorders-value"] = stored(proto("int32 id"))
    found = await client.schema(5, ":.staging:orders-value")
    assert isinstance(found, ProtobufSchema), found
    assert columns_text(found.columns("")) == "id int"


@pytest.mark.parametrize(
    ("reference", "reported", "used"),
    [
        ("points", None, "%3A.staging%3Apoints"),
        (":.shared:points", None, "%3A.shared%3Apoints"),
        (":.:points", None, "%3A.%3Apoints"),
        ("points", ":.found:orders-value", "%3A.found%3Apoints"),
    ],
)
async def test_what_a_schema_uses_is_of_its_own_context(
    client: Replies, reference: str, reported: str | None, used: str
) -> None:
    client.replies["subjects/points/versions/1"] = OTHER_POINT
    client.replies[f"subjects/{used}/versions/1"] = POINT
    schema = stored(proto("geo.Point at", head='import "p.proto";'), ("p.proto", reference))
    client.replies["schemas/ids/5?subject=%3A.staging%3Aorders-value"] = schema | {
        "subject": reported
    }
    found = await client.schema(5, ":.staging:orders-value")
    assert isinstance(found, ProtobufSchema), found
    assert columns_text(found.columns("")) == "at struct<x:int>"


async def test_deleted_versions_stand_behind_those_that_are_there(client: Replies) -> None:
    client.replies["subjects/orders/versions"] = [2, 4]
    client.replies["subjects/orders/versions?deleted=true"] = [1, 2, 3, 4]
    client.replies["subjects/orders/versions/1?deleted=true"] = stored(proto("int32 old"))
    assert await client.versions("orders") == (2, 4, 1, 3)
    found = await client.version("orders", 1)
    assert found is not None
    assert isinstance(found.schema, ProtobufSchema)


async def test_a_deleted_version_that_is_used_is_found(client: Replies) -> None:
    client.replies["subjects/points/versions/1"] = None
    client.replies["subjects/points/versions/1?deleted=true"] = POINT
    found = await client.of(
        stored(proto("geo.Point at", head='import "p.proto";'), ("p.proto", "points"))
    )
    assert isinstance(found, ProtobufSchema), found


# --- replies that no registry sends ---------------------------------------------------------------


def refusing(code: int, body: bytes = b"") -> HTTPError:
    return HTTPError("http://127.0.0.1:1", code, "no", Message(), BytesIO(body))


class _Opened:
    """A server that answers each request with the same bytes, or an error."""

    def __init__(self, reply: bytes | HTTPError) -> None:
        self.reply = reply

    def open(self, _request: Any, timeout: float) -> Any:
        assert timeout
        if isinstance(self.reply, HTTPError):
            raise self.reply
        return BytesIO(self.reply)


@pytest.mark.parametrize(
    "reply",
    [
        b"[" * 100_000,
        b"{}",
        b"[1]",
        b'"text"',
        b"\xff\xfe",
        b'{"schema": 1}',
        b'{"schema": {}}',
        b'{"schema": "{}", "references": 1}',
        b'{"schema": "{}", "references": [{"subject": "a", "version": 1e999}]}',
        b'{"schema": "{}", "references": [{"subject": "a", "version": "newest"}]}',
        b'{"schema": "{}", "references": [[]]}',
        b'{"schema": "{}", "subject": 1}',
        refusing(404, b"[" * 100_000),
        refusing(404, b'{"error_code": 1e999}'),
        refusing(500, b"<html>"),
        refusing(302),
    ],
)
async def test_a_reply_of_no_registry_is_one_that_is_away(
    monkeypatch: pytest.MonkeyPatch, reply: bytes | HTTPError
) -> None:
    monkeypatch.setattr(registry, "opener", lambda *_: _Opened(reply))
    async with SchemaRegistry(RegistrySettings(url="http://127.0.0.1:1")) as client:
        asked: list[Coroutine[Any, Any, Any]] = [
            client.schema(1),
            client.version("a", 1),
            client.schema(UUID(int=1)),
        ]
        if reply != b"[1]":
            asked.append(client.versions("a"))
        for request in asked:
            with pytest.raises(RegistryUnavailable, match="does not give"):
                await request


async def test_a_schema_that_is_nested_without_end_is_refused(client: Replies) -> None:
    deep: Any = "int"
    for _ in range(5_000):
        deep = (
            f'{{"type": "array", "items": {deep if deep != "int" else chr(34) + "int" + chr(34)}}}'
        )
    for kind in ("AVRO", "JSON"):
        assert isinstance(await client.of(stored(deep, kind=kind)), SchemaRefused)
