"""How an informer combines the results of our own calls with its watch."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from binwright.kubernetes.informer import Informer
from binwright.protocol.errors import ClusterRefused

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


async def test_only_what_is_kept_of_an_object_is_a_change_of_it() -> None:
    def keep(obj: Obj) -> Obj:
        meta = obj["metadata"]
        return {"metadata": {"name": meta["name"], "uid": "u", "namespace": "here"}, **taints(meta)}

    def taints(meta: Obj) -> Obj:
        return {"taints": meta["taints"]} if "taints" in meta else {}

    script: Any = Script()
    informer, seen = Informer(script, "/path", keep=keep), list[Obj]()
    informer.add_handler(seen.append)
    following = asyncio.create_task(informer.run())
    try:
        await informer.ready(10.0)
        script.events.put_nowait({"type": "ADDED", "object": version_of(2)})
        script.events.put_nowait({"type": "MODIFIED", "object": version_of(3, beat="again")})
        script.events.put_nowait({"type": "MODIFIED", "object": version_of(4, taints="one")})
        script.events.put_nowait({"type": "DELETED", "object": version_of(5)})
        await script.events.join()
        assert [obj.get("taints") for obj in seen] == [None, "one", None]
        assert list(informer) == []
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


class Closed(Script):
    """An API server that refuses to list, until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0
        self.open = False

    async def get(self, _path: str, **_: str) -> Obj:
        if self.open:
            return await super().get(_path)
        self.refused += 1
        raise ClusterRefused(403, "nodes is forbidden")


@pytest.mark.looptime
async def test_a_right_that_is_missing_is_logged_once_and_known_until_it_is_there() -> None:
    script: Any = Closed()
    informer = Informer(script, "/path")
    following = asyncio.create_task(informer.run())
    try:
        with capture_logs() as logs:
            await asyncio.sleep(60)
        assert script.refused > 3
        assert "nodes is forbidden" in informer.refusal
        assert [log["event"] for log in logs] == ["watch.failed"]
        script.open = True
        await informer.ready(20.0)
        assert not informer.refusal
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
