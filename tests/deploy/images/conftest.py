"""The images of the services, built once, and removed at the end."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from docker.client import DockerClient
from testcontainers.core.image import DockerImage
from tests.deploy.compose.engine import SPARK, provide_spark
from tests.programs import ROOT, ProgramMissing

from .engine import engine, find_base_image

SERVICES = ("monitor", "controller", "consumer")
REVISION = "0123abc"
NONE: Mapping[str, str] = {}
MEGABYTE = 1_000_000
_SIZES: dict[str, int] = {}  # image -> bytes beyond the base; printed at the end


@dataclass(frozen=True)
class Image:
    """One service's image."""

    client: DockerClient
    service: str
    name: str
    added: int  # bytes beyond the base

    def run(
        self, *arguments: str, entrypoint: str | None = None, environment: Mapping[str, str] = NONE
    ) -> tuple[int, str]:
        """Run it as `deploy/` does, without a network; return its exit code and its output."""
        container = self.client.containers.run(
            self.name,
            list(arguments),
            entrypoint=entrypoint,
            environment=dict(environment),
            read_only=True,
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            detach=True,
        )
        try:
            code: int = container.wait()["StatusCode"]
            return code, container.logs().decode()
        finally:
            container.remove(force=True)


@pytest.fixture(scope="session")
def client() -> DockerClient:
    """A client of the container engine; skip, with the reason, without one."""
    try:
        return engine()
    except ProgramMissing as exc:
        pytest.skip(str(exc))


@pytest.fixture(scope="session")
def base_image(client: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Dockerfiles' base image; skip, with the reason, without one."""
    try:
        return find_base_image(client, tmp_path_factory.mktemp("images"))
    except ProgramMissing as exc:
        pytest.skip(str(exc))


@pytest.fixture(scope="session", params=SERVICES)
def image(request: pytest.FixtureRequest, client: DockerClient, base_image: str) -> Iterator[Image]:
    """Each service's image, built from its Dockerfile."""
    service: str = request.param
    with _built(client, service, "deploy/Dockerfile", base_image) as made:
        yield made


@pytest.fixture(scope="session")
def spark_image(client: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """Spark's image, built from its Dockerfile; skip, with the reason, without its base."""
    try:
        provide_spark(client, tmp_path_factory.mktemp("spark"))
    except ProgramMissing as exc:
        pytest.skip(str(exc))
    with _built(client, "spark", "deploy/spark/Dockerfile", SPARK) as made:
        yield made


@contextmanager
def _built(client: DockerClient, name: str, dockerfile: str, base: str) -> Iterator[Image]:
    built = DockerImage(
        ROOT,
        tag=f"binwright-{name}:test",
        dockerfile_path=dockerfile,
        buildargs={"BASE": base, "PROGRAM": name, "REVISION": REVISION},
    )
    with built:
        sizes = [client.images.get(each).attrs["Size"] for each in (built.tag, base)]
        added = sizes[0] - sizes[1]
        _SIZES[f"binwright-{name}"] = added
        yield Image(client, name, str(built.tag), added)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the images' sizes."""
    if _SIZES:
        terminalreporter.section("sizes beyond the base image")
        for name, found in sorted(_SIZES.items()):
            terminalreporter.line(f"{name:24} {found / MEGABYTE:6.0f} MB")
