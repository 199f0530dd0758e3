"""A container engine on a socket that runs nothing, and keeps what a real one tells of it."""

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
    """A container and what happened to it."""

    id: str
    name: str
    made_from: Obj
    state: str = "created"
    exit_code: int = 0
    restarts: int = 0
    networks: set[str] = field(default_factory=set)

    @property
    def labels(self) -> dict[str, str]:
        """Return its labels."""
        labels: dict[str, str] = self.made_from.get("Labels", {})
        return labels

    def listed(self) -> Obj:
        """Return it as a line of the list."""
        return {
            "Id": self.id,
            "Names": [f"/{self.name}"],
            "State": self.state,
            "Status": f"{self.state} ({self.exit_code})",
            "Labels": self.labels,
            "NetworkSettings": {"Networks": {name: {} for name in self.networks}},
        }

    def told(self) -> Obj:
        """Return all about it."""
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "Config": {"Hostname": self.id[:12], **self.made_from},
            "HostConfig": self.made_from.get("HostConfig", {}),
            "State": {"Status": self.state, "ExitCode": self.exit_code},
            "RestartCount": self.restarts,
        }


class FakeEngine:
    """The engine.

    Attributes:
        containers: By id.
        images: Name -> id, of those that are here.
        registry: The same, of those that can be pulled.
        failing: Call -> status and message, as long as they are in here. Calls are named as their
            paths end: `create`, `start`, `kill`, `pull`, and so on.
        silent: Calls that are not answered.
        asked: The calls there were.
        obedient: Whether a container ends when it is asked to.
    """

    def __init__(self) -> None:
        self.containers: dict[str, FakeContainer] = {}
        self.images: dict[str, str] = {}
        self.registry: dict[str, str] = {}
        self.failing: dict[str, tuple[int, str]] = {}
        self.silent: set[str] = set()
        self.asked: list[str] = []
        self.obedient = True
        self._numbers = count(1)
        self._events: list[Obj] = []
        self._happened = asyncio.Event()
        self._never = asyncio.Event()

    def named(self, name: str) -> FakeContainer | None:
        """Return a container by id or name."""
        found = (c for c in self.containers.values() if name in {c.id, c.name})
        return next(found, None)

    def running(self) -> list[str]:
        """Return the names of those that run, sorted."""
        return sorted(c.name for c in self.containers.values() if c.state == "running")

    def put(self, name: str, made_from: Obj, state: str = "created") -> FakeContainer:
        """Have a container that somebody made."""
        container = FakeContainer(f"{next(self._numbers):064x}", name, made_from, state)
        container.networks.add(made_from.get("HostConfig", {}).get("NetworkMode", "bridge"))
        self.containers[container.id] = container
        return container

    def hang_up(self, call: str) -> None:
        """Refuse a call from now on; a stream that is open breaks off."""
        self.failing[call] = (500, "the engine is shutting down")
        self._happened.set()

    def end(self, name: str, state: str = "running") -> int:
        """Have a container's process end, and tell of it; return when, in ms.

        Afterwards it is in this state: it runs again, or not.
        """
        found = self.named(name)
        if found is None:
            raise KeyError(name)
        found.state, at_ns = state, time.time_ns()
        actor = {"ID": found.id, "Attributes": {"name": found.name, **found.labels}}
        self._events.append({"Action": "die", "Actor": actor, "timeNano": at_ns})
        self._happened.set()
        return at_ns // 1_000_000

    def app(self) -> web.Application:
        """Return what answers on the socket."""
        app = web.Application(middlewares=[self._doors])
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
    async def _doors(self, request: web.Request, handler: Any) -> web.StreamResponse:
        last = request.path.rsplit("/", 1)[-1]
        pulled = "/images/create" in request.path
        call = "pull" if pulled else "remove" if request.method == "DELETE" else last
        self.asked.append(call)
        if call in self.silent:
            await self._never.wait()
        if call in self.failing:
            return _no(*self.failing[call])
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"ApiVersion": VERSION})

    async def _list(self, request: web.Request) -> web.Response:
        wanted = json.loads(request.query.get("filters", "{}")).get("label", [])
        found = [c.listed() for c in self.containers.values() if _fits(c.labels, wanted)]
        return web.json_response(found)

    async def _create(self, request: web.Request) -> web.Response:
        body, name = await request.json(), request.query["name"]
        if body["Image"] not in self.images:
            return _no(404, f"No such image: {body['Image']}")
        if self.named(name):
            return _no(409, f'Conflict. The container name "/{name}" is already in use')
        return web.json_response({"Id": self.put(name, body).id}, status=201)

    async def _inspect(self, request: web.Request) -> web.Response:
        found = self.named(request.match_info["name"])
        return web.json_response(found.told()) if found else _no(404, "No such container")

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
        ended = "exited" if self.obedient else "running"
        return self._act(request, lambda c: setattr(c, "state", ended))

    def _act(self, request: web.Request, act: Any) -> web.Response:
        found = self.named(request.match_info["name"])
        if found is None:
            return _no(404, "No such container")
        act(found)
        return web.Response(status=204)

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        wanted = json.loads(request.query["filters"])["label"]
        since_ns = float(request.query["since"]) * 1e9
        answer = web.StreamResponse()
        await answer.prepare(request)
        told = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(float(request.query["until"]) - time.time()):
                while "events" not in self.failing:  # then it hangs up
                    if told == len(self._events):
                        self._happened.clear()
                        await self._happened.wait()
                        continue
                    event, told = self._events[told], told + 1
                    late = event["timeNano"] >= since_ns
                    if late and _fits(event["Actor"]["Attributes"], wanted):
                        await answer.write(json.dumps(event).encode() + b"\n")
        return answer

    async def _image(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.images:
            return _no(404, f"No such image: {name}")
        return web.json_response({"Id": self.images[name]})

    async def _pull(self, request: web.Request) -> web.Response:
        name = f"{request.query['fromImage']}:{request.query['tag']}"
        if name not in self.registry:  # told after a 200, as the real one does
            error = f"manifest for {name} not found"
            return web.Response(text=f'{{"status":"Pulling"}}\n{{"error":"{error}"}}\n')
        self.images[name] = self.registry[name]
        return web.Response(text='{"status":"Pulled"}\n')


def _fits(labels: Mapping[str, str], wanted: list[str]) -> bool:
    for each in wanted:
        name, equals, value = each.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True


def _no(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)


@contextlib.asynccontextmanager
async def fake_engine() -> AsyncIterator[tuple[FakeEngine, Path]]:
    """Give an engine and the socket it listens on; its path is short, as sockets' must be."""
    engine = FakeEngine()
    with tempfile.TemporaryDirectory(prefix="bw-") as place:
        path = Path(place) / "engine.sock"
        runner = web.AppRunner(engine.app(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.UnixSite(runner, str(path)).start()
            yield engine, path
        finally:
            await runner.cleanup()
