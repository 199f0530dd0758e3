"""Writes Kubernetes Events, which `kubectl describe` shows."""

import asyncio
import socket
from collections import OrderedDict, deque

from binwright.kubernetes.api import FIELD_MANAGER, NOT_FOUND, Api
from binwright.kubernetes.objects import Obj, Owner, now
from binwright.protocol.errors import ClusterRefused, ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log

EVENT_DROPPED = LogEvent.warning(
    "event.dropped", "Too many Kubernetes Events wait to be written; this one is lost."
)
EVENT_UNWRITTEN = LogEvent.warning("event.unwritten", "A Kubernetes Event could not be written.")

REMEMBERED = 200  # Events whose count is raised when they occur again
LONGEST_MESSAGE = 1000  # bytes; the API accepts 1024
WAITING = 100  # Events of a namespace not written yet; more are dropped, and logged


class EventRecorder:
    """Writes Events in the background; one that cannot be written is logged and skipped.

    Namespaces take turns, so that many Events of one delay no other's.
    """

    def __init__(self, api: Api) -> None:
        """Write through `api`."""
        self._api = api
        self._waiting: OrderedDict[str, deque[tuple[Owner, str, str, str]]] = OrderedDict()
        self._some_wait = asyncio.Event()
        self._known: OrderedDict[tuple[str, str, str], tuple[str, int]] = OrderedDict()

    def note(self, about: Owner, reason: str, message: str, *, warning: bool = False) -> None:
        """Queue an Event about an object."""
        kind = "Warning" if warning else "Normal"
        cut = message.encode()[:LONGEST_MESSAGE].decode(errors="ignore")
        waiting = self._waiting.setdefault(about.namespace, deque())
        if len(waiting) >= WAITING:
            log(EVENT_DROPPED, reason=reason, message=cut)
            return
        waiting.append((about, kind, reason, cut))
        self._some_wait.set()

    async def run(self) -> None:
        """Write the queued Events, for ever."""
        while True:
            about, kind, reason, message = await self._next()
            try:
                await self._write(about, kind, reason, message)
            except ExternalError as exc:
                log(EVENT_UNWRITTEN, what=reason, reason=str(exc))

    async def _next(self) -> tuple[Owner, str, str, str]:
        await self._some_wait.wait()
        namespace, waiting = self._waiting.popitem(last=False)
        event = waiting.popleft()
        if waiting:
            self._waiting[namespace] = waiting  # behind the others
        elif not self._waiting:
            self._some_wait.clear()
        return event

    async def _write(self, about: Owner, kind: str, reason: str, message: str) -> None:
        path = f"/api/v1/namespaces/{about.namespace}/events"
        at = now()
        key = (about.uid, reason, message)
        if known := self._known.get(key):
            name, count = known[0], known[1] + 1
            try:
                await self._api.merge(f"{path}/{name}", {"count": count, "lastTimestamp": at})
            except ClusterRefused as exc:
                if exc.status != NOT_FOUND:  # the server deletes Events after an hour
                    raise
            else:
                self._remember(key, name, count)
                return
        created = await self._api.create(path, _event(about, kind, reason, message, at))
        self._remember(key, created["metadata"]["name"], 1)

    def _remember(self, key: tuple[str, str, str], name: str, count: int) -> None:
        self._known[key] = (name, count)
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _event(about: Owner, kind: str, reason: str, message: str, at: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{about.name}.", "namespace": about.namespace},
        "involvedObject": {**about.reference(), "namespace": about.namespace},
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": FIELD_MANAGER, "host": socket.gethostname()},
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
