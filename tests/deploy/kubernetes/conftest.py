"""A real control plane and two nodes whose pods are processes, shared by all tests here.

Tests and servers run in one event loop, the session's. Each test has a namespace of its own, with
the rights that `deploy/` ships.
"""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.deploy.kubernetes.sandbox import IMAGES, Sandbox, make_sandbox
from tests.programs import ProgramMissing

from .binaries import programs
from .kubelet import Kubelet, run_kubelet
from .plane import ControlPlane, run_control_plane


@pytest.fixture(scope="session")
def binaries() -> Path:
    """A directory with the control plane's programs; skip, with the reason, without them."""
    if sys.platform != "linux":
        pytest.skip("the process kubelet needs Linux")
    try:
        return programs()
    except ProgramMissing as exc:
        pytest.skip(str(exc))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plane(
    binaries: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ControlPlane]:
    """A control plane."""
    async with run_control_plane(binaries, tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def nodes(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Kubelet, Kubelet]]:
    """Two nodes."""
    home = tmp_path_factory.mktemp("nodes")
    variables = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home)}
    if code := os.environ.get("PYTHONPATH"):  # pods run the code under test, not what is installed
        variables["PYTHONPATH"] = code
    async with (
        run_kubelet(plane, "node-1", home, IMAGES, variables) as one,
        run_kubelet(plane, "node-2", home, IMAGES, variables) as two,
    ):
        yield one, two


@pytest_asyncio.fixture(loop_scope="session")
async def sandbox(
    plane: ControlPlane, nodes: tuple[Kubelet, Kubelet], request: pytest.FixtureRequest
) -> AsyncIterator[Sandbox]:
    """A namespace of this test's own."""
    async with make_sandbox(plane, nodes, request.node.name) as sandbox:
        yield sandbox


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BINWRIGHT_SETTINGS", raising=False)
