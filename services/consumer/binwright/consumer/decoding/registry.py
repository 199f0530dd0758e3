"""Asks a schema registry, by the requests of Confluent's."""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Literal, Self, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPSHandler, Request
from uuid import UUID

from binwright.consumer.decoding.avro_schemas import AvroSchema
from binwright.consumer.decoding.protobuf_compiler import compiled
from binwright.consumer.decoding.protobuf_schemas import ProtobufSchema
from binwright.consumer.decoding.registry_schemas import SchemaName
from binwright.protocol.errors import RegistryUnavailable
from binwright.protocol.json_schemas import JsonSchema
from binwright.protocol.schemas import SchemaRefused
from binwright.runtime.secret_files import read_secret
from binwright.runtime.settings import RegistrySettings
from binwright.runtime.web import basic_login, opener

T = TypeVar("T")
Schema = AvroSchema | ProtobufSchema | JsonSchema
Outcome = Literal["answered", "missing", "failed"]

REQUEST_S = 10.0  # for each step of a request
ANSWER_S = 60.0  # for all requests of one answer
LARGEST_REPLY = 4 << 20
THREADS = 4
MOST_REFERENCES = 100  # schemas that one uses, with those that these use
_NOT_FOUND = frozenset({40401, 40402, 40403})  # subject, version, schema


class _NoSuchPath(OSError):
    """The server has nothing at all at a path."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject."""

    number: int  # its schema's id
    schema: Schema | SchemaRefused


