"""What probes are answered."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from tests.exposition import value

from binwright.fleets.metrics import SLOT_TROUBLE
from binwright.local.server import reserve_port
from binwright.protocol.errors import SettingsError
from binwright.runtime.exposition import CONTENT_TYPE
from binwright.runtime.health import Health, serve_health
from binwright.runtime.metrics import UP, Sample
from binwright.runtime.settings.health import HealthSettings


async def asked(port: int, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as answer,
    ):
        return answer.status, (await answer.json())["reason"]


async def test_ready_follows_the_service() -> None:
    with reserve_port() as port:
        free = port
    async with serve_health(HealthSettings(port=free)) as health:
        assert await asked(free, "/ready") == (503, "starting")
        health.ready = lambda: ""
        assert await asked(free, "/ready") == (200, "")
        assert await asked(free, "/live") == (200, "")


async def test_metrics_hold_those_of_every_service_and_its_own() -> None:
    with reserve_port() as port:
        free = port
    async with serve_health(HealthSettings(port=free)) as health:
        trouble = {"group": 'a "b"', "slot": "0", "reason": "back\\off\nagain"}
        health.collectors.append(lambda: [Sample(SLOT_TROUBLE, 1, trouble)])
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{free}/metrics") as answer,
        ):
            page, kind = await answer.text(), answer.headers["Content-Type"]
    assert kind.startswith(CONTENT_TYPE)
    assert value(page, "ready") == 0
    assert value(page, "slot_trouble", **trouble) == 1


async def test_metrics_of_a_task_end_with_it() -> None:
    health = Health(120.0)
    with health.collecting(lambda: [Sample(UP, 1)]):
        assert len(list(health.samples())) == 3
    assert len(list(health.samples())) == 2


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"HEAD /ready HTTP/1.1", b"503"),
        (b"GET /live?verbose=1 HTTP/1.0", b"200"),
        (b"GET / HTTP/1.1", b"404"),
        (b"POST /ready HTTP/1.1", b"405"),
        (b"nonsense", b"405"),
    ],
)
async def test_every_request_has_an_answer(request_line: bytes, status: bytes) -> None:
    with reserve_port() as port:
        free = port
    async with serve_health(HealthSettings(port=free)), asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", free)
        writer.write(request_line + b"\r\nHost: localhost\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert answer.split()[1] == status
    assert answer.endswith(b"\r\n\r\n") == request_line.startswith(b"HEAD")


async def test_a_client_that_hangs_up_or_sends_too_much_disturbs_no_other() -> None:
    with reserve_port() as port:
        free = port
    async with serve_health(HealthSettings(port=free)), asyncio.timeout(20):
        for words in (b"GET /re", b"x" * 200_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", free)
            writer.write(words)
            writer.write_eof()
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
        assert (await asked(free, "/live"))[0] == 200


async def test_a_port_that_is_taken_is_reported() -> None:
    async def serve(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None: ...

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(SettingsError, match=f"health: 127.0.0.1:{port}"):
            async with serve_health(HealthSettings(port=port)):
                pass


@pytest.mark.looptime
async def test_a_stuck_loop_is_named() -> None:
    health = Health(patience_s=10.0)
    health.beat("passes")
    health.beat("words")
    assert health.has_run("passes")
    assert not health.has_run("others")
    await asyncio.sleep(8.0)
    health.beat("words")
    assert not health.stuck()
    await asyncio.sleep(8.0)
    assert health.stuck() == "passes: 16 s"
