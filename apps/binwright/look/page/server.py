"""Answers browsers, programs and Prometheus about one group."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson
from prometheus_client import CollectorRegistry, generate_latest

from binwright.look.explain.answers import FreshnessFacts, GroupFacts
from binwright.look.explain.questions import answer
from binwright.look.follower import Connect
from binwright.look.page.live_group import LiveGroup, ignore
from binwright.look.page.metrics import group_samples
from binwright.look.page.order_desk import OrderDesk
from binwright.look.page.snapshot import snapshot
from binwright.look.status import Status, status
from binwright.protocol.errors import UserError
from binwright.runtime.clock import wall_ms
from binwright.runtime.exposition import CONTENT_TYPE, Samples
from binwright.runtime.http import Listener, Paths, Response, json_response, serve_http
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.group import Settings

FRESH_S = 1.0  # as old as what browsers get may be; they share it
SHARE = 0.1  # of a core, at most, for what browsers get: a large group's is older
QUESTIONS = 1_000  # most that are answered about a group as it was at one moment
STEP_S = 5.0
POINTS = 720  # an hour
PORT = 8088  # unless a person names one

T = TypeVar("T")
OnOpened = Callable[[str], None]

WEB = Path(__file__).with_name("web")
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
# The browser itself refuses what a hostile name of a topic might try.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # a newer version's files fit together
}


@dataclass(slots=True)
class LoadHistory:
    """A group's load and consumers over the last hour, oldest first, for the charts of the page.

    While Kafka is away there are no samples.

    Attributes:
        step_s: Between samples at present: more than `STEP_S` where one costs much.
    """

    step_s: float = STEP_S
    _points: deque[tuple[float, ...]] = field(default_factory=lambda: deque(maxlen=POINTS))

    def add(self, at_ms: int, status: Status) -> None:
        """Take a sample: the group at that moment of the wall clock."""
        live = [each.slot for each in status.consumers if each.state != "silent"]
        limit = round(sum(status.limit(slot) or 0.0 for slot in live))
        load, staging = round(status.load), round(status.staging)
        age_s = round(status.age_s, 1)
        self._points.append((at_ms, load, staging, limit, len(live), status.lag, age_s))

    def to_json(self) -> dict[str, Any]:
        """Return it for the page."""
        names = ("at_ms", "load", "staging", "limit", "consumers", "lag", "age_s")
        return {"step_s": self.step_s, "fields": names, "points": tuple(self._points)}


@dataclass(slots=True)
class Shared(Generic[T]):
    """What many clients ask for, made at most once a second, and rarely where that costs much.

    Attributes:
        make: Makes it.
        stopwatch: Tells what that takes, s.
    """

    make: Callable[[], T]
    stopwatch: Callable[[], float]
    _made: T | None = None
    _until: float = 0.0  # s, of the loop's clock: until then it is fresh enough

    def get(self) -> T:
        """Return it, at most a second old, or as old as makes it a tenth of a core."""
        loop = asyncio.get_running_loop()
        if self._made is None or loop.time() >= self._until:
            began = self.stopwatch()
            self._made = self.make()
            took_s = self.stopwatch() - began
            self._until = loop.time() + max(FRESH_S, took_s / SHARE)
        return self._made

    def charge(self, took_s: float) -> None:
        """Keep it for longer: this much more work, s, was done with it."""
        self._until += took_s / SHARE


@dataclass(slots=True)
class Page:
    """One group's page.

    Attributes:
        live: The group.
        now_ms: The clock that records are stamped by.
        stopwatch: Tells what the work takes, s.
        on_problem: See `LiveGroup`.
        desk: Gives the orders that browsers send; None: it takes none.
    """

    settings: Settings
    on_problem: Callable[[str], None] = ignore
    desk: OrderDesk | None = None
    live: LiveGroup = field(init=False)
    history: LoadHistory = field(default_factory=LoadHistory)
    now_ms: Callable[[], int] = wall_ms
    stopwatch: Callable[[], float] = time.perf_counter
    _view: Shared[bytes] = field(init=False)
    _history: Shared[bytes] = field(init=False)
    _status_body: Shared[bytes] = field(init=False)
    _metrics: Shared[bytes] = field(init=False)
    _asked: Shared[tuple[GroupFacts, dict[str, Response]]] = field(init=False)

    def __post_init__(self) -> None:
        registry = CollectorRegistry()
        self.live = LiveGroup(self.settings, self.on_problem, registry)
        registry.register(Samples(lambda: group_samples(self._status(self.now_ms()))))

        def shared(make: Callable[[], T]) -> Shared[T]:
            return Shared(make, lambda: self.stopwatch())  # noqa: PLW0108 - tests replace it

        self._view = shared(self._make_view)
        self._history = shared(lambda: orjson.dumps(self.history.to_json()))
        self._status_body = shared(lambda: orjson.dumps(self._status(self.now_ms()).to_json()))
        self._metrics = shared(lambda: generate_latest(registry))
        self._asked = shared(self._make_group)

    async def serve(self, connect: Connect, listener: Listener, opened: OnOpened) -> None:
        """Follow the group and answer, until cancelled.

        Args:
            connect: Opens the bus to follow the group on.
            listener: Where to listen, and to whom to respond.
            opened: Called with the page's address, once it is answered there.

        Raises:
            UserError: The port cannot be had, the connection's settings do not hold, or it takes
                orders and the listener has no token.
        """
        paths = {
            **document_paths(),
            "/view": self.view_json,
            "/history": self.history_json,
            "/status": self.status_json,
            "/metrics": self.metrics,
        }
        below = {"/explain/": self.explanation_json}
        posts = {"/orders": self.desk.take} if self.desk else {}
        async with (
            serve_http(paths, listener, below, posts) as port,
            background_tasks(
                must_not_end(self.live.run(connect)), must_not_end(self.sample_history())
            ),
        ):
            scheme = "https" if listener.certificate_file else "http"
            opened(f"{scheme}://{listener.address}:{port}")
            await asyncio.Event().wait()

    async def sample_history(self) -> None:
        """Keep the history, for ever; while the view is not up to date, nothing is added."""
        while True:
            wait_s = FRESH_S
            if self.live.problem is None:
                began = self.stopwatch()
                now_ms = self.now_ms()
                self.history.add(now_ms, self._status(now_ms))
                wait_s = max(STEP_S, (self.stopwatch() - began) / SHARE)
                self.history.step_s = wait_s
            await asyncio.sleep(wait_s)

    def view_json(self) -> Response:
        """Return what the page draws, at most a second old (a large group's may be older)."""
        return json_response(self._view.get())

    def history_json(self) -> Response:
        """Return the last hour."""
        return json_response(self._history.get())

    def status_json(self) -> Response:
        """Return what `binwright status --json` says of the group."""
        return json_response(self._status_body.get())

    def explanation_json(self, what: str) -> Response:
        """Return what `binwright explain WHAT --json` says.

        All questions of a moment are about one look at the group, and each is answered once.
        """
        group, answers = self._asked.get()
        if what in answers:
            return answers[what]
        if len(answers) >= QUESTIONS:
            error = "too many questions at once: ask again in a few seconds"
            return _error(error, HTTPStatus.TOO_MANY_REQUESTS)
        began = self.stopwatch()
        try:
            answers[what] = json_response(orjson.dumps(answer(group, what).to_json()))
        except UserError as exc:
            return _error(str(exc), HTTPStatus.NOT_FOUND)
        self._asked.charge(self.stopwatch() - began)
        return answers[what]

    def _make_group(self) -> tuple[GroupFacts, dict[str, Response]]:
        now_ms = self.now_ms()
        return GroupFacts(
            self.live.view, self._status(now_ms), now_ms, FreshnessFacts.of(self.settings)
        ), {}

    def metrics(self) -> Response:
        """Return the group's numbers, for Prometheus."""
        return Response(self._metrics.get(), CONTENT_TYPE)

    def _make_view(self) -> bytes:
        now_ms = self.now_ms()
        seen = snapshot(self.live, self._status(now_ms), now_ms)
        return orjson.dumps({**seen, "takes_orders": self.desk is not None})

    def _status(self, now_ms: int) -> Status:
        return status(self.settings.group, self.live.view, now_ms, self.settings.landed_topics)


def document_paths() -> Paths:
    """Return the document's files by path, itself at `/`: they load nothing from elsewhere."""
    responses: dict[str, Callable[[], Response]] = {}
    for file in sorted(WEB.iterdir()):
        response = Response(file.read_bytes(), TYPES[file.suffix], headers=HEADERS)
        responses[f"/{file.name}"] = partial(_give, response)
    return {"/": responses.pop("/index.html"), **responses}


def _error(text: str, status: HTTPStatus) -> Response:
    return json_response(orjson.dumps({"error": text}), status)


def _give(response: Response) -> Response:
    return response
