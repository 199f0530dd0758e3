"""The Kubernetes API as paths and JSON: each call has a deadline, each refusal a reason.

The generated client authenticates and sends. Its models are not used: a watch of fifty pods would
spend most of its time on building objects that are not read.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import aiohttp
import orjson
from kubernetes_asyncio.client.api_client import ApiClient

from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import ClusterRefused, ClusterUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.runtime.backoff import Backoff
from binwright.runtime.logs import log

KUBERNETES_RETRIED = LogEvent.info(
    "kubernetes.retried", "A request to the API server failed and is sent again."
)

FIELD_MANAGER = "binwright-controller"
ATTEMPTS = 4
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
PARALLEL = 32  # requests at a time; an API server serves one client little more
NAMESPACE_PARALLEL = 8  # of these: the many objects of one namespace delay no other's
GONE, CONFLICT, NOT_FOUND, FORBIDDEN, BUSY, FAILING = 410, 409, 404, 403, 429, 500
_JSON = "application/json"
_PATCH_TYPES = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
}


class Api:
    """One API server, used with one identity, with a deadline for each call."""

    def __init__(self, configuration: Any, timeout_s: float, watches: int = 8) -> None:
        """Use a client's `configuration`; no call may take longer than `timeout_s`.

        At most `watches` may run at a time: each holds a connection.
        """
        configuration.connection_pool_maxsize = PARALLEL + watches
        self._client, self._timeout_s = ApiClient(configuration), timeout_s
        self._client.user_agent = FIELD_MANAGER
        self._parallel = asyncio.Semaphore(PARALLEL)
        self._of_namespace = defaultdict[str, asyncio.Semaphore](
            lambda: asyncio.Semaphore(NAMESPACE_PARALLEL)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def get(self, path: str, **query: str) -> Obj:
        """Return an object, or a list of them."""
        return await self._call("GET", path, query)

    async def create(self, path: str, body: Obj) -> Obj:
        """Add an object to a collection."""
        return await self._call("POST", path, {"fieldManager": FIELD_MANAGER}, body)

    async def apply(self, path: str, body: Obj) -> Obj:
        """Apply `body` (server-side, forced): its fields are set, all others stay as they are."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._call("PATCH", path, query, body, _PATCH_TYPES["apply"])

    async def merge(self, path: str, body: Obj) -> Obj:
        """Change some fields of an object that exists."""
        return await self._call("PATCH", path, {}, body, _PATCH_TYPES["merge"])

    async def scale(self, path: str, replicas: int) -> Obj:
        """Set the number of a workload's replicas, by its `scale` subresource."""
        body: Obj = {"spec": {"replicas": replicas}}
        query = {"fieldManager": FIELD_MANAGER}
        return await self._call("PATCH", f"{path}/scale", query, body, _PATCH_TYPES["merge"])

    async def delete(
        self, path: str, *, grace_s: int | None = None, uid: str | None = None
    ) -> None:
        """Delete an object (given `uid`, only that one) and, in the background, what it owns.

        It is no error if the object does not exist.
        """
        body: Obj = {"propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:  # in the body: the API server ignores the query if there is a body
            body["gracePeriodSeconds"] = grace_s
        try:
            await self._call("DELETE", path, {}, body)
        except ClusterRefused as exc:
            another = uid is not None and exc.status == CONFLICT
            if exc.status != NOT_FOUND and not another:
                raise

    async def watch(self, path: str, timeout_s: int, **query: str) -> AsyncIterator[Obj]:
        """Yield watch events until the server ends the stream.

        Raises:
            ClusterUnavailable: No connection, or nothing came on it in time.
            ClusterRefused: Not allowed, or (410) the version to start from is too old.
        """
        timeout = aiohttp.ClientTimeout(
            sock_connect=self._timeout_s, sock_read=timeout_s + self._timeout_s
        )
        params = {**query, "watch": "true", "timeoutSeconds": str(timeout_s)}
        with _translated_errors(path):
            async with await self._send("GET", path, params, None, _JSON, timeout) as response:
                await _check(response, f"watch {path}")
                async for line in _lines(response):
                    event: Obj = orjson.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise ClusterRefused(status.get("code", 500), status.get("message", ""))
                    yield event

    async def _call(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str],
        body: Obj | None = None,
        content_type: str = _JSON,
    ) -> Obj:
        pause = Backoff(LONGEST_PAUSE_S, first_s=FIRST_PAUSE_S)
        for left in reversed(range(ATTEMPTS)):
            try:
                return await self._call_once(verb, path, query, body, content_type)
            except ClusterUnavailable as exc:
                # The server may have carried the request out: only idempotent ones are repeated.
                disconnected = isinstance(exc.__cause__, aiohttp.ServerDisconnectedError)
                if not left or verb == "POST" or not disconnected:
                    raise
                log(KUBERNETES_RETRIED, verb=verb, path=path, reason=str(exc))
            except ClusterRefused as exc:
                busy = exc.status == BUSY or exc.status >= FAILING
                if not left or not (busy or (exc.status == CONFLICT and verb == "PATCH")):
                    raise
                log(KUBERNETES_RETRIED, verb=verb, path=path, reason=str(exc))
                rest_s = min(max(pause.next(), exc.retry_after_s), LONGEST_PAUSE_S)
                await asyncio.sleep(rest_s)
        raise AssertionError("the last attempt returns or raises")

    async def _call_once(
        self, verb: str, path: str, query: Mapping[str, str], body: Obj | None, content_type: str
    ) -> Obj:
        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        with _translated_errors(path):
            async with (
                self._of_namespace[_namespace(path)],
                self._parallel,
                await self._send(verb, path, query, body, content_type, timeout) as response,
            ):
                await _check(response, f"{verb} {path}")
                answer: Obj = orjson.loads(await response.read())
                return answer

    async def _send(  # noqa: PLR0917 - an HTTP request has so many parts
        self,
        verb: str,
        path: str,
        query: Mapping[str, str],
        body: Obj | None,
        content_type: str,
        deadlines: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await self._client.call_api(
            path,
            verb,
            query_params=list(query.items()),
            header_params={"Accept": _JSON, "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=deadlines,
        )
        return response


def _namespace(path: str) -> str:
    """Return the namespace that a path is in; empty: none."""
    return path.partition("/namespaces/")[2].partition("/")[0]


async def _check(response: aiohttp.ClientResponse, request: str) -> None:
    if response.ok:
        return
    message = _error_message(await response.read())
    after = response.headers.get("Retry-After", "")
    raise ClusterRefused(
        response.status, f"{request}: {message}", float(after) if after.isdigit() else 0.0
    )


def _error_message(body: bytes) -> str:
    """Return why a request was refused, from the body of the response."""
    try:
        message: str = orjson.loads(body)["message"]
    except (ValueError, KeyError, TypeError):  # not the API's: a proxy in between replied
        return body[:200].decode(errors="replace")
    return message


@contextlib.contextmanager
def _translated_errors(path: str) -> Iterator[None]:
    """Raise `ClusterUnavailable` where no response to the request for `path` comes."""
    try:
        yield
    except TimeoutError as exc:
        raise ClusterUnavailable(f"no response in time: {path}") from exc
    except (aiohttp.ClientError, OSError) as exc:
        raise ClusterUnavailable(f"{path}: {str(exc) or type(exc).__name__}") from exc


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines of the body, however long: aiohttp's own reader fails on long ones."""
    rest = b""
    async for chunk in response.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
