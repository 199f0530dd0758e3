"""The Docker Engine API on its socket: every call has a deadline, every refusal a reason.

A dozen calls, by the HTTP client that is here anyway: a client library would bring little more.
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

from binwright.controller.answers import answering, lines, reason
from binwright.core.errors import EngineRefused, EngineUnavailable, SettingsError

Obj = dict[str, Any]
"""An object of the engine, as JSON."""

PARALLEL = 16  # requests at a time
NOT_FOUND, CONFLICT, FAILING = 404, 409, 400


class Engine:
    """One container engine, with a deadline for every call."""

    def __init__(self, session: aiohttp.ClientSession, timeout_s: float, version: str = "") -> None:
        """Use `session`, bound to the socket; no call but a pull may take longer than `timeout_s`.

        `version` is that of the API, as `1.41`; empty: whichever the engine likes best.
        """
        self._session, self._timeout_s = session, timeout_s
        self._base = "http://engine" + (f"/v{version}" if version else "")
        self._turns = asyncio.Semaphore(PARALLEL)

    async def version(self) -> str:
        """Return the newest API version that the engine speaks."""
        found: str = orjson.loads(await self._call("GET", "/version"))["ApiVersion"]
        return found

    async def containers(self, labels: Mapping[str, str | None]) -> list[Obj]:
        """Return the containers with these labels (None: of any value), running or not."""
        wanted = [name if value is None else f"{name}={value}" for name, value in labels.items()]
        query = {"all": "true", "filters": orjson.dumps({"label": wanted}).decode()}
        found: list[Obj] = orjson.loads(await self._call("GET", "/containers/json", query))
        return found

    async def container(self, name: str) -> Obj | None:
        """Return all about a container, by name or id; None if there is none."""
        return await self._found(f"/containers/{name}/json")

    async def image(self, name: str) -> Obj | None:
        """Return all about an image that is here; None if it is not."""
        return await self._found(f"/images/{name}/json")

    async def create(self, name: str, body: Obj) -> str:
        """Make a container, which does not run yet; return its id.

        Raises:
            EngineRefused: 404, the image is not here; 409, the name is in use.
        """
        made = orjson.loads(await self._call("POST", "/containers/create", {"name": name}, body))
        container_id: str = made["Id"]
        return container_id

    async def start(self, container_id: str) -> None:
        """Run what was made or has ended; one that runs is as good."""
        await self._call("POST", f"/containers/{container_id}/start")

    async def unpause(self, container_id: str) -> None:
        """Let a frozen container go on; one that is not frozen is as good."""
        with _as_good(CONFLICT):
            await self._call("POST", f"/containers/{container_id}/unpause")

    async def dismiss(self, container_id: str) -> None:
        """Ask a container to end, and let nothing start it again; none there is as good."""
        with _as_good(NOT_FOUND, CONFLICT):
            policy = {"RestartPolicy": {"Name": "no"}}
            await self._call("POST", f"/containers/{container_id}/update", {}, policy)
            await self._call("POST", f"/containers/{container_id}/kill", {"signal": "SIGTERM"})

    async def remove(self, container_id: str) -> None:
        """Remove a container and its nameless volumes, whether it runs or not; none is as good."""
        with _as_good(NOT_FOUND, CONFLICT):  # conflict: somebody else is removing it
            query = {"force": "true", "v": "true"}
            await self._call("DELETE", f"/containers/{container_id}", query)

    async def ends(
        self, labels: Mapping[str, str], since_s: float, for_s: float
    ) -> AsyncIterator[Obj]:
        """Yield an event for each end of a container with these labels, in order.

        Args:
            labels: What the containers bear.
            since_s: From when on, by this machine's clock, seconds since the epoch; of what is past
                the engine remembers a few hundred events.
            for_s: How long from now on.

        Raises:
            EngineUnavailable: The engine hung up, or cannot be reached.
            EngineRefused: It does not tell.
        """
        wanted = {
            "type": ["container"],
            "event": ["die"],
            "label": [f"{name}={value}" for name, value in labels.items()],
        }
        query = {
            "since": f"{since_s:.9f}",
            "until": f"{time.time() + for_s:.9f}",
            "filters": orjson.dumps(wanted).decode(),
        }
        patience = aiohttp.ClientTimeout(
            sock_connect=self._timeout_s, sock_read=for_s + self._timeout_s
        )
        with answering("/events", EngineUnavailable):
            async with self._session.get(
                f"{self._base}/events", params=query, timeout=patience
            ) as answer:
                if answer.status >= FAILING:
                    raise EngineRefused(answer.status, reason(await answer.read()))
                async for line in lines(answer):
                    yield orjson.loads(line)

    async def pull(self, image: str, timeout_s: float) -> None:
        """Fetch an image.

        Raises:
            EngineRefused: There is none, or it may not be had; with the registry's words.
            EngineUnavailable: The engine hung up, or it took longer than `timeout_s`.
        """
        query = dict(zip(("fromImage", "tag"), _parts(image), strict=True))
        said = await self._call("POST", "/images/create", query, timeout_s=timeout_s)
        for line in said.splitlines():  # what goes wrong on the way is told after a 200
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
        patience = aiohttp.ClientTimeout(total=timeout_s or self._timeout_s)
        with answering(path, EngineUnavailable):
            async with (
                self._turns,
                self._session.request(
                    verb, self._base + path, params=query, json=body, timeout=patience
                ) as answer,
            ):
                said = await answer.read()
                if answer.status >= FAILING:
                    raise EngineRefused(answer.status, reason(said))
                return said


@contextlib.asynccontextmanager
async def opened(socket: Path, timeout_s: float) -> AsyncIterator[Engine]:
    """Give the engine that listens on `socket`.

    Raises:
        SettingsError: There is no such socket, or it may not be used.
        EngineUnavailable: Nobody answers.
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
    """Return what to fetch and its tag; without one the engine would fetch all there are."""
    if "@" in image:
        return image, ""
    name, colon, tag = image.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (image, "latest")


@contextlib.contextmanager
def _as_good(*statuses: int) -> Iterator[None]:
    try:
        yield
    except EngineRefused as exc:
        if exc.status not in statuses:
            raise
