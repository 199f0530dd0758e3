"""The shipped images on a real node: built, handed to containerd, run by a kubelet."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.images.engine import base, build, docker, engine
from tests.kubernetes.binaries import programs
from tests.kubernetes.plane import Plane, run_plane
from tests.programs import ROOT, Missing, call

from .node import ADDRESS, PAUSE, Node, needed, network, run_node

SERVICES = ("monitor", "controller", "consumer")
VERSION = "0.1.0"  # as the manifests name it


@pytest.fixture(scope="session")
def kubelet() -> Path:
    """The control plane's programs and a kubelet; skipped, with the reason, without them."""
    try:
        needed()
        home = programs()
    except Missing as exc:
        pytest.skip(str(exc))
    if not (home / "kubelet").exists():
        (home / "kubelet").symlink_to("kubebox")
    if call(str(home / "kubelet"), "--version", timeout_s=60).returncode:
        pytest.skip("these programs were built without a kubelet")
    return home


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The services' images, and what holds a pod together, in the engine."""
    try:
        engine()
        below = base(tmp_path_factory.mktemp("images"))
    except Missing as exc:
        pytest.skip(str(exc))
    names = [f"binwright-{service}:{VERSION}" for service in SERVICES]
    for service, name in zip(SERVICES, names, strict=True):
        dockerfile = ROOT / "services" / service / "Dockerfile"
        build(name, "--file", str(dockerfile), "--build-arg", f"BASE={below}", str(ROOT))
    build(PAUSE, "-", given=f'FROM {below}\nENTRYPOINT ["sleep", "infinity"]\n')
    yield [PAUSE, *names]
    docker("image", "rm", "--force", PAUSE)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plane(kubelet: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """A control plane whose API server the node's pods reach."""
    async with network(), run_plane(kubelet, tmp_path_factory.mktemp("plane"), ADDRESS) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def node(
    plane: Plane, images: list[str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Node]:
    """One real node."""
    async with run_node(plane, tmp_path_factory.mktemp("node"), images) as running:
        yield running
