"""Asks a schema registry, by the requests of Confluent's."""

import asyncio
import json
import re
import ssl
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Literal, Self, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPSHandler, Request
from uuid import UUID

from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.consumer.decode.protobuf_compiler import compiled
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.consumer.decode.registry_schemas import ApicurioId, SchemaName
from binwright.protocol.errors import RegistryUnavailable
from binwright.runtime.secret_files import read_secret
from binwright.runtime.settings.registry import APICURIO, RegistrySettings
from binwright.runtime.web import basic_login, opener
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.schemas import SchemaRefused

T = TypeVar("T")
Schema = AvroSchema | ProtobufSchema | JsonSchema
Outcome = Literal["answered", "missing", "failed"]

REQUEST_S = 10.0  # for each step of a request
ANSWER_S = 60.0  # for all requests of one answer
LARGEST_REPLY = 4 << 20
THREADS = 4
MOST_REFERENCES = 100  # schemas that one uses, with those that these use
PARSED = 256  # schemas that are kept, whichever subjects they were asked for by
_NOT_FOUND = frozenset({40401, 40402, 40403})  # subject, version, schema
_CONTEXT = re.compile(r":\.[^:]*:")
_UNKNOWN = frozenset({400, 404, 405, 422, 501})
"""Statuses of a registry that does not know a path or a parameter."""
_MALFORMED = (
    *(ValueError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, RecursionError),  # a number that is infinite, a list of lists of lists
)
"""Errors of what reads a reply that is not the one wanted."""
_DELETED = "?deleted=true"
"""As well what was deleted, of which records may still be there: Confluent's soft deletion."""


