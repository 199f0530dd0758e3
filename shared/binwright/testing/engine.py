"""A fake container engine: the HTTP API on a socket, with containers that run nothing."""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from aiohttp import web

VERSION = "1.41"

Obj = dict[str, Any]


@dataclass
class FakeContainer:
    """A container and its state."""

    id: str
    name: str
    made_from: Obj
    state: str = "created"
    exit_code: int = 0
    restarts: int = 0
    networks: set[str] = field(default_factory=set)

    @property
    def labels(self) -> dict[str, str]:
        """Return the container's labels."""
        labels: dict[str, str] = self.made_from.get("Labels", {})
        return labels

    def listed(self) -> Obj:
        """Return the container's entry in the list of containers."""
        return {
            "Id": self.id,
            "Names": [f"/{self.name}"],
            "State": self.state,
            "Status": f"{self.state} ({self.exit_code})",
            "Labels": self.labels,
            "NetworkSettings": {"Networks": {name: {} for name in self.networks}},
        }

    def inspected(self) -> Obj:
        """Return the reply to inspecting the container."""
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "Config": {"Hostname": self.id[:12], **self.made_from},
            "HostConfig": self.made_from.get("HostConfig", {}),
            "State": {"Status": self.state, "ExitCode": self.exit_code},
            "RestartCount": self.restarts,
        }


