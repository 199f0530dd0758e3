"""The shipped compose file: the system starts, scales, lands all rows, and leaves nothing."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.images.engine import docker
from tests.programs import ProgramResult, run_program

from binwright.controller.fleets.docker.spec import PROJECT_LABEL
from binwright.local.server import reserve_port

from .engine import compose_command, output_words, provide_images

pytestmark = pytest.mark.compose

PROJECT = "binwright-test"
BUILD_S, UP_S, PATIENCE_S, CALL_S = 1_800.0, 900.0, 600.0, 300.0
PARTITIONS = 8  # of two topics


@dataclass(frozen=True)
class Compose:
    """A project of this test's own."""

    command: tuple[str, ...]
    ports: dict[str, str]

    def try_run(self, *arguments: str, timeout_s: float = CALL_S) -> ProgramResult:
        return run_program(
            *self.command,
            *("--project-name", PROJECT, "--profile", "demo", *arguments),
            timeout_s=timeout_s,
            environment={**self.ports, "COMPOSE_PROGRESS": "plain"},
        )

    def run(self, *arguments: str, timeout_s: float = CALL_S) -> str:
        done = self.try_run(*arguments, timeout_s=timeout_s)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def audit(self) -> dict[str, Any]:
        """Return the audit's result."""
        command = ("audit", "--spark", "sc://spark:15002", "--json")
        done = self.try_run("run", "--rm", "--no-TTY", "tools", *command)
        assert done.stdout, done.stderr[-3000:]
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def get(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.ports['PAGE_PORT']}{path}"
        with urllib.request.urlopen(url, timeout=20) as response:
            text: bytes = response.read()
        return text.decode()

    def status(self) -> dict[str, Any]:
        """Return the page's status; an empty one while the page cannot be reached."""
        try:
            found: dict[str, Any] = json.loads(self.get("/status"))
        except OSError:
            return {"partitions": 0, "unread": [], "consumers": [], "lag": -1, "term": None}
        return found


def consumers() -> set[str]:
    """Return the ids of the running consumers' containers."""
    return output_words(docker("ps", "--quiet", "--filter", f"label={PROJECT_LABEL}={PROJECT}"))


def containers() -> set[str]:
    """Return the ids of the project's containers and of the consumers."""
    labels = (f"com.docker.compose.project={PROJECT}", f"{PROJECT_LABEL}={PROJECT}")
    listed = (docker("ps", "--all", "--quiet", "--filter", f"label={each}") for each in labels)
    return set().union(*map(output_words, listed))


def volumes() -> set[str]:
    """Return the volumes that these containers use, named or not."""
    names = "{{range .Mounts}}{{.Name}} {{end}}"
    return output_words(docker("inspect", "--format", names, *containers()))


def networks() -> set[str]:
    label = f"label=com.docker.compose.project={PROJECT}"
    return output_words(docker("network", "ls", "--quiet", "--filter", label))


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
        ports = {name: str(taken.enter_context(reserve_port())) for name in names}
    project = Compose(command, ports)
    try:
        project.run("--profile", "tools", "build", timeout_s=BUILD_S)
        yield project
    finally:
        project.try_run("down", "--volumes", "--remove-orphans", "--timeout", "5")
        if left := consumers():
            docker("rm", "--force", "--volumes", *left)


def count_readers(found: dict[str, Any]) -> int:
    """Return how many consumers read all partitions; 0 while some are not read."""
    complete = found["partitions"] == PARTITIONS and not found["unread"]
    return sum(bool(each["partitions"]) for each in found["consumers"]) if complete else 0


def test_the_system_starts_scales_lands_all_rows_and_leaves_nothing(compose: Compose) -> None:
    compose.run("up", "--detach", "--no-build", timeout_s=UP_S)
    until(lambda: count_readers(compose.status()) >= 2, "two consumers read all partitions")
    assert len(consumers()) >= 2
    assert "consumer" in compose.get("/")

    killed = min(consumers())
    assert docker("rm", "--force", "--volumes", killed).returncode == 0
    until(lambda: len(consumers() - {killed}) >= 2, "as many consumers run as before")
    until(lambda: count_readers(compose.status()) >= 2, "all partitions are read again")

    kept, term = consumers(), compose.status()["term"]
    compose.run("kill", "controller")
    compose.run("up", "--detach", "--no-build", timeout_s=UP_S)
    until(lambda: (compose.status()["term"] or 0) > term, "another controller leads")
    assert kept <= consumers()  # consumers outlive a controller that crashes

    compose.run("stop", "load")
    until(lambda: compose.status()["lag"] == 0, "all records are landed")
    found = compose.audit()
    assert found["clean"], found
    assert found["rows"] > 0

    used = volumes()
    compose.run("down", "--volumes")
    assert containers() == networks() == set()
    assert not used & output_words(docker("volume", "ls", "--quiet"))
