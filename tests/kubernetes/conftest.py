"""A real control plane and two nodes whose pods are processes, once for all tests here.

Tests and servers share one loop, the session's. Each test gets a namespace of its own, with the
rights that `deploy/` ships.
"""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.programs import Missing

from .binaries import programs
from .kubelet import Kubelet, run_kubelet
from .plane import Plane, run_plane
from .site import IMAGES, Site, make_site


@pytest.fixture(scope="session")
def binaries() -> Path:
    """A directory with the control plane's programs; skipped, with the reason, without them."""
    if sys.platform != "linux":
        pytest.skip("the process kubelet needs Linux")
    try:
        return programs()
    except Missing as exc:
        pytest.skip(str(exc))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """A control plane."""
    async with run_plane(binaries, tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def nodes(
    plane: Plane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Kubelet, Kubelet]]:
    """Two nodes."""
    home = tmp_path_factory.mktemp("nodes")
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home)}
    if code := os.environ.get("PYTHONPATH"):  # pods run what the tests do, not what is installed
        own["PYTHONPATH"] = code
    async with (
        run_kubelet(plane, "node-1", home, IMAGES, own) as one,
        run_kubelet(plane, "node-2", home, IMAGES, own) as two,
    ):
        yield one, two


@pytest_asyncio.fixture(loop_scope="session")
async def site(
    plane: Plane, nodes: tuple[Kubelet, Kubelet], request: pytest.FixtureRequest
) -> AsyncIterator[Site]:
    """A namespace of this test's own."""
    async with make_site(plane, nodes, request.node.name) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BINWRIGHT_SETTINGS", raising=False)
