"""What a mirror takes from our own calls beside its watch."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from binwright.controller.kube.mirror import Mirror

Obj = dict[str, Any]


def made(version: int, **more: str) -> Obj:
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
    """An API server that lists nothing, and then tells what a test puts into it."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Obj] = asyncio.Queue()

    async def get(self, _path: str, **_: str) -> Obj:
        return {"items": [], "metadata": {"resourceVersion": "1"}}

    async def watch(self, _path: str, _timeout_s: int, **_: str) -> AsyncIterator[Obj]:
        while True:
            yield await self.events.get()
            self.events.task_done()


async def test_a_late_answer_does_not_undo_what_the_watch_told() -> None:
    script: Any = Script()
    mirror = Mirror(script, "/path")
    following = asyncio.create_task(mirror.run())
    try:
        await mirror.ready(10.0)
        mirror.put(made(2))
        assert mirror.get("here", "it") == made(2)
        script.events.put_nowait({"type": "MODIFIED", "object": made(4, status="new")})
        await script.events.join()
        mirror.put(made(3))
        assert mirror.get("here", "it") == made(4, status="new")
        script.events.put_nowait({"type": "DELETED", "object": made(6)})
        await script.events.join()
        mirror.put(made(5))
        assert mirror.get("here", "it") is None
        mirror.put(made(7))
        assert mirror.get("here", "it") == made(7)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
