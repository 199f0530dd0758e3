"""The shipped compose file: the system starts, scales, lands all rows, and leaves nothing."""

import json
import os
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from docker.client import DockerClient
from docker.models.containers import Container
from testcontainers.compose import DockerCompose

from .conftest import PROJECT

# Without the images of an earlier run, to build them takes most of the time.
pytestmark = [pytest.mark.compose, pytest.mark.timeout(2_400)]

PATIENCE_S = 600.0
PARTITIONS = 8  # of two topics
LABEL = {"label": f"com.docker.compose.project={PROJECT}"}
CONSUMERS = """
import json, psutil
lines = {p.pid: p.info["cmdline"] or () for p in psutil.process_iter(["cmdline"])}
print(json.dumps([pid for pid, line in lines.items() if "binwright.consumer" in line]))
"""
KILL = "import os, sys; os.kill(int(sys.argv[1]), 9)"


def get(path: str) -> str:
    """Return what the page answers."""
    url = f"http://127.0.0.1:{os.environ['PAGE_PORT']}{path}"
    with urllib.request.urlopen(url, timeout=20) as response:
        text: bytes = response.read()
    return text.decode()


def status() -> dict[str, Any]:
    """Return the page's status; an empty one while the page cannot be reached."""
    try:
        shown: dict[str, Any] = json.loads(get("/status"))
    except OSError:
        return {"partitions": 0, "unread": [], "consumers": [], "lag": -1, "term": None}
    return shown


def count_readers() -> int:
    """Return how many consumers read all partitions; 0 while some are not read."""
    shown = status()
    complete = shown["partitions"] == PARTITIONS and not shown["unread"]
    return sum(bool(each["partitions"]) for each in shown["consumers"]) if complete else 0


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not in {PATIENCE_S:g} s: {what}"
        time.sleep(1.0)


def container(compose: DockerCompose, client: DockerClient, service: str) -> Container:
    return client.containers.get(compose.get_container(service).ID)


def consumers(compose: DockerCompose) -> set[int]:
    """Return the pids of the consumers in the controller's container."""
    output, _, _ = compose.exec_in_container(["python", "-c", CONSUMERS], "controller")
    return set(json.loads(output))


def audit(compose: DockerCompose) -> dict[str, Any]:
    """Return the audit's result; it fails if rows are lost or doubled."""
    command = ["binwright", "audit", "--spark", "sc://spark:15002", "--json"]
    output, _, _ = compose.exec_in_container(command, "controller")
    result: dict[str, Any] = json.loads(output)
    return result


def test_the_system_starts_scales_lands_all_rows_and_leaves_nothing(
    compose: DockerCompose, client: DockerClient
) -> None:
    compose.start()
    until(lambda: count_readers() >= 2, "two consumers read all partitions")
    assert len(consumers(compose)) >= 2
    assert "consumer" in get("/")

    _check_limits(container(compose, client, "controller"))

    killed = str(min(consumers(compose)))
    compose.exec_in_container(["python", "-c", KILL, killed], "controller")
    until(lambda: len(consumers(compose) - {int(killed)}) >= 2, "as many consumers run as before")
    until(lambda: count_readers() >= 2, "all partitions are read again")

    term = status()["term"]
    container(compose, client, "controller").kill()  # and the consumers along with it
    compose.start()
    until(lambda: (status()["term"] or 0) > term, "another controller leads")
    until(lambda: count_readers() >= 2, "its consumers read all partitions")

    container(compose, client, "load").stop()
    until(lambda: status()["lag"] == 0, "all records are landed")
    result = audit(compose)
    assert result["clean"], result
    assert result["rows"] > 0

    _check_graceful_end(container(compose, client, "controller"))

    used = {each["Name"] for c in _all(client) for each in c.attrs["Mounts"] if "Name" in each}
    compose.stop()
    assert not _all(client)
    assert not client.networks.list(filters=LABEL)
    assert not used & {volume.name for volume in client.volumes.list()}


def _check_limits(controller: Container) -> None:
    """The consumers share the controller's limits; nothing in it may command the engine."""
    host = controller.attrs["HostConfig"]
    assert host["Memory"] > 0
    assert host["NanoCpus"] > 0
    assert host["PidsLimit"] > 0
    assert controller.attrs["Config"]["User"] not in {"", "0", "0:0", "root"}
    assert not [m for m in controller.attrs["Mounts"] if "docker" in m["Destination"]]


def _check_graceful_end(controller: Container) -> None:
    """It ends its consumers first, which take their leave, and is not killed."""
    since = int(time.time())
    controller.stop()
    controller.reload()
    assert controller.attrs["State"]["ExitCode"] in {0, 143}
    assert b"goodbye.sent" in controller.logs(since=since)


def _all(client: DockerClient) -> list[Container]:
    containers: list[Container] = client.containers.list(all=True, filters=LABEL)
    return containers
