"""How an informer combines the results of our own calls with its watch."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from binwright.kubernetes.informer import Informer

Obj = dict[str, Any]


def version_of(version: int, **more: str) -> Obj:
    return {
        "metadata": {
            "name": "it",
            "namespace": "here",
            "uid": "u",
            "resourceVersion": str(version),
            **more,
        }
    }


class Script:
    """An API server that lists nothing, and then sends the events that a test puts into it."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Obj] = asyncio.Queue()

    async def get(self, _path: str, **_: str) -> Obj:
        return {"items": [], "metadata": {"resourceVersion": "1"}}

    async def watch(self, _path: str, _timeout_s: int, **_: str) -> AsyncIterator[Obj]:
        while True:
            yield await self.events.get()
            self.events.task_done()


async def test_a_late_response_does_not_undo_what_the_watch_delivered() -> None:
    script: Any = Script()
    informer = Informer(script, "/path")
    following = asyncio.create_task(informer.run())
    try:
        await informer.ready(10.0)
        informer.put(version_of(2))
        assert informer.get("here", "it") == version_of(2)
        script.events.put_nowait({"type": "MODIFIED", "object": version_of(4, status="new")})
        await script.events.join()
        informer.put(version_of(3))
        assert informer.get("here", "it") == version_of(4, status="new")
        script.events.put_nowait({"type": "DELETED", "object": version_of(6)})
        await script.events.join()
        informer.put(version_of(5))
        assert informer.get("here", "it") is None
        informer.put(version_of(7))
        assert informer.get("here", "it") == version_of(7)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
