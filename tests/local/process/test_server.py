"""A server is started, stopped, killed and started again."""

import sys
from pathlib import Path

import psutil
import pytest

from binwright.local.process.child import Child, Command, clean_environment
from binwright.local.process.server import Server
from binwright.protocol.errors import EmbeddedError

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
