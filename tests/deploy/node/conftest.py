"""The shipped images on a real node: built, imported into containerd, run by a kubelet."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.deploy.images.engine import build, engine, find_base_image
from tests.deploy.kubernetes.binaries import programs
from tests.deploy.kubernetes.plane import ControlPlane, run_control_plane
from tests.programs import ROOT, ProgramMissing, run_program

from .node import ADDRESS, PAUSE, Node, check_prerequisites, network, run_node

SERVICES = ("monitor", "controller", "consumer")
VERSION = "0.1.0"  # as in the manifests


@pytest.fixture(scope="session")
def kubelet() -> Path:
    """The control plane's programs and a kubelet; skip, with the reason, without them."""
    try:
        check_prerequisites()
        home = programs()
    except ProgramMissing as exc:
        pytest.skip(str(exc))
    if not (home / "kubelet").exists():
        (home / "kubelet").symlink_to("kubebox")
    if run_program(str(home / "kubelet"), "--version", timeout_s=60).returncode:
        pytest.skip("these programs were built without a kubelet")
    return home


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The services' images and the pods' pause image, in the engine."""
    try:
        client = engine()
        base = find_base_image(client, tmp_path_factory.mktemp("images"))
    except ProgramMissing as exc:
        pytest.skip(str(exc))
    names = [f"binwright-{service}:{VERSION}" for service in SERVICES]
    for service, name in zip(SERVICES, names, strict=True):
        build(client, name, ROOT, "deploy/Dockerfile", {"BASE": base, "PROGRAM": service})
    pause = tmp_path_factory.mktemp("pause")
    (pause / "Dockerfile").write_text(f'FROM {base}\nENTRYPOINT ["sleep", "infinity"]\n')
    build(client, PAUSE, pause)
    yield [PAUSE, *names]
    client.images.remove(PAUSE, force=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plane(
    kubelet: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ControlPlane]:
    """A control plane whose API server the node's pods reach."""
    async with (
        network(),
        run_control_plane(kubelet, tmp_path_factory.mktemp("plane"), ADDRESS) as running,
    ):
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def node(
    plane: ControlPlane, images: list[str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Node]:
    """One real node."""
    async with run_node(plane, tmp_path_factory.mktemp("node"), images) as running:
        yield running
