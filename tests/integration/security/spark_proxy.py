"""The proxy of `deploy/spark-tls`, with its shipped files, in front of a server on this machine."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.programs import ROOT, ProgramMissing, program_of_apt

from binwright.local.server import HOST, reserve_port

PROGRAM = "haproxy"
CERTIFICATE = "/etc/binwright-spark-tls"
INTERVAL_S = "0.2"
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class SparkProxy:
    """A running proxy."""

    port: int
    process: asyncio.subprocess.Process
    log: Path


def search_path() -> str:
    """Return a PATH with the program; skip, with the reason, where it cannot be had."""
    try:
        program = Path(program_of_apt([PROGRAM], PROGRAM))
    except ProgramMissing as exc:
        pytest.skip(str(exc))
    return f"{os.environ['PATH']}:{program.parent}"


@asynccontextmanager
async def spark_proxy(home: Path, certificate: Path, target: int) -> AsyncIterator[SparkProxy]:
    """Run it with the certificate of a directory, for a server at `target` of the loopback."""
    path = search_path()
    with reserve_port() as port:
        script = write_files(home, certificate, port, target)
    log = home / "proxy.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *("sh", str(script), INTERVAL_S),
            env={"PATH": path, "POD_IP": HOST},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        await _until_open(port, process, log)
        yield SparkProxy(port, process, log)
        assert process.returncode is None, log.read_text()
        process.terminate()
        async with asyncio.timeout(WAIT_S):
            assert await process.wait() == 0, log.read_text()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def write_files(home: Path, certificate: Path, port: int, target: int) -> Path:
    """Write the shipped files with other ports and paths; return the script's."""
    (shipped,) = yaml.safe_load_all((ROOT / "deploy/spark-tls/proxy.yaml").read_text())
    changes = {
        "haproxy.cfg": {
            '"${POD_IP}:15002"': f'"${{POD_IP}}:{port}"',
            f"{HOST}:15002": f"{HOST}:{target}",
            CERTIFICATE: str(certificate),
        },
        "run.sh": {CERTIFICATE: str(certificate)},
    }
    assert shipped["data"].keys() == changes.keys()
    for name, text in shipped["data"].items():
        changed = text
        for old, new in changes[name].items():
            assert changed.count(old) == 1, old
            changed = changed.replace(old, new)
        (home / name).write_text(changed)
    return home / "run.sh"


async def _until_open(port: int, process: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(WAIT_S):
        while True:
            assert process.returncode is None, await asyncio.to_thread(log.read_text)
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
