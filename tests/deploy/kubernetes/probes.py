"""Whether a probe passes: by HTTP, by a connection, or by a command's exit code."""

import asyncio
from contextlib import suppress
from pathlib import Path

import aiohttp

from binwright.kubernetes.objects import Obj


async def passes(address: str, container: Obj, probe: Obj, directory: Path) -> bool:
    """Probe once; a timeout is a failure."""
    with suppress(OSError, aiohttp.ClientError, TimeoutError):
        async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
            if target := probe.get("httpGet"):
                return await _http(address, container, target)
            if target := probe.get("tcpSocket"):
                return await _tcp(address, container, target)
            return await _exec(probe["exec"]["command"], directory)
    return False


async def _http(address: str, container: Obj, target: Obj) -> bool:
    url = f"http://{address}:{_port(container, target)}{target.get('path', '/')}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.ok


async def _tcp(address: str, container: Obj, target: Obj) -> bool:
    _, writer = await asyncio.open_connection(address, _port(container, target))
    writer.close()
    return True


async def _exec(command: list[str], directory: Path) -> bool:
    process = await asyncio.create_subprocess_exec(*command, cwd=directory)
    return await process.wait() == 0


def _port(container: Obj, target: Obj) -> int:
    named = {port.get("name"): port["containerPort"] for port in container.get("ports", ())}
    port: int | str = target["port"]
    return int(named.get(port, port))
