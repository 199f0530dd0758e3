"""The main job as a person starts it: the command, real servers, real processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.waiting import until

pytestmark = pytest.mark.integration

BINWRIGHT = (sys.executable, "-m", "binwright.cli")
LOAD_S = 45


def environment(tmp: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp), "PYTHONWARNINGS": "ignore"}


def of_ours(mark: Path) -> list[psutil.Process]:
    """Return the processes that work for this demo: its directory is in their command or files."""
    found = []
    for process in psutil.process_iter():
        try:
            seen = [*process.cmdline(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if process.pid != os.getpid() and any(str(mark) in word for word in seen):
            found.append(process)
    return found


@pytest.mark.nightly
def test_load_lands_exactly_once_although_consumer_and_controller_are_killed(
    tmp_path: Path,
) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    command = (
        *BINWRIGHT,
        "demo",
        "--minutes",
        str(LOAD_S / 60),
        "--speed",
        "5",
        "--chaos",
        "--json",
    )
    done = subprocess.run(
        command, env=environment(tmp), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    facts = json.loads(done.stdout)
    assert facts["clean"] is True
    assert facts["landed_rows"] == facts["produced_records"] > 10_000
    assert facts["consumers"]["max"] > 1
    assert facts["faults"] == ["kill -9 of a consumer", "kill -9 of the controller"]
    assert facts["rescued_partitions"] > 0
    assert not list(tmp.iterdir())
    assert not of_ours(tmp)


@pytest.mark.parametrize("words", ["starting the Spark", "waiting for the first", "the load lasts"])
async def test_ctrl_c_leaves_nothing(tmp_path: Path, words: str) -> None:
    """At the start of the servers, of the services, and under load."""
    tmp, log = tmp_path / "tmp", tmp_path / "demo.log"
    tmp.mkdir()
    with log.open("w") as output:
        demo = subprocess.Popen(  # noqa: ASYNC220 - a moment
            (*BINWRIGHT, "demo", "--minutes", "5"),
            env=environment(tmp),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        await until(lambda: words in log.read_text() or demo.poll() is not None, 300)
        demo.send_signal(signal.SIGINT)
        await until(lambda: demo.poll() is not None, 90)
    finally:
        demo.kill()
        demo.wait()
        sys.stdout.write(log.read_text())  # shown where the test fails
    assert words in log.read_text()
    assert not list(tmp.iterdir())
    assert not of_ours(tmp)
