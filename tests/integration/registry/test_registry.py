"""What a real registry answers, and what it means for records."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from tests.consumer.decode.avro import record
from tests.integration.registry.server import RegistryServer, run_registry
from tests.integration.security.certificates import Authority

from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.consumer.decode.registry import Schema, SchemaRegistry
from binwright.consumer.decode.registry_schemas import ApicurioId
from binwright.protocol.errors import RegistryUnavailable
from binwright.runtime.settings.registry import RegistrySettings
from binwright.tables.columns import columns_text
from binwright.tables.schemas import SchemaRefused

pytestmark = pytest.mark.integration

ONE = record(("id", "int"))
TWO = record(("id", "int"), ("item", ["null", "string"]))
POINT = record(("x", "int"), name="geo.Point")
LINE = record(("a", "geo.Point"), ("b", "geo.Point"), name="geo.Line")


def columns(schema: Schema | SchemaRefused | None) -> str:
    assert isinstance(schema, AvroSchema), schema
    return columns_text(schema.columns)


async def test_schemas_come_by_id_and_by_subject(registry: RegistryServer) -> None:
    ids = [registry.register("both-value", schema) for schema in (ONE, TWO)]
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        assert columns(await client.schema(ids[1])) == "id int, item string"
        assert await client.versions("both-value") == (1, 2)
        found = await client.version("both-value", 1)
    assert found is not None
    assert found.number == ids[0]
    assert columns(found.schema) == "id int"


async def test_versions_that_were_deleted_are_known_behind_the_others(
    registry: RegistryServer,
) -> None:
    ids = [registry.register("tidied-value", schema) for schema in (TWO, ONE)]
    registry.delete("tidied-value", 1)
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        assert await client.versions("tidied-value") == (2, 1)
        found = await client.version("tidied-value", 1)
        assert found is not None
        assert found.number == ids[0]
        assert columns(found.schema) == columns(await client.schema(ids[0], "tidied-value"))
        assert await client.subjects_of(ids[0], "tidied-value") >= {"tidied-value"}
        assert await client.subjects_of(999_999, "tidied-value") == frozenset()


async def test_schemas_come_by_apicurio_s_own_ids(registry: RegistryServer) -> None:
    registry.register("own.Point", POINT)
    used = [{"name": "geo.Point", "subject": "own.Point", "version": 1}]
    contents = {
        registry.register("own-line-value", LINE, used): "a struct<x:int>, b struct<x:int>",
        registry.register("own-value", TWO): "id int, item string",
    }
    message = 'syntax = "proto3"; message M { int32 id = 1; }'
    of_protobuf = registry.register("own-protobuf-value", message, kind="PROTOBUF")
    subjects = ["own-line-value", "own-value"]
    own_ids = [registry.global_id(subject) for subject in subjects]
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        for number, own, text in zip(contents, own_ids, contents.values(), strict=True):
            assert columns(await client.schema(ApicurioId("contentId", number))) == text
            assert columns(await client.schema(ApicurioId("globalId", own))) == text
        assert await client.schema(ApicurioId("globalId", 999_999)) is None
        refused = await client.schema(ApicurioId("contentId", of_protobuf))
    assert isinstance(refused, SchemaRefused)
    elsewhere = registry.url.replace("/apis/ccompat/v7", "/apis/nothing")
    async with SchemaRegistry(RegistrySettings(url=elsewhere)) as client:
        assert await client.schema(ApicurioId("globalId", own_ids[0])) is None


async def test_a_schema_brings_those_that_it_uses(registry: RegistryServer) -> None:
    def used(name: str, subject: str) -> list[dict[str, Any]]:
        return [{"name": name, "subject": subject, "version": 1}]

    registry.register("geo.Point", POINT)
    registry.register("geo.Line", LINE, used("geo.Point", "geo.Point"))
    path = record(("line", "geo.Line"), name="geo.Path")
    number = registry.register("paths-value", path, used("geo.Line", "geo.Line"))
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        schema = await client.schema(number)
    assert columns(schema) == "line struct<a:struct<x:int>,b:struct<x:int>>"


async def test_what_is_not_there_differs_from_what_is_wrong(registry: RegistryServer) -> None:
    fields = [{"name": f"f{n}", "type": "int"} for n in range(10_001)]
    wide = {"type": "record", "name": "Wide", "fields": fields}
    number = registry.register("number-value", json.dumps(wide))
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        assert await client.schema(999_999) is None
        assert await client.versions("no such/subject") == ()
        assert await client.version("no-such-subject", 1) is None
        refused = await client.schema(number)
    assert isinstance(refused, SchemaRefused)
    assert str(refused) == "has more than 10000 parts"

    elsewhere = registry.url.replace("/apis/ccompat/v7", "/apis/nothing")
    async with SchemaRegistry(RegistrySettings(url=elsewhere)) as client:
        with pytest.raises(RegistryUnavailable, match=r"does not give schema 1: 404"):
            await client.schema(1)


@pytest.mark.nightly
async def test_a_registry_that_is_away_is_reported_and_asked_again(tmp_path: Path) -> None:
    async with run_registry(tmp_path) as server:
        number = server.register("orders-value", ONE)
        async with SchemaRegistry(RegistrySettings(url=server.url)) as client:
            await server.kill()
            with pytest.raises(RegistryUnavailable, match=r"does not give schema 1: .*refused"):
                await client.schema(1)
            await server.start()
            assert server.register("orders-value", ONE) == number
            assert columns(await client.schema(number)) == "id int"
            assert await client.schema(999_999) is None
        assert client.requests == {"failed": 1, "answered": 1, "missing": 1}


# --- behind TLS and passwords ---------------------------------------------------------------------


@asynccontextmanager
async def guarded(
    registry: RegistryServer, authority: Authority, logins: Sequence[str]
) -> AsyncIterator[str]:
    """Give the address of a door to the registry: TLS, clients' certificates, and a login."""
    behind = urlsplit(registry.url)

    def ask(path: str) -> tuple[int, bytes]:
        connection = HTTPConnection(str(behind.hostname), behind.port, timeout=10)
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read()

    async def serve(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") not in logins:
            return web.json_response({"error_code": 401, "message": "who are you"}, status=401)
        status, body = await asyncio.to_thread(ask, request.raw_path)
        return web.Response(status=status, body=body, content_type="application/json")

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.ca_file))
    context.verify_mode = ssl.CERT_REQUIRED
    listener = authority.broker("127.0.0.1")
    both = authority.directory / "server.pem"
    both.write_text(listener["ssl.keystore.certificate.chain"] + listener["ssl.keystore.key"])
    context.load_cert_chain(both)
    application = web.Application()
    application.router.add_get("/{path:.*}", serve)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        yield f"https://127.0.0.1:{port}{behind.path}"
    finally:
        await runner.cleanup()


