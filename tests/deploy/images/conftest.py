"""The images of the services, built once, and removed at the end."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.programs import ROOT, ProgramMissing

from .engine import build, docker, find_base_image, require_engine

SERVICES = ("monitor", "controller", "consumer")
REVISION = "0123abc"
MEGABYTE = 1_000_000
_SIZES: dict[str, int] = {}  # image -> bytes beyond the base; printed at the end


@dataclass(frozen=True)
class Image:
    """One service's image."""

    service: str
    name: str
    added: int  # bytes beyond the base

    def run(self, *arguments: str, entrypoint: str | None = None) -> tuple[int, str]:
        """Run it as `deploy/` does, without a network; return its exit code and its output."""
        options = () if entrypoint is None else ("--entrypoint", entrypoint)
        done = docker(
            *("run", "--rm", "--read-only", "--network", "none", "--cap-drop", "ALL"),
            *("--security-opt", "no-new-privileges", *options, self.name, *arguments),
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="session")
def base_image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Dockerfiles' base image; skip, with the reason, without an engine or a base."""
    try:
        require_engine()
        return find_base_image(tmp_path_factory.mktemp("images"))
    except ProgramMissing as exc:
        pytest.skip(str(exc))


def size(image: str) -> int:
    done = docker("image", "inspect", "--format", "{{.Size}}", image)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture(scope="session", params=SERVICES)
def image(request: pytest.FixtureRequest, base_image: str) -> Iterator[Image]:
    """Each service's image, built from its Dockerfile."""
    service: str = request.param
    name = f"binwright-{service}:test"
    dockerfile = ROOT / "services" / service / "Dockerfile"
    arguments = (f"BASE={base_image}", "--build-arg", f"REVISION={REVISION}", str(ROOT))
    build(name, "--file", str(dockerfile), "--build-arg", *arguments)
    built = Image(service, name, size(name) - size(base_image))
    _SIZES[f"binwright-{service}"] = built.added
    yield built
    docker("image", "rm", "--force", name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the images' sizes."""
    if _SIZES:
        terminalreporter.section("sizes beyond the base image")
        for name, found in sorted(_SIZES.items()):
            terminalreporter.line(f"{name:24} {found / MEGABYTE:6.0f} MB")
