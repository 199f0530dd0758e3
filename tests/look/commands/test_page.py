"""`binwright page` as a process."""

import asyncio
import json
import signal
import sys
from typing import Any

import aiohttp

from binwright.local.server import reserve_port

STARTED_S, ENDED_S = 60.0, 20.0


async def get(session: aiohttp.ClientSession, address: str) -> Any:
    try:
        async with session.get(address) as answer:
            return json.loads(await answer.text())
    except aiohttp.ClientConnectionError:
        return {"problem": None}


async def test_it_is_served_without_kafka_and_ends_on_sigterm() -> None:
    with reserve_port() as first, reserve_port() as second:
        port, unused = first, second
    command = ("-m", "binwright.cli", "page", "--port", str(port))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        *("--bootstrap-servers", f"127.0.0.1:{unused}"),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(STARTED_S):
            problem: Any = None
            while not problem or problem["kind"] == "reading":
                found = await get(session, f"http://127.0.0.1:{port}/view")
                problem = found["problem"]
                await asyncio.sleep(0.1)
        assert problem["kind"] == "unreachable"
        assert str(unused) in problem["text"]
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(ENDED_S):
            _, errors = await process.communicate()
    assert process.returncode == 0
    assert errors.count(b"nothing to show yet") == 1, "logged once, not at each attempt"
    assert b"Kafka cannot be used" in errors