class _Refused(OSError):
    """The registry refuses a request, and not since it has nothing of a name."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status


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
        self._schema = lru_cache(maxsize=PARSED)(_schema)

    async def __aenter__(self) -> Self:
        """Return self; each request connects."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the threads, without waiting for a request."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def schema(self, name: SchemaName, subject: str = "") -> Schema | SchemaRefused | None:
        """Return the schema with this id or GUID, or why it cannot be used; None: there is none.

        A registry that serves no GUIDs has none.

        Args:
            name: An id is one of the context of `subject`: each context counts its own.
            subject: The one whose values name the schema; it need not be registered there.

        Raises:
            RegistryUnavailable: It does not answer, or refuses.
        """

        def ask() -> Schema | SchemaRefused | None:
            if isinstance(name, ApicurioId):
                return self._by_own_id(name)
            if isinstance(name, UUID):
                reply = self._by_guid(name)
            else:
                reply = self._get(f"schemas/ids/{name}{_query(subject=subject)}")
            return None if reply is None else self._parsed(reply, subject)

        return await self._run(f"schema {name}", ask)

    async def versions(self, subject: str) -> tuple[int, ...]:
        """Return the numbers of a subject's versions; raise as `schema` does.

        Those that were deleted, but are still known, stand behind the others, whose types count
        first; of both the oldest come first.
        """

        def ask() -> tuple[int, ...]:
            path = f"subjects/{quote(subject, safe='')}/versions"
            present = _numbers(self._get(path))
            known = _numbers(self._get_or_none(f"{path}{_DELETED}"))
            return (*sorted(present), *sorted(known - present))

        return await self._run(f"subject {subject}", ask)

    async def version(self, subject: str, version: int) -> Version | None:
        """Return a version of a subject, also a deleted one that is known; None: there is none.

        Raises as `schema` does.
        """

        def ask() -> Version | None:
            reply = self._version(quote(subject, safe=""), version)
            return (
                None if reply is None else Version(int(reply["id"]), self._parsed(reply, subject))
            )

        return await self._run(f"version {version} of {subject}", ask)

    async def subjects_of(self, number: int, subject: str) -> frozenset[str]:
        """Return the subjects that have, or had, the schema of an id; none: it cannot be told.

        Args:
            number: One of the context of `subject`.
            subject: The one whose values name the schema.

        Raises:
            RegistryUnavailable: It does not answer, or refuses.
        """

        def ask() -> frozenset[str]:
            path, of = f"schemas/ids/{number}/versions", subject if _context(subject) else ""
            versions = (
                self._get_or_none(f"{path}{_query(subject=of, deleted='true')}")
                or self._get_or_none(f"{path}{_query(subject=of)}")
                or ()
            )
            names = (str(each["subject"]) for each in versions if isinstance(versions, list))
            # Of an address that names a context, replies have it in front.
            return frozenset(name if of else name[len(_context(name)) :] for name in names)

        return await self._run(f"subjects of schema {number}", ask)

    # --- inside ----------------------------------------------------------------------------------

    async def _run(self, wanted: str, ask: Callable[[], T]) -> T:
        url = self._settings.url
        outcome: Outcome = "failed"
        try:
            async with asyncio.timeout(ANSWER_S):
                reply = await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        except (OSError, HTTPException) as exc:  # urllib's, ssl's, read_secret's; also a timeout
            reason = getattr(exc, "reason", None) or str(exc) or "no answer in time"
            raise RegistryUnavailable(f"{url} does not give {wanted}: {reason}") from exc
        except _MALFORMED as exc:
            raise RegistryUnavailable(
                f"{url} does not give {wanted}: it replies something else than a schema registry; "
                "check the path in registry.url"
            ) from exc
        else:
            outcome = "answered" if reply else "missing"
            return reply
        finally:
            self.requests[outcome] += 1

    def _by_guid(self, guid: UUID) -> Any:
        """Return a reply, None if there is none, or GUIDs are unknown to this registry.

        Confluent's has the path, and Redpanda's from 26.3 on (its API reference, "Get a schema by
        GUID"). Where another path is there, the server is a registry that has it not.
        """
        try:
            return self._get(f"schemas/guids/{guid}")
        except _Refused as exc:
            if exc.status == HTTPStatus.NOT_FOUND and isinstance(self._get("schemas/types"), list):
                return None
            raise

    def _by_own_id(self, name: ApicurioId) -> Schema | SchemaRefused | None:
        """Return the schema of an id of Apicurio's, by its own API; None: there is none."""
        try:
            if (text := self._own(f"ids/{name.kind}s/{name.number}")) is None:
                return None
            search = json.loads(self._own(f"search/artifacts?{name.kind}={name.number}") or "{}")
            kind = str(search["artifacts"][0]["type"]) if search.get("artifacts") else "AVRO"
            if kind == "PROTOBUF":
                return SchemaRefused("is of Protobuf in Apicurio's own form, which is not read")
            path = f"ids/{name.kind}s/{name.number}/references"
            return self._schema(kind, text, tuple(self._own_references(path, [MOST_REFERENCES])))
        except SchemaRefused as exc:
            return exc

    def _own_references(self, path: str, left: list[int]) -> Iterator[tuple[str, str]]:
        """Yield as `_references` does, by Apicurio's own API."""
        for each in json.loads(self._own(path) or "[]"):
            left[0] -= 1
            if left[0] < 0:
                raise SchemaRefused(f"uses more than {MOST_REFERENCES} other schemas")
            group, artifact = each.get("groupId") or "default", str(each["artifactId"])
            of, version = f"groups/{quote(group, safe='')}/artifacts", str(each["version"])
            place = f"{of}/{quote(artifact, safe='')}/versions/{quote(version, safe='')}"
            if (meta := self._own(f"{place}/meta")) is None or (text := self._own(place)) is None:
                raise SchemaRefused(f"uses version {version} of {artifact}, which is not there")
            inside = f"ids/globalIds/{int(json.loads(meta)['globalId'])}/references"
            yield from self._own_references(inside, left)
            yield str(each.get("name", "")), text

    def _own(self, path: str) -> str | None:
        """Return what Apicurio's own API has; None: nothing, or the registry is another one."""
        base, ours, _ = str(self._settings.url).partition(APICURIO)
        if not ours:
            return None
        try:
            return self._open(f"{base}/apis/registry/v2/{path}").decode()
        except HTTPError as exc:
            _none_or_raise(exc, _NOT_FOUND | {HTTPStatus.NOT_FOUND})
            return None

    def _version(self, quoted: str, version: int) -> Any:
        """Return the reply of a version, also of a deleted one; None: there is none."""
        path = f"subjects/{quoted}/versions/{version}"
        reply = self._get(path)
        return self._get_or_none(f"{path}{_DELETED}") if reply is None else reply

    def _get_or_none(self, path: str) -> Any:
        """Return a reply; None also if the registry does not know what the path asks for."""
        try:
            return self._get(path)
        except _Refused as exc:
            if exc.status in _UNKNOWN:
                return None
            raise

    def _get(self, path: str) -> Any:
        """Return a reply; None if the registry has nothing of that name."""
        try:
            return json.loads(self._open(f"{self._settings.url}/{path}"))
        except HTTPError as exc:
            _none_or_raise(exc)
            return None

    def _open(self, url: str) -> bytes:
        request = Request(url, headers=self._headers())  # noqa: S310 - checked by the settings
        with opener(*self._https()).open(request, timeout=REQUEST_S) as got:
            body: bytes = got.read(LARGEST_REPLY)
            return body

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

    def _parsed(self, reply: Any, subject: str = "") -> Schema | SchemaRefused:
        try:
            context = _context(reply.get("subject") or "") or _context(subject)
            used = tuple(self._references(reply, context, [MOST_REFERENCES]))
            text, kind = reply["schema"], reply.get("schemaType", "AVRO")
            if not isinstance(text, str):
                raise TypeError("needs the text of a schema")
            return self._schema(kind, text, used)
        except SchemaRefused as exc:
            return exc

    def _references(self, reply: Any, context: str, left: list[int]) -> Iterator[tuple[str, str]]:
        """Yield the schemas that one uses by name, each after those that it uses itself.

        Of a subject without a context that of the schema is meant, as Confluent's registry reads
        it (`QualifiedSubject.qualifySubjectWithParent`).
        """
        for each in reply.get("references") or ():
            left[0] -= 1
            if left[0] < 0:
                raise SchemaRefused(f"uses more than {MOST_REFERENCES} other schemas")
            subject, version = str(each["subject"]), int(each["version"])
            own = _context(subject)
            subject = quote(subject if own else f"{context}{subject}", safe="")
            if (used := self._version(subject, version)) is None:
                raise SchemaRefused(f"uses version {version} of {subject}, which is not there")
            yield from self._references(used, own or context, left)
            yield str(each.get("name", "")), used["schema"]