class FakeEngine:
    """The engine's state.

    Attributes:
        containers: By id.
        images: Name -> id, of local images.
        registry: Name -> id, of images that can be pulled.
        failing: Call -> (status, message) that it fails with. A call is named by the end of its
            path: `create`, `start`, `kill`, `pull`, and so on.
        silent: Calls that never get a reply.
        calls: All calls so far.
        stops_when_asked: Whether a container exits when it gets a signal.
    """

    def __init__(self) -> None:
        self.containers: dict[str, FakeContainer] = {}
        self.images: dict[str, str] = {}
        self.registry: dict[str, str] = {}
        self.failing: dict[str, tuple[int, str]] = {}
        self.silent: set[str] = set()
        self.calls: list[str] = []
        self.stops_when_asked = True
        self._numbers = count(1)
        self._events: list[Obj] = []
        self._happened = asyncio.Event()
        self._never = asyncio.Event()

    def find(self, name: str) -> FakeContainer | None:
        """Return a container by id or name; None: there is none."""
        found = (c for c in self.containers.values() if name in {c.id, c.name})
        return next(found, None)

    def running(self) -> list[str]:
        """Return the names of the running containers, sorted."""
        return sorted(c.name for c in self.containers.values() if c.state == "running")

    def add_container(self, name: str, made_from: Obj, state: str = "created") -> FakeContainer:
        """Add a container, as another client would."""
        container = FakeContainer(f"{next(self._numbers):064x}", name, made_from, state)
        container.networks.add(made_from.get("HostConfig", {}).get("NetworkMode", "bridge"))
        self.containers[container.id] = container
        return container

    def hang_up(self, call: str) -> None:
        """Fail a call from now on; an open stream of events ends."""
        self.failing[call] = (500, "the engine is shutting down")
        self._happened.set()

    def end(self, name: str, state: str = "running") -> int:
        """End a container's process and send its event; return when, ms.

        Afterwards the container is in `state`: running again, or not.
        """
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        found.state, at_ns = state, time.time_ns()
        actor = {"ID": found.id, "Attributes": {"name": found.name, **found.labels}}
        self._events.append({"Action": "die", "Actor": actor, "timeNano": at_ns})
        self._happened.set()
        return at_ns // 1_000_000

    def app(self) -> web.Application:
        """Return the HTTP application."""
        app = web.Application(middlewares=[self._inject_failures])
        base = "/v{version:[0-9.]+}"
        for path in ("/version", base + "/version"):
            app.router.add_get(path, self._version)
        app.router.add_get(base + "/containers/json", self._list)
        app.router.add_post(base + "/containers/create", self._create)
        app.router.add_get(base + "/containers/{name}/json", self._inspect)
        app.router.add_delete(base + "/containers/{name}", self._remove)
        app.router.add_get(base + "/events", self._follow)
        for call in ("start", "unpause", "update", "kill"):
            app.router.add_post(f"{base}/containers/{{name}}/{call}", getattr(self, f"_{call}"))
        app.router.add_get(base + "/images/{name:.+}/json", self._image)
        app.router.add_post(base + "/images/create", self._pull)
        return app

    @web.middleware
    async def _inject_failures(self, request: web.Request, handler: Any) -> web.StreamResponse:
        last = request.path.rsplit("/", 1)[-1]
        pulled = "/images/create" in request.path
        call = "pull" if pulled else "remove" if request.method == "DELETE" else last
        self.calls.append(call)
        if call in self.silent:
            await self._never.wait()
        if call in self.failing:
            return _error(*self.failing[call])
        response: web.StreamResponse = await handler(request)
        return response

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"ApiVersion": VERSION})

    async def _list(self, request: web.Request) -> web.Response:
        wanted = json.loads(request.query.get("filters", "{}")).get("label", [])
        found = [c.listed() for c in self.containers.values() if _matches(c.labels, wanted)]
        return web.json_response(found)

    async def _create(self, request: web.Request) -> web.Response:
        body, name = await request.json(), request.query["name"]
        if body["Image"] not in self.images:
            return _error(404, f"No such image: {body['Image']}")
        if self.find(name):
            return _error(409, f'Conflict. The container name "/{name}" is already in use')
        return web.json_response({"Id": self.add_container(name, body).id}, status=201)

    async def _inspect(self, request: web.Request) -> web.Response:
        found = self.find(request.match_info["name"])
        return web.json_response(found.inspected()) if found else _error(404, "No such container")

    async def _remove(self, request: web.Request) -> web.Response:
        return self._act(request, lambda c: self.containers.pop(c.id))

    async def _start(self, request: web.Request) -> web.Response:
        return self._act(request, lambda c: setattr(c, "state", "running"))

    async def _unpause(self, request: web.Request) -> web.Response:
        return self._act(request, lambda c: setattr(c, "state", "running"))

    async def _update(self, request: web.Request) -> web.Response:
        body = await request.json()
        return self._act(request, lambda c: c.made_from["HostConfig"].update(body))

    async def _kill(self, request: web.Request) -> web.Response:
        ended = "exited" if self.stops_when_asked else "running"
        return self._act(request, lambda c: setattr(c, "state", ended))

    def _act(self, request: web.Request, act: Any) -> web.Response:
        found = self.find(request.match_info["name"])
        if found is None:
            return _error(404, "No such container")
        act(found)
        return web.Response(status=204)

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        wanted = json.loads(request.query["filters"])["label"]
        since_ns = float(request.query["since"]) * 1e9
        response = web.StreamResponse()
        await response.prepare(request)
        sent = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(float(request.query["until"]) - time.time()):
                while "events" not in self.failing:  # else the stream ends
                    if sent == len(self._events):
                        self._happened.clear()
                        await self._happened.wait()
                        continue
                    event, sent = self._events[sent], sent + 1
                    late = event["timeNano"] >= since_ns
                    if late and _matches(event["Actor"]["Attributes"], wanted):
                        await response.write(json.dumps(event).encode() + b"\n")
        return response

    async def _image(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.images:
            return _error(404, f"No such image: {name}")
        return web.json_response({"Id": self.images[name]})

    async def _pull(self, request: web.Request) -> web.Response:
        name = f"{request.query['fromImage']}:{request.query['tag']}"
        if name not in self.registry:  # the error follows a status 200, as from a real engine
            error = f"manifest for {name} not found"
            return web.Response(text=f'{{"status":"Pulling"}}\n{{"error":"{error}"}}\n')
        self.images[name] = self.registry[name]
        return web.Response(text='{"status":"Pulled"}\n')


def _matches(labels: Mapping[str, str], wanted: list[str]) -> bool:
    for each in wanted:
        name, equals, value = each.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)


@contextlib.asynccontextmanager
async def fake_engine() -> AsyncIterator[tuple[FakeEngine, Path]]:
    """Yield an engine and its socket, whose path is short, because the system limits it."""
    engine = FakeEngine()
    with tempfile.TemporaryDirectory(prefix="bw-") as directory:
        path = Path(directory) / "engine.sock"
        runner = web.AppRunner(engine.app(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.UnixSite(runner, str(path)).start()
            yield engine, path
        finally:
            await runner.cleanup()
