"""Answers browsers, programs and Prometheus about one group."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from binwright.runtime.clock import wall_ms
from binwright.runtime.http import Response, serve_http
from binwright.runtime.metrics import CONTENT_TYPE, exposition
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings import Settings
from binwright.views.metrics import group_samples
from binwright.views.page import document
from binwright.views.page.follower import Connect, Follower
from binwright.views.page.history import STEP_S, History
from binwright.views.page.snapshot import snapshot
from binwright.views.status import Status, status

FRESH_S = 1.0  # as old as what browsers get may be; they share it
SHARE = 0.1  # of a core, at most, for what browsers get: a large group's is older


@dataclass(slots=True)
class Page:
    """One group's page.

    Attributes:
        follower: The group.
        now_ms: The clock that records are stamped by.
        stopwatch: Tells what the work takes, s.
    """

    settings: Settings
    follower: Follower = field(init=False)
    history: History = field(default_factory=History)
    now_ms: Callable[[], int] = wall_ms
    stopwatch: Callable[[], float] = time.perf_counter
    _view: bytes = b""
    _view_until: float = 0.0  # s, of the loop's clock: until then it is fresh enough

    def __post_init__(self) -> None:
        self.follower = Follower(self.settings)

    async def serve(self, connect: Connect, address: str, port: int) -> None:
        """Follow the group and answer, until cancelled.

        Raises:
            UserError: The port cannot be had, or the connection's settings do not hold.
        """
        paths = {
            **document.paths(),
            "/view": self.view_json,
            "/history": self.history_json,
            "/status": self.status_json,
            "/metrics": self.metrics,
        }
        async with (
            serve_http(paths, address, port, "page"),
            background_tasks(
                must_not_end(self.follower.run(connect)), must_not_end(self.sample_history())
            ),
        ):
            await asyncio.Event().wait()

    async def sample_history(self) -> None:
        """Keep the history, for ever; while the view is not up to date, nothing is added."""
        while True:
            wait_s = FRESH_S
            if self.follower.problem is None:
                began = self.stopwatch()
                now_ms = self.now_ms()
                self.history.add(now_ms, self._status(now_ms), self.settings.controller)
                wait_s = max(STEP_S, (self.stopwatch() - began) / SHARE)
                self.history.step_s = wait_s
            await asyncio.sleep(wait_s)

    def view_json(self) -> Response:
        """Return what the page draws, at most a second old (a large group's may be older)."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._view_until:
            began = self.stopwatch()
            now_ms = self.now_ms()
            found = self._status(now_ms)
            self._view = orjson.dumps(snapshot(self.follower, found, now_ms))
            took_s = self.stopwatch() - began
            self._view_until = loop.time() + max(FRESH_S, took_s / SHARE)
        return _json(self._view)

    def history_json(self) -> Response:
        """Return the last hour."""
        return _json(orjson.dumps(self.history.to_json()))

    def status_json(self) -> Response:
        """Return what `binwright status --json` says of the group."""
        return _json(orjson.dumps(self._status(self.now_ms()).to_json()))

    def metrics(self) -> Response:
        """Return the group's numbers, for Prometheus."""
        return Response(
            exposition(group_samples(self._status(self.now_ms()))).encode(), CONTENT_TYPE
        )

    def _status(self, now_ms: int) -> Status:
        return status(self.settings.group, self.follower.view, now_ms, self.settings.landed_topics)


def _json(body: bytes) -> Response:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(body, headers=headers)
