"""The shipped compose file as a project of the tests' own, on a real engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.client import DockerClient
from testcontainers.compose import DockerCompose
from tests.deploy.images.engine import engine
from tests.programs import ROOT, ProgramMissing

from binwright.local.server import reserve_port

from .engine import provide_compose, provide_images

PROJECT = "binwright-test"


@pytest.fixture
def client(tmp_path: Path) -> DockerClient:
    """The container engine, with all images that the compose file does not build."""
    try:
        client = engine()
        provide_images(client, tmp_path)
    except ProgramMissing as exc:
        pytest.skip(str(exc))
    return client


@pytest.fixture
def compose(
    client: DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DockerCompose]:
    """The compose file with a load, neither built nor started."""
    del client  # its images are there
    provide_compose(tmp_path / "config", monkeypatch)
    monkeypatch.delenv("BINWRIGHT_SETTINGS", raising=False)
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
    monkeypatch.setenv("COMPOSE_PROGRESS", "plain")
    for name in ("KAFKA_PORT", "SPARK_PORT", "PAGE_PORT"):
        with reserve_port() as port:
            monkeypatch.setenv(name, str(port))
    project = DockerCompose(ROOT, profiles=["demo"], build=True, wait=False)
    try:
        yield project
    finally:
        project.stop()
