"""The Docker Engine API on its socket: each call has a deadline, each refusal a reason.

It takes a dozen calls of aiohttp, which is a dependency anyway; a client library would add little.
"""

import asyncio
import contextlib
import errno
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from binwright.kubernetes.api_responses import error_message, read_lines, translated_errors
from binwright.protocol.errors import EngineRefused, EngineUnavailable, SettingsError

Obj = dict[str, Any]
"""An object of the engine, as JSON."""

PARALLEL = 16  # requests at a time
NOT_FOUND, CONFLICT, FAILING = 404, 409, 400


class Engine:
    """One container engine, with a deadline for each call."""

    def __init__(self, session: aiohttp.ClientSession, timeout_s: float, version: str = "") -> None:
        """Use `session`, bound to the socket; no call but a pull may take longer than `timeout_s`.

        `version` is the API's, such as `1.41`; empty: the engine's default.
        """
        self._session, self._timeout_s = session, timeout_s
        self._base = "http://engine" + (f"/v{version}" if version else "")
        self._parallel = asyncio.Semaphore(PARALLEL)

    async def version(self) -> str:
        """Return the newest API version that the engine supports."""
        found: str = orjson.loads(await self._call("GET", "/version"))["ApiVersion"]
        return found

    async def containers(self, labels: Mapping[str, str | None]) -> list[Obj]:
        """Return the containers with these labels (None: any value), running or not."""
        wanted = [name if value is None else f"{name}={value}" for name, value in labels.items()]
        query = {"all": "true", "filters": orjson.dumps({"label": wanted}).decode()}
        found: list[Obj] = orjson.loads(await self._call("GET", "/containers/json", query))
        return found

    async def container(self, name: str) -> Obj | None:
        """Return a container's description, by name or id; None if there is none."""
        return await self._found(f"/containers/{name}/json")

    async def image(self, name: str) -> Obj | None:
        """Return a local image's description; None if the engine does not have it."""
        return await self._found(f"/images/{name}/json")

    async def create(self, name: str, body: Obj) -> str:
        """Create a container without starting it; return its id.

        Raises:
            EngineRefused: 404, the engine does not have the image; 409, the name is in use.
        """
        created = orjson.loads(await self._call("POST", "/containers/create", {"name": name}, body))
        container_id: str = created["Id"]
        return container_id

    async def start(self, container_id: str) -> None:
        """Start a container that was created or has ended; no error if it runs."""
        await self._call("POST", f"/containers/{container_id}/start")

    async def unpause(self, container_id: str) -> None:
        """Resume a paused container; no error if it is not paused."""
        with _ignored(CONFLICT):
            await self._call("POST", f"/containers/{container_id}/unpause")

    async def terminate(self, container_id: str) -> None:
        """Send a container SIGTERM, without a restart after it; no error if it is gone."""
        with _ignored(NOT_FOUND, CONFLICT):
            policy = {"RestartPolicy": {"Name": "no"}}
            await self._call("POST", f"/containers/{container_id}/update", {}, policy)
            await self._call("POST", f"/containers/{container_id}/kill", {"signal": "SIGTERM"})

    async def remove(self, container_id: str) -> None:
        """Remove a container, running or not, and its anonymous volumes; no error if it is gone."""
        with _ignored(NOT_FOUND, CONFLICT):  # conflict: it is being removed already
            query = {"force": "true", "v": "true"}
            await self._call("DELETE", f"/containers/{container_id}", query)

    async def end_events(
        self, label: str, value: str, since_s: float, for_s: float
    ) -> AsyncIterator[Obj]:
        """Yield an event for each end of a container whose `label` has this `value`, in order.

        Args:
            label: Name of a label.
            value: Its value.
            since_s: The first event's time, seconds since the epoch by this machine's clock; the
                engine keeps a few hundred past events.
            for_s: How long to wait for events from now on, seconds.

        Raises:
            EngineUnavailable: The engine closed the connection, or cannot be reached.
            EngineRefused: The engine refused the request.
        """
        filters = {"type": ["container"], "event": ["die"], "label": [f"{label}={value}"]}
        query = {
            "since": f"{since_s:.9f}",
            "until": f"{time.time() + for_s:.9f}",
            "filters": orjson.dumps(filters).decode(),
        }
        timeout = aiohttp.ClientTimeout(
            sock_connect=self._timeout_s, sock_read=for_s + self._timeout_s
        )
        with translated_errors("/events", EngineUnavailable):
            async with self._session.get(
                f"{self._base}/events", params=query, timeout=timeout
            ) as response:
                if response.status >= FAILING:
                    raise EngineRefused(response.status, error_message(await response.read()))
                async for line in read_lines(response):
                    yield orjson.loads(line)

    async def pull(self, image: str, timeout_s: float) -> None:
        """Pull an image.

        Raises:
            EngineRefused: There is none, or access is denied; with the registry's message.
            EngineUnavailable: The engine closed the connection, or took longer than `timeout_s`.
        """
        query = dict(zip(("fromImage", "tag"), _parts(image), strict=True))
        body = await self._call("POST", "/images/create", query, timeout_s=timeout_s)
        for line in body.splitlines():  # errors during the pull come after the status 200
            if error := orjson.loads(line).get("error"):
                raise EngineRefused(NOT_FOUND, f"{image}: {error}")

    async def _found(self, path: str) -> Obj | None:
        try:
            found: Obj = orjson.loads(await self._call("GET", path))
        except EngineRefused as exc:
            if exc.status != NOT_FOUND:
                raise
            return None
        return found

    async def _call(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Obj | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(total=timeout_s or self._timeout_s)
        with translated_errors(path, EngineUnavailable):
            async with (
                self._parallel,
                self._session.request(
                    verb, self._base + path, params=query, json=body, timeout=timeout
                ) as response,
            ):
                content = await response.read()
                if response.status >= FAILING:
                    raise EngineRefused(response.status, error_message(content))
                return content


@contextlib.asynccontextmanager
async def open_engine(socket: Path, timeout_s: float) -> AsyncIterator[Engine]:
    """Give the engine that listens on `socket`.

    Raises:
        SettingsError: There is no such socket, or it may not be used.
        EngineUnavailable: The engine does not respond.
    """
    session = aiohttp.ClientSession(
        connector=aiohttp.UnixConnector(str(socket)),
        json_serialize=lambda o: orjson.dumps(o).decode(),
    )
    async with session:
        try:
            version = await Engine(session, timeout_s).version()
        except EngineUnavailable as exc:
            code = getattr(exc.__cause__, "errno", None)
            if code in {errno.ENOENT, errno.EACCES, errno.ENOTSOCK}:
                raise SettingsError(
                    f"no container engine at {socket}: {exc}. Mount its socket, or name it "
                    '(docker.socket); without one: controller.fleet = "fixed"'
                ) from exc
            raise
        yield Engine(session, timeout_s, version)


def _parts(image: str) -> tuple[str, str]:
    """Return an image's name and tag (`latest` if none: the engine would pull all tags)."""
    if "@" in image:
        return image, ""
    name, colon, tag = image.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (image, "latest")


@contextlib.contextmanager
def _ignored(*statuses: int) -> Iterator[None]:
    try:
        yield
    except EngineRefused as exc:
        if exc.status not in statuses:
            raise
