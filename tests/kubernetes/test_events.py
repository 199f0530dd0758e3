"""Namespaces take turns with their Events."""

import asyncio
from typing import Any

from structlog.testing import capture_logs

from binwright.kubernetes.events import WAITING, EventRecorder
from binwright.kubernetes.objects import Obj, Owner
from binwright.runtime.run import background_tasks


class Server:
    """Creates Events, one at a time."""

    def __init__(self) -> None:
        self.namespaces: list[str] = []
        self.done = asyncio.Event()

    async def create(self, path: str, body: Obj) -> Obj:
        del path
        self.namespaces.append(body["metadata"]["namespace"])
        if body["reason"] == "Last":
            self.done.set()
        return {"metadata": {"name": "created"}}


def owner(namespace: str) -> Owner:
    return Owner("v1", "ConfigMap", "it", "u", namespace)


async def test_many_events_of_one_namespace_delay_no_other_s() -> None:
    server: Any = Server()
    recorder = EventRecorder(server)
    with capture_logs() as logs:
        for number in range(WAITING + 50):
            recorder.note(owner("flood"), "Refused", f"number {number}")
        recorder.note(owner("other"), "Last", "it")
    assert [log["event"] for log in logs] == ["event.dropped"] * 50
    async with asyncio.timeout(10), background_tasks(recorder.run()):
        await server.done.wait()
    assert server.namespaces[:2] == ["flood", "other"]


async def test_events_are_written_in_their_order() -> None:
    server: Any = Server()
    recorder = EventRecorder(server)
    async with asyncio.timeout(10), background_tasks(recorder.run()):
        for text in ("one", "two"):
            recorder.note(owner("a"), "Changed", text)
        recorder.note(owner("a"), "Last", "three")
        await server.done.wait()
    assert server.namespaces == ["a"] * 3
