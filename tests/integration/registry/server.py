"""A real schema registry, and what producers register there."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from binwright.local.cache import cache_dir
from binwright.local.child import Child, Command
from binwright.local.jars import Artifact, ensure_jars, ivy_fetch
from binwright.local.java import find_java
from binwright.local.server import HOST, Server, no_progress, reserve_port
from binwright.runtime.environment import clean_environment

ARCHIVE = Artifact(
    "io.apicurio",
    "apicurio-registry-app",
    "2.5.11.Final",
    "all",
    139_779_728,
    "f894a17f650ec427de72cfb68edfc30f8020743269293e58372e22f67fd4fd15",
    "tar.gz",
)
READY_S, GRACE_S, REQUEST_S = 300.0, 10.0, 30.0


class RegistryServer(Server):
    """A registry on 127.0.0.1 that keeps its schemas in memory: a restart forgets them."""

    def __init__(self, command: Command, port: int) -> None:
        self.url = f"http://{HOST}:{port}/apis/ccompat/v7"

        async def answers() -> bool:
            try:
                return await asyncio.to_thread(self._ask, "subjects") is not None
            except OSError:
                return False

        async def serving(child: Child) -> None:
            await child.wait_until_ready(answers, deadline_s=READY_S)

        super().__init__(command, until_ready=serving, grace_s=GRACE_S)

    def register(
        self, subject: str, schema: Any, references: Sequence[Any] = (), kind: str = "AVRO"
    ) -> int:
        """Register a version of a subject, text or JSON; return the schema's id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": [*references]}
        found = self._ask(f"subjects/{subject}/versions", body)
        return int(found["id"])

    def global_id(self, subject: str) -> int:
        """Return the global id of the newest version of a subject, by Apicurio's own API."""
        own = self.url.replace("/ccompat/v7", "/registry/v2")
        return int(self._ask(f"groups/default/artifacts/{subject}/meta", at=own)["globalId"])

    def delete(self, subject: str, version: int) -> None:
        """Delete a version of a subject softly."""
        self._ask(f"subjects/{subject}/versions/{version}", method="DELETE")

    def _ask(self, path: str, body: Any = None, method: str | None = None, at: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"{at or self.url}/{path}", data, headers, method=method)  # noqa: S310 - ours
        try:
            with urlopen(request, timeout=REQUEST_S) as reply:  # noqa: S310 - ours
                return json.load(reply)
        except HTTPError as exc:
            raise AssertionError(f"{exc.code}: {exc.read().decode()}") from exc


@asynccontextmanager
async def run_registry(directory: Path) -> AsyncIterator[RegistryServer]:
    """Run a registry whose log is in `directory`."""
    java, home = await find_java(), cache_dir() / "registry"
    [archive] = await ensure_jars([ARCHIVE], home, ivy_fetch(java, "the registry's", no_progress))
    await asyncio.to_thread(_unpack, archive, directory / "app")
    with reserve_port() as port:
        command = Command(
            title="the schema registry",
            argv=(
                str(java.binary),
                "-Xmx256m",
                "-XX:TieredStopAtLevel=1",
                "-jar",
                str(next((directory / "app").glob("*-runner.jar"))),
            ),
            directory=directory,
            log=directory / "registry.log",
            environment=clean_environment(
                {"QUARKUS_HTTP_HOST": HOST, "QUARKUS_HTTP_PORT": str(port)}
            ),
        )
        server = RegistryServer(command, port)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


def _unpack(archive: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    shutil.unpack_archive(archive, directory)  # its sum is pinned
