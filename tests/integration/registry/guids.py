"""A registry that serves GUIDs, as Confluent's does; the real one of the tests serves none.

It answers what Confluent documents for `GET /schemas/guids/{guid}`: the schema as by its id, or
404 with the code 40403. All else the real one answers, which is behind it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, UUID, uuid5

from aiohttp import web
from tests.integration.registry.server import RegistryServer

from binwright.local.server import HOST

REQUEST_S = 10.0


class GuidRegistry:
    """A registry in front of another."""

    def __init__(self, registry: RegistryServer) -> None:
        self.url = ""
        self._registry = registry
        self._ids: dict[str, int] = {}  # GUID -> the id that the real registry gave

    def register(self, subject: str, schema: Any, kind: str = "AVRO") -> tuple[int, UUID]:
        """Register a version of a subject; return the schema's id and GUID."""
        number = self._registry.register(subject, schema, kind=kind)
        guid = uuid5(NAMESPACE_URL, f"{kind} {schema}")
        self._ids[str(guid)] = number
        return number, guid

    async def serve(self, request: web.Request) -> web.Response:
        """Answer a request."""
        behind, path = urlsplit(self._registry.url), request.raw_path
        if (guid := path.removeprefix("/schemas/guids/")) != path:
            if (number := self._ids.get(guid)) is None:
                missing = {"error_code": 40403, "message": "Schema not found"}
                return web.json_response(missing, status=404)
            path = f"/schemas/ids/{number}"

        def ask() -> tuple[int, bytes]:
            connection = HTTPConnection(str(behind.hostname), behind.port, timeout=REQUEST_S)
            connection.request("GET", behind.path + path)
            reply = connection.getresponse()
            return reply.status, reply.read()

        status, body = await asyncio.to_thread(ask)
        return web.Response(status=status, body=body, content_type="application/json")


@asynccontextmanager
async def serving_guids(registry: RegistryServer) -> AsyncIterator[GuidRegistry]:
    """Run one in front of this registry."""
    served = GuidRegistry(registry)
    application = web.Application()
    application.router.add_get("/{path:.*}", served.serve)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0).start()
        served.url = f"http://{HOST}:{runner.addresses[0][1]}"
        yield served
    finally:
        await runner.cleanup()
