"""A kind of objects, as one watch keeps it: listed, followed, listed again when in doubt."""

import asyncio
from collections.abc import Callable, Iterator

import structlog

from binwright.controller.kube.api import GONE, Api, Obj
from binwright.core.errors import ClusterRefused, ClusterUnavailable

log = structlog.get_logger()

WATCH_S = 60  # a stream is asked for anew so often: what died silently is noticed
RESYNC_S = 300.0  # and the whole list so often, whatever the stream said
FIRST_REST_S, LONGEST_REST_S = 0.2, 10.0


def name_of(obj: Obj) -> str:
    """Return an object's name."""
    name: str = obj["metadata"]["name"]
    return name


def namespace_of(obj: Obj) -> str:
    """Return the namespace that an object is in; empty where kinds have none."""
    namespace: str = obj["metadata"].get("namespace", "")
    return namespace


def key_of(obj: Obj) -> tuple[str, str]:
    """Return what tells an object from all others of its kind: its namespace and name."""
    return namespace_of(obj), name_of(obj)


def label_of(obj: Obj, label: str) -> str:
    """Return a label's value; empty when it is not there."""
    value: str = obj["metadata"].get("labels", {}).get(label, "")
    return value


def _version(obj: Obj) -> int:
    """Return when an object (or a list) was so; an API server counts all its changes as one."""
    return int(obj["metadata"]["resourceVersion"])


class Mirror:
    """All objects of one path that a selector finds, with a call for every change.

    Attributes:
        synced: Set while the mirror is as the API server said last.
    """

    def __init__(self, api: Api, path: str, *, labels: str = "", fields: str = "") -> None:
        """Follow the collection at `path`, narrowed by selectors."""
        self.path = path
        self.synced = asyncio.Event()
        self._api = api
        chosen = {"labelSelector": labels, "fieldSelector": fields}
        self._query = {k: v for k, v in chosen.items() if v}
        self._objects: dict[tuple[str, str], Obj] = {}
        self._seen = 0  # version up to which lists and events have told everything
        self._listeners: list[Callable[[Obj], None]] = []

    def __iter__(self) -> Iterator[Obj]:
        """Walk the objects in the order of their namespaces and names."""
        return iter([self._objects[key] for key in sorted(self._objects)])

    def get(self, namespace: str, name: str) -> Obj | None:
        """Return one, if it is there."""
        return self._objects.get((namespace, name))

    def listen(self, heard: Callable[[Obj], None]) -> None:
        """Call `heard` with every object that comes, changes or goes."""
        self._listeners.append(heard)

    def put(self, obj: Obj) -> None:
        """Take what a call of ours returned, unless the watch has told of it already.

        What the watch told since is newer: a status, somebody's edit, a deletion.
        """
        if _version(obj) > self._seen:
            self._objects[key_of(obj)] = obj

    def unlisten(self, heard: Callable[[Obj], None]) -> None:
        """Call it no more."""
        self._listeners.remove(heard)

    def drop(self, namespace: str, name: str) -> None:
        """Take that a call of ours deleted it, before the watch tells it."""
        self._objects.pop((namespace, name), None)

    async def ready(self, patience_s: float) -> None:
        """Wait until there was a list; raise `ClusterUnavailable` when there is none in time."""
        try:
            async with asyncio.timeout(patience_s):
                await self.synced.wait()
        except TimeoutError as exc:
            raise ClusterUnavailable(f"{self.path} could not be listed yet") from exc

    async def run(self) -> None:
        """Follow, for ever; an outage is told once, and bridged by what is known."""
        rest_s = FIRST_REST_S
        while True:
            try:
                await self._follow(await self._list())
                rest_s = FIRST_REST_S
            except (ClusterUnavailable, ClusterRefused) as exc:
                if isinstance(exc, ClusterRefused) and exc.status == GONE:
                    log.info("watch.expired", path=self.path)
                else:
                    log.warning("watch.failed", path=self.path, reason=str(exc), rest_s=rest_s)
                self.synced.clear()
                await asyncio.sleep(rest_s)
                rest_s = min(2 * rest_s, LONGEST_REST_S)

    async def _list(self) -> str:
        found = await self._api.get(self.path, **self._query)
        listed = {key_of(obj): obj for obj in found["items"] or ()}
        changed = [
            obj
            for key, obj in (self._objects | listed).items()
            if self._objects.get(key) != listed.get(key)
        ]
        self._objects, self._seen = listed, _version(found)
        self.synced.set()
        for obj in changed:
            self._tell(obj)
        version: str = found["metadata"]["resourceVersion"]
        return version

    async def _follow(self, version: str) -> None:
        """Apply changes since `version` until it is time to list again."""
        loop = asyncio.get_running_loop()
        until = loop.time() + RESYNC_S
        while loop.time() < until:
            stream = self._api.watch(
                self.path,
                WATCH_S,
                **self._query,
                resourceVersion=version,
                allowWatchBookmarks="true",
            )
            async for event in stream:
                obj = event["object"]
                version, self._seen = obj["metadata"]["resourceVersion"], _version(obj)
                if event["type"] != "BOOKMARK":
                    self._take(event["type"], obj)

    def _take(self, what: str, obj: Obj) -> None:
        key = key_of(obj)
        known = self._objects.get(key)
        if what != "DELETED":
            self._objects[key] = obj
        elif known and known["metadata"]["uid"] == obj["metadata"]["uid"]:
            del self._objects[key]
        self._tell(obj)

    def _tell(self, obj: Obj) -> None:
        for heard in self._listeners:
            heard(obj)
