"""Whether a probe passes: by HTTP, by a connection, or by a command's exit code."""

import asyncio
from contextlib import suppress
from pathlib import Path

import aiohttp

from binwright.controller.kube.api import Obj


async def passes(address: str, container: Obj, probe: Obj, directory: Path) -> bool:
    """Look once; no answer in time is none."""
    with suppress(OSError, aiohttp.ClientError, TimeoutError):
        async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
            if asked := probe.get("httpGet"):
                return await _http(address, container, asked)
            if asked := probe.get("tcpSocket"):
                return await _tcp(address, container, asked)
            return await _exec(probe["exec"]["command"], directory)
    return False


async def _http(address: str, container: Obj, asked: Obj) -> bool:
    url = f"http://{address}:{_port(container, asked)}{asked.get('path', '/')}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.ok


async def _tcp(address: str, container: Obj, asked: Obj) -> bool:
    _, writer = await asyncio.open_connection(address, _port(container, asked))
    writer.close()
    return True


async def _exec(command: list[str], directory: Path) -> bool:
    process = await asyncio.create_subprocess_exec(*command, cwd=directory)
    return await process.wait() == 0


def _port(container: Obj, asked: Obj) -> int:
    named = {port.get("name"): port["containerPort"] for port in container.get("ports", ())}
    port: int | str = asked["port"]
    return int(named.get(port, port))