async def test_a_guarded_registry_is_asked_with_what_the_files_hold_now(
    registry: RegistryServer, tmp_path: Path
) -> None:
    number = registry.register("guarded-value", ONE)
    authority, other = Authority(tmp_path / "ca"), Authority(tmp_path / "other")
    certificate, key = authority.client("127.0.0.1")
    secret = tmp_path / "secret"
    secret.write_text("old\n")
    basic = "Basic " + base64.b64encode(b"reader:new").decode()
    trusted: dict[str, Any] = {
        "ca_file": authority.ca_file,
        "certificate_file": certificate,
        "key_file": key,
    }
    by_password: dict[str, Any] = {"username": "reader", "password_file": secret}
    async with guarded(registry, authority, [basic, "Bearer new"]) as url:
        async with SchemaRegistry(RegistrySettings(url=url, **trusted, **by_password)) as client:
            with pytest.raises(RegistryUnavailable, match="401 who are you") as refused:
                await client.schema(number)
            assert "old" not in str(refused.value)
            secret.write_text("new\n")
            assert columns(await client.schema(number)) == "id int"
        async with SchemaRegistry(
            RegistrySettings(url=url, **trusted, token_file=secret)
        ) as client:
            assert columns(await client.schema(number)) == "id int"
            secret.unlink()
            with pytest.raises(RegistryUnavailable, match="No such file"):
                await client.schema(number)
        for wrong, why in (
            ({**trusted, "ca_file": other.ca_file}, "certificate verify failed"),
            (
                {"ca_file": authority.ca_file},
                "certificate required|closed",
            ),  # as the answer comes late or early
        ):
            async with SchemaRegistry(RegistrySettings(url=url, **wrong)) as client:
                with pytest.raises(RegistryUnavailable, match=why):
                    await client.schema(number)
