"""The Kubernetes API as paths and JSON: every call has a deadline, every refusal a reason.

The generated client signs and sends; its models stay out, for a watch of fifty pods is otherwise
mostly spent on building objects that nobody reads.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import structlog
from kubernetes_asyncio import config
from kubernetes_asyncio.client.api_client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration

from binwright.controller.answers import answering, lines, reason
from binwright.core.errors import ClusterRefused, ClusterUnavailable, SettingsError

log = structlog.get_logger()

Obj = dict[str, Any]
"""A Kubernetes object, as JSON."""

FIELD_MANAGER = "binwright-controller"
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
TRIES = 4
FIRST_REST_S, LONGEST_REST_S = 0.2, 5.0
PARALLEL = 32  # requests at a time; an API server gives one client little more
GONE, CONFLICT, NOT_FOUND, BUSY, FAILING = 410, 409, 404, 429, 500
_JSON = "application/json"
_KINDS = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
}


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Api:
    """One API server, as one identity, with a deadline for every call."""

    def __init__(self, configuration: Any, timeout_s: float, watches: int = 8) -> None:
        """Use a client's `configuration`; no call may take longer than `timeout_s`.

        So many `watches` may run: each holds a connection for long.
        """
        configuration.connection_pool_maxsize = PARALLEL + watches
        self._client, self._timeout_s = ApiClient(configuration), timeout_s
        self._client.user_agent = FIELD_MANAGER
        self._turns = asyncio.Semaphore(PARALLEL)

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    async def get(self, path: str, **query: str) -> Obj:
        """Return an object, or a list of them."""
        return await self._call("GET", path, query)

    async def create(self, path: str, body: Obj) -> Obj:
        """Add an object to a collection."""
        return await self._call("POST", path, {"fieldManager": FIELD_MANAGER}, body)

    async def apply(self, path: str, body: Obj) -> Obj:
        """Make the object hold what `body` says, whoever changed that; the rest stays as it is."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._call("PATCH", path, query, body, _KINDS["apply"])

    async def merge(self, path: str, body: Obj) -> Obj:
        """Change some fields of an object that is there."""
        return await self._call("PATCH", path, {}, body, _KINDS["merge"])

    async def delete(
        self, path: str, *, grace_s: int | None = None, uid: str | None = None
    ) -> None:
        """Delete an object (this one, given `uid`) and, in the background, what it owns.

        None there is as good.
        """
        body: Obj = {"propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:  # from the body alone: beside one, the query's is not read
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
            ClusterUnavailable: No connection, or it fell silent.
            ClusterRefused: Not allowed, or (410) the version to start from is too old.
        """
        patience = aiohttp.ClientTimeout(
            sock_connect=self._timeout_s, sock_read=timeout_s + self._timeout_s
        )
        asked = {**query, "watch": "true", "timeoutSeconds": str(timeout_s)}
        with answering(path, ClusterUnavailable):
            async with await self._send("GET", path, asked, None, _JSON, patience) as answer:
                await _check(answer, f"watch {path}")
                async for line in lines(answer):
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
        kind: str = _JSON,
    ) -> Obj:
        rest_s = FIRST_REST_S
        for left in reversed(range(TRIES)):
            try:
                return await self._once(verb, path, query, body, kind)
            except ClusterUnavailable as exc:
                # It hung up on what it may have done: only what may be done twice is done again.
                hung_up = isinstance(exc.__cause__, aiohttp.ServerDisconnectedError)
                if not left or verb == "POST" or not hung_up:
                    raise
                log.info("kubernetes.retried", verb=verb, path=path, reason=str(exc))
            except ClusterRefused as exc:
                busy = exc.status == BUSY or exc.status >= FAILING
                if not left or not (busy or (exc.status == CONFLICT and verb == "PATCH")):
                    raise
                log.info("kubernetes.retried", verb=verb, path=path, reason=str(exc))
                await asyncio.sleep(min(max(rest_s, exc.after_s), LONGEST_REST_S))
                rest_s *= 2
        raise AssertionError("the last try returns or raises")

    async def _once(
        self, verb: str, path: str, query: Mapping[str, str], body: Obj | None, kind: str
    ) -> Obj:
        patience = aiohttp.ClientTimeout(total=self._timeout_s)
        with answering(path, ClusterUnavailable):
            async with (
                self._turns,
                await self._send(verb, path, query, body, kind, patience) as answer,
            ):
                await _check(answer, f"{verb} {path}")
                found: Obj = orjson.loads(await answer.read())
                return found

    async def _send(  # noqa: PLR0913, PLR0917 - an HTTP request has so many parts
        self,
        verb: str,
        path: str,
        query: Mapping[str, str],
        body: Obj | None,
        kind: str,
        patience: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        answer: aiohttp.ClientResponse = await self._client.call_api(
            path,
            verb,
            query_params=list(query.items()),
            header_params={"Accept": _JSON, "Content-Type": kind},
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=patience,
        )
        return answer


async def _check(answer: aiohttp.ClientResponse, asked: str) -> None:
    if answer.ok:
        return
    said = reason(await answer.read())
    after = answer.headers.get("Retry-After", "")
    raise ClusterRefused(
        answer.status, f"{asked}: {said}", float(after) if after.isdigit() else 0.0
    )


async def configured(kubeconfig: Path | None) -> Any:
    """Return how to reach the cluster: a file's way, or the pod's own.

    Raises:
        SettingsError: There is no such file, or this is no pod.
    """
    chosen = Configuration()
    try:
        if kubeconfig is not None:
            await config.load_kube_config(str(kubeconfig), client_configuration=chosen)
        else:
            config.load_incluster_config(client_configuration=chosen)
    except config.ConfigException as exc:
        raise SettingsError(
            f"no way to Kubernetes: {exc}. Run in a pod with a service account, "
            "or name a file: kubernetes.kubeconfig"
        ) from exc
    return chosen


def collection(root: str, namespace: str, plural: str) -> str:
    """Return the path of a kind's objects in a namespace, or in all if that is empty."""
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def own_namespace(given: str | None) -> str:
    """Return the namespace to work in.

    Raises:
        SettingsError: None is given, and this is no pod.
    """
    if given is not None:
        return given
    try:
        return NAMESPACE_FILE.read_text().strip()
    except OSError as exc:
        raise SettingsError("kubernetes.namespace: needed outside of a pod") from exc
