"""Keeps a copy of a collection of objects: lists and watches it, and lists it again on errors."""

import asyncio
from collections.abc import Callable, Iterator

from binwright.kubernetes.api import FORBIDDEN, GONE, Api
from binwright.kubernetes.objects import Obj, key_of
from binwright.protocol.errors import ClusterRefused, ClusterUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.runtime.backoff import Backoff
from binwright.runtime.logs import log

WATCH_EXPIRED = LogEvent.info(
    "watch.expired", "Kubernetes ended a watch as too old; it is opened again."
)
WATCH_FAILED = LogEvent.warning(
    "watch.failed", "Kubernetes refuses or breaks a watch; it is opened again after a pause."
)

WATCH_S = 60  # how long one watch lasts: a connection that died silently is replaced
RESYNC_S = 300.0  # how often the whole collection is listed again
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0


def _version(obj: Obj) -> int:
    """Return the version of an object or list, comparable: an API server counts all changes."""
    return int(obj["metadata"]["resourceVersion"])


class Informer:
    """The objects of one collection that match selectors; handlers are called at each change.

    Attributes:
        synced: Set while the copy is up to date with the API server.
        refusal: Why the objects may not be read; empty: they may.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        *,
        labels: str = "",
        fields: str = "",
        keep: Callable[[Obj], Obj] | None = None,
    ) -> None:
        """Watch the collection at `path`, narrowed by selectors.

        With `keep` only what it returns of an object is kept, its uid and name among them; a change
        of the rest is none.
        """
        self.path = path
        self.synced = asyncio.Event()
        self.refusal = ""
        self._keep = keep
        self._api = api
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        self._query = {k: v for k, v in selectors.items() if v}
        self._objects: dict[tuple[str, str], Obj] = {}
        self._seen = 0  # the version up to which lists and events are complete
        self._handlers: list[Callable[[Obj], None]] = []

    def __iter__(self) -> Iterator[Obj]:
        """Iterate over the objects in the order of their namespaces and names."""
        return iter([self._objects[key] for key in sorted(self._objects)])

    def get(self, namespace: str, name: str) -> Obj | None:
        """Return an object; None if there is none of that name."""
        return self._objects.get((namespace, name))

    def add_handler(self, handler: Callable[[Obj], None]) -> None:
        """Call `handler` with every object that is added, changed or deleted."""
        self._handlers.append(handler)

    def put(self, obj: Obj) -> None:
        """Store what a call of ours returned, unless the watch is past that version.

        Then the watch has delivered newer changes: a status, an edit, a deletion.
        """
        if _version(obj) > self._seen:
            self._objects[key_of(obj)] = obj

    def remove_handler(self, handler: Callable[[Obj], None]) -> None:
        """Call `handler` no more."""
        self._handlers.remove(handler)

    def drop(self, namespace: str, name: str) -> None:
        """Remove an object that a call of ours deleted, before the watch delivers that."""
        self._objects.pop((namespace, name), None)

    async def ready(self, patience_s: float) -> None:
        """Wait for the first list; raise `ClusterUnavailable` after `patience_s` seconds."""
        try:
            async with asyncio.timeout(patience_s):
                await self.synced.wait()
        except TimeoutError as exc:
            raise ClusterUnavailable(f"{self.path} could not be listed yet") from exc

    async def run(self) -> None:
        """List and watch, for ever; during an outage the last known objects stay."""
        pause = Backoff(LONGEST_PAUSE_S, first_s=FIRST_PAUSE_S)
        while True:
            try:
                await self._follow(await self._list())
                pause.reset()
            except (ClusterUnavailable, ClusterRefused) as exc:
                rest_s = pause.next()
                if isinstance(exc, ClusterRefused) and exc.status == GONE:
                    log(WATCH_EXPIRED, path=self.path)
                elif self._is_new(exc):
                    log(WATCH_FAILED, path=self.path, reason=str(exc), rest_s=rest_s)
                self.synced.clear()
                await asyncio.sleep(rest_s)

    def _is_new(self, exc: ClusterUnavailable | ClusterRefused) -> bool:
        """Note a failure; whether it is another than that a right is missing, which is known."""
        known = self.refusal
        is_missing = isinstance(exc, ClusterRefused) and exc.status == FORBIDDEN
        self.refusal = str(exc) if is_missing else ""
        return not known or known != self.refusal

    async def _list(self) -> str:
        answer = await self._api.get(self.path, **self._query)
        listed = {key_of(obj): self._kept(obj) for obj in answer["items"] or ()}
        changed = [
            obj
            for key, obj in (self._objects | listed).items()
            if self._objects.get(key) != listed.get(key)
        ]
        self._objects, self._seen = listed, _version(answer)
        self.refusal = ""
        self.synced.set()
        for obj in changed:
            self._notify(obj)
        version: str = answer["metadata"]["resourceVersion"]
        return version

    async def _follow(self, version: str) -> None:
        """Apply changes since `version`, for `RESYNC_S` seconds."""
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
                    self._apply(event["type"], self._kept(obj))

    def _kept(self, obj: Obj) -> Obj:
        return obj if self._keep is None else self._keep(obj)

    def _apply(self, change: str, obj: Obj) -> None:
        key = key_of(obj)
        known = self._objects.get(key)
        if self._keep is not None and change != "DELETED" and known == obj:
            return
        if change != "DELETED":
            self._objects[key] = obj
        elif known and known["metadata"]["uid"] == obj["metadata"]["uid"]:
            del self._objects[key]
        self._notify(obj)

    def _notify(self, obj: Obj) -> None:
        for handler in self._handlers:
            handler(obj)
