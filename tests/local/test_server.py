"""A server is started, stopped, killed and started again."""

import asyncio
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from binwright.local.child import Child, Command
from binwright.local.server import HOST, Server, accepts_connections, reserve_port, run_directory
from binwright.protocol.errors import EmbeddedError
from binwright.runtime.environment import clean_environment

CODE = "import time; print('up', flush=True); time.sleep(600)"


def sleeper(home: Path, *, code: str = CODE) -> tuple[Server, list[str]]:
    message: list[str] = []
    log = home / "log"
    command = Command("it", (sys.executable, "-c", code), home, log, clean_environment({}))

    async def until_up(child: Child) -> None:
        async def up() -> bool:
            return log.read_text().endswith("up\n")

        await child.wait_until_ready(up, deadline_s=30)

    return Server(command, until_ready=until_up, grace_s=30, progress=message.append), message


async def test_it_lives_from_start_to_stop_and_again(tmp_path: Path) -> None:
    server, message = sleeper(tmp_path)
    pids = [server.pid]
    # A start of one that runs and a stop of one that does not change nothing.
    for act in (server.start, server.start, server.stop, server.stop, server.start, server.kill):
        await act()
        pids.append(server.pid)
    none, first, same, stopped, still, second, killed = pids
    assert (none, stopped, still, killed) == (None,) * 4
    assert first == same
    assert len({first, second, None}) == 3
    assert [line.split(" after")[0] for line in message] == ["starting it", "it is ready"] * 2


async def test_a_start_that_fails_leaves_no_process(tmp_path: Path) -> None:
    server, _ = sleeper(tmp_path, code="exit(1)")
    with pytest.raises(EmbeddedError, match="it ended with 1"):
        await server.start()
    assert server.pid is None
    assert not [c for c in psutil.Process().children() if str(tmp_path) in c.cmdline()]


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def test_no_port_is_given_twice() -> None:
    with ExitStack() as stack:
        ports = [stack.enter_context(reserve_port()) for _ in range(200)]
    assert len(set(ports)) == len(ports)


async def test_a_server_can_listen_on_a_reserved_port() -> None:
    with reserve_port() as port:
        assert not await accepts_connections(port)
        async with await asyncio.start_server(hang_up, HOST, port):
            assert await accepts_connections(port)
        assert not await accepts_connections(port)


def test_a_port_that_is_taken_is_refused_with_a_way_out() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(EmbeddedError, match=f"port {port} .*name no port"), reserve_port(port):
            pass


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(EmbeddedError, match=str(port)), reserve_port(port):
        pass


def interrupt(directory: Path, error: BaseException) -> None:
    def start() -> None:
        with run_directory(directory) as home:
            (home / "data").mkdir()
            (home / "log").touch()
            raise error

    with pytest.raises(type(error)):
        start()


def test_a_cancelled_start_leaves_no_directory_nor_those_above_it(tmp_path: Path) -> None:
    interrupt(tmp_path / "a" / "b", asyncio.CancelledError())
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "theirs").touch()
    interrupt(tmp_path, asyncio.CancelledError())
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_the_log_stays_after_an_embedded_error(tmp_path: Path) -> None:
    interrupt(tmp_path / "a", EmbeddedError("look into the log"))
    assert (tmp_path / "a" / "log").exists()