def _numbers(reply: Any) -> frozenset[int]:
    """Return the numbers of versions in a reply; None: there are none. Raises `TypeError`."""
    if not isinstance(reply, list | None):
        raise TypeError("needs a list of versions")
    return frozenset(map(int, reply or ()))


def _query(**parameters: str) -> str:
    """Return the query of these parameters, without those that are empty."""
    given = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(given)}" if given else ""


def _context(subject: str) -> str:
    """Return the context that a subject begins with, as `:.staging:`; empty: the default one."""
    match = _CONTEXT.match(subject)
    return "" if match is None else match[0]


def _schema(kind: str, text: str, used: tuple[tuple[str, str], ...]) -> Schema:
    """Return a schema by its text, and by those that it uses; raise `SchemaRefused`.

    Raises:
        RegistryUnavailable: protoc cannot be run.
    """
    try:
        match kind:
            case "AVRO":
                return AvroSchema(text, [each for _, each in used])
            case "PROTOBUF":
                return ProtobufSchema(compiled(text, _files(used)))
            case "JSON":
                return JsonSchema(text, _files(used))
    except RecursionError:
        raise SchemaRefused("is nested too deep") from None
    raise SchemaRefused(f"is of {kind}, not of Avro, Protobuf or JSON")


def _files(references: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the text of each file that a schema uses; raise `SchemaRefused` for two of one."""
    files: dict[str, str] = {}
    for name, text in references:
        if files.setdefault(name, text) != text:
            raise SchemaRefused(f"uses two versions of {name}")
    return files


def _none_or_raise(error: HTTPError, missing: Collection[int] = _NOT_FOUND) -> None:
    """Pass if a registry says that it has nothing of this name; any other refusal is an error."""
    try:
        code, words = _refusal(json.loads(error.read(LARGEST_REPLY)))
    except _MALFORMED:
        code, words = 0, ""
    if code not in missing:
        raise _Refused(error.code, words or error.reason)


def _refusal(reply: Any) -> tuple[int, str]:
    return int(reply["error_code"]), " ".join(str(reply.get("message", ""))[:200].split())
