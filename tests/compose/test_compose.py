"""The compose file as it is shipped: it starts, scales, lands, and leaves nothing."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.images.engine import docker
from tests.programs import Done, call

from binwright.controller.docker.shape import REALM_LABEL
from binwright.embedded.ports import reserved

from .engine import compose_command, lines, provide_images

pytestmark = pytest.mark.compose

PROJECT = "binwright-test"
BUILD_S, UP_S, PATIENCE_S, CALL_S = 1_800.0, 900.0, 600.0, 300.0
PARTITIONS = 8  # of two topics


@dataclass(frozen=True)
class Compose:
    """A project of this test's own."""

    command: tuple[str, ...]
    ports: dict[str, str]

    def tried(self, *arguments: str, timeout_s: float = CALL_S) -> Done:
        return call(
            *self.command,
            *("--project-name", PROJECT, "--profile", "demo", *arguments),
            timeout_s=timeout_s,
            environment={**self.ports, "COMPOSE_PROGRESS": "plain"},
        )

    def run(self, *arguments: str, timeout_s: float = CALL_S) -> str:
        done = self.tried(*arguments, timeout_s=timeout_s)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def audit(self) -> dict[str, Any]:
        """Return what the tools find in the tables."""
        command = ("audit", "--spark", "sc://spark:15002", "--json")
        done = self.tried("run", "--rm", "--no-TTY", "tools", *command)
        assert done.stdout, done.stderr[-3000:]
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def asked(self, path: str) -> str:
        where = f"http://127.0.0.1:{self.ports['PAGE_PORT']}{path}"
        with urllib.request.urlopen(where, timeout=20) as answer:
            text: bytes = answer.read()
        return text.decode()

    def status(self) -> dict[str, Any]:
        """Return what the page tells programs; nothing while it cannot be asked."""
        try:
            found: dict[str, Any] = json.loads(self.asked("/status"))
        except OSError:
            return {"partitions": 0, "unread": [], "consumers": [], "lag": -1, "term": None}
        return found


def siblings() -> set[str]:
    """Return the ids of the consumers that run."""
    return lines(docker("ps", "--quiet", "--filter", f"label={REALM_LABEL}={PROJECT}"))


def containers() -> set[str]:
    """Return the ids of the project's containers and of the consumers."""
    labels = (f"com.docker.compose.project={PROJECT}", f"{REALM_LABEL}={PROJECT}")
    asked = (docker("ps", "--all", "--quiet", "--filter", f"label={each}") for each in labels)
    return set().union(*map(lines, asked))


def volumes() -> set[str]:
    """Return the volumes that they use, named or not."""
    names = "{{range .Mounts}}{{.Name}} {{end}}"
    return lines(docker("inspect", "--format", names, *containers()))


def networks() -> set[str]:
    label = f"label=com.docker.compose.project={PROJECT}"
    return lines(docker("network", "ls", "--quiet", "--filter", label))


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not in {PATIENCE_S:g} s: {what}"
        time.sleep(1.0)


@pytest.fixture
def compose(tmp_path: Path) -> Iterator[Compose]:
    command = compose_command()
    provide_images(tmp_path)
    with ExitStack() as taken:
        names = ("KAFKA_PORT", "SPARK_PORT", "PAGE_PORT")
        ports = {name: str(taken.enter_context(reserved())) for name in names}
    made = Compose(command, ports)
    try:
        made.run("--profile", "tools", "build", timeout_s=BUILD_S)
        yield made
    finally:
        made.tried("down", "--volumes", "--remove-orphans", "--timeout", "5")
        if left := siblings():
            docker("rm", "--force", "--volumes", *left)


def read_by(found: dict[str, Any]) -> int:
    """Return how many consumers read all partitions; 0 while some are read by nobody."""
    whole = found["partitions"] == PARTITIONS and not found["unread"]
    return sum(bool(each["partitions"]) for each in found["consumers"]) if whole else 0


def test_it_starts_scales_lands_and_leaves_nothing(compose: Compose) -> None:
    compose.run("up", "--detach", "--no-build", timeout_s=UP_S)
    until(lambda: read_by(compose.status()) >= 2, "two consumers read all partitions")
    assert len(siblings()) >= 2
    assert "consumer" in compose.asked("/")

    killed = min(siblings())
    assert docker("rm", "--force", "--volumes", killed).returncode == 0
    until(lambda: len(siblings() - {killed}) >= 2, "the engine has as many as before")
    until(lambda: read_by(compose.status()) >= 2, "all partitions are read again")

    kept, term = siblings(), compose.status()["term"]
    compose.run("kill", "controller")
    compose.run("up", "--detach", "--no-build", timeout_s=UP_S)
    until(lambda: (compose.status()["term"] or 0) > term, "another controller rules")
    assert kept <= siblings()  # consumers outlive a controller that dies

    compose.run("stop", "load")
    until(lambda: compose.status()["lag"] == 0, "all is landed")
    found = compose.audit()
    assert found["clean"], found
    assert found["rows"] > 0

    used = volumes()
    compose.run("down", "--volumes")
    assert containers() == networks() == set()
    assert not used & lines(docker("volume", "ls", "--quiet"))