class SchemaRegistry:
    """The registry at `settings.url`. Requests block, so they run in threads of their own.

    Attributes:
        requests: How many had which outcome.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self.requests: Counter[Outcome] = Counter()
        self._settings = settings
        self._threads = ThreadPoolExecutor(THREADS, "registry")

    async def __aenter__(self) -> Self:
        """Return self; each request connects."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the threads, without waiting for a request."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def schema(self, name: SchemaName) -> Schema | SchemaRefused | None:
        """Return the schema with this id or GUID, or why it cannot be used; None: there is none.

        A registry that serves no GUIDs has none.

        Raises:
            RegistryUnavailable: It does not answer, or refuses.
        """

        def ask() -> Schema | SchemaRefused | None:
            found = (
                self._by_guid(name) if isinstance(name, UUID) else self._get(f"schemas/ids/{name}")
            )
            return None if found is None else self._parsed(found)

        return await self._run(f"schema {name}", ask)

    async def versions(self, subject: str) -> tuple[int, ...]:
        """Return the numbers of a subject's versions, oldest first; raise as `schema` does."""

        def ask() -> tuple[int, ...]:
            found = self._get(f"subjects/{quote(subject, safe='')}/versions")
            return tuple(sorted(map(int, found or ())))

        return await self._run(f"subject {subject}", ask)

    async def version(self, subject: str, version: int) -> Version | None:
        """Return a version of a subject; None: there is none. Raises as `schema` does."""

        def ask() -> Version | None:
            found = self._get(f"subjects/{quote(subject, safe='')}/versions/{version}")
            return None if found is None else Version(int(found["id"]), self._parsed(found))

        return await self._run(f"version {version} of {subject}", ask)

    # --- inside ----------------------------------------------------------------------------------

    async def _run(self, wanted: str, ask: Callable[[], T]) -> T:
        url = self._settings.url
        outcome: Outcome = "failed"
        try:
            async with asyncio.timeout(ANSWER_S):
                found = await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        except (OSError, HTTPException) as exc:  # urllib's, ssl's, read_secret's; also a timeout
            reason = getattr(exc, "reason", None) or str(exc) or "no answer in time"
            raise RegistryUnavailable(f"{url} does not give {wanted}: {reason}") from exc
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise RegistryUnavailable(
                f"{url} does not give {wanted}: it replies something else than a schema registry; "
                "check the path in registry.url"
            ) from exc
        else:
            outcome = "answered" if found else "missing"
            return found
        finally:
            self.requests[outcome] += 1

    def _by_guid(self, guid: UUID) -> Any:
        """Return a reply, None if there is none, or GUIDs are unknown to this registry.

        Confluent's has the path, and Redpanda's from 26.3 on (its API reference, "Get a schema by
        GUID"). Where another path is there, the server is a registry that has it not.
        """
        try:
            return self._get(f"schemas/guids/{guid}")
        except _NoSuchPath:
            if isinstance(self._get("schemas/types"), list):
                return None
            raise

    def _get(self, path: str) -> Any:
        """Return a reply; None if the registry has nothing of that name."""
        request = Request(f"{self._settings.url}/{path}", headers=self._headers())  # noqa: S310 - checked by the settings
        try:
            with opener(*self._https()).open(request, timeout=REQUEST_S) as got:
                return json.loads(got.read(LARGEST_REPLY))
        except HTTPError as exc:
            _none_or_raise(exc)
            return None

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        settings = self._settings
        if settings.token_file is not None:
            token = read_secret(settings.token_file, "registry.token_file")
            headers["Authorization"] = f"Bearer {token}"
        if settings.password_file is not None:
            password = read_secret(settings.password_file, "registry.password_file")
            headers["Authorization"] = basic_login(str(settings.username), password)
        return headers

    def _https(self) -> Iterator[HTTPSHandler]:
        settings = self._settings
        if str(settings.url).startswith("https:"):
            context = ssl.create_default_context(cafile=settings.ca_file)
            if settings.certificate_file is not None:
                context.load_cert_chain(settings.certificate_file, settings.key_file)
            yield HTTPSHandler(context=context)

    def _parsed(self, reply: Any) -> Schema | SchemaRefused:
        kind = reply.get("schemaType", "AVRO")
        try:
            match kind:
                case "AVRO":
                    used = [text for _, text in self._references(reply, [MOST_REFERENCES])]
                    return AvroSchema(reply["schema"], used)
                case "PROTOBUF":
                    files = _files(self._references(reply, [MOST_REFERENCES]))
                    return ProtobufSchema(compiled(reply["schema"], files))
                case "JSON":
                    files = _files(self._references(reply, [MOST_REFERENCES]))
                    return JsonSchema(reply["schema"], files)
        except SchemaRefused as exc:
            return exc
        return SchemaRefused(f"is of {kind}, not of Avro, Protobuf or JSON")

    def _references(self, reply: Any, left: list[int]) -> Iterator[tuple[str, str]]:
        """Yield the schemas that one uses by name, each after those that it uses itself."""
        for each in reply.get("references") or ():
            left[0] -= 1
            if left[0] < 0:
                raise SchemaRefused(f"uses more than {MOST_REFERENCES} other schemas")
            subject, version = quote(each["subject"], safe=""), int(each["version"])
            if (used := self._get(f"subjects/{subject}/versions/{version}")) is None:
                raise SchemaRefused(f"uses version {version} of {subject}, which is not there")
            yield from self._references(used, left)
            yield str(each.get("name", "")), used["schema"]


def _files(references: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the text of each file that a schema uses; raise `SchemaRefused` for two of one."""
    files: dict[str, str] = {}
    for name, text in references:
        if files.setdefault(name, text) != text:
            raise SchemaRefused(f"uses two versions of {name}")
    return files


def _none_or_raise(error: HTTPError) -> None:
    """Pass if a registry says that it has nothing of this name; any other refusal is an error."""
    try:
        code, words = _refusal(json.loads(error.read(LARGEST_REPLY)))
    except (ValueError, KeyError, TypeError):
        code, words = 0, ""
    if code not in _NOT_FOUND:
        kind = _NoSuchPath if error.code == HTTPStatus.NOT_FOUND else OSError
        raise kind(f"{error.code} {words or error.reason}")


def _refusal(reply: Any) -> tuple[int, str]:
    return int(reply["error_code"]), str(reply.get("message", ""))[:200]
