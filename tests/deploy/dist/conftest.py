"""The release, built once, and installed from its own files by every Python that is here."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.programs import ProgramResult
from tests.tools.checkout import make_checkout
from tools.dist import build

INSTALL_S, RUN_S = 1_200.0, 600.0
OLDEST = (3, 11)
DEBIAN = "/usr/bin/python3"


@dataclass(frozen=True)
class Installation:
    """What a person has who installed the wheel: an environment, and an empty directory."""

    python: Path
    release: Path
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def file(self, pattern: str) -> Path:
        """Return the release's file of this name."""
        (found,) = self.release.glob(pattern)
        return found

    def run(self, *command: str, timeout_s: float = RUN_S, **variables: str) -> ProgramResult:
        """Run a program of the environment; the caller judges the outcome."""
        return subprocess.run(
            (str(self.python.with_name(command[0])), *command[1:]),
            cwd=self.directory,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def pip(self, *arguments: str) -> None:
        """Install something into the environment."""
        done = self.run("python", "-m", "pip", "install", *arguments, timeout_s=INSTALL_S)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` builds."""
    output = tmp_path_factory.mktemp("release") / "dist"
    build(output, make_checkout(tmp_path_factory.mktemp("checkout")))
    return output


def interpreter(python: str) -> str:
    """Return the path of an interpreter; skip where it cannot make an environment."""
    code = (
        "import ensurepip, os, sys, venv;"
        "print(*sys.version_info[:2], os.path.realpath(sys.executable))"
    )
    try:
        done = subprocess.run((python, "-c", code), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"there is no {python}")
    if done.returncode:
        pytest.skip(f"{python} makes no environments: {done.stderr.strip().splitlines()[-1]}")
    major, minor, path = done.stdout.split(maxsplit=2)
    if (int(major), int(minor)) < OLDEST:
        pytest.skip(f"{python} is a Python {major}.{minor}")
    if python != sys.executable and path.strip() == os.path.realpath(sys.executable):
        pytest.skip(f"{python} is the Python of the tests")
    return path.strip()


@pytest.fixture(scope="session", params=[sys.executable, DEBIAN], ids=["python", "debian"])
def installation(
    request: pytest.FixtureRequest, release: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    """The wheel, in a new environment with the packages of its lock `demo`."""
    home = tmp_path_factory.mktemp("installation")
    subprocess.run((interpreter(request.param), "-m", "venv", str(home / "venv")), check=True)
    directory = home / "empty"
    directory.mkdir()
    # Nothing of the checkout: neither its code nor its environment.
    passed = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "BINWRIGHT_", "VIRTUAL_ENV", "COV_", "PYTEST_"))
        or name == "BINWRIGHT_CACHE"
    }
    made = Installation(home / "venv/bin/python", release, directory, passed)
    made.pip("--require-hashes", "-r", str(made.file("*-build.txt")))
    made.pip("--require-hashes", "--no-build-isolation", "-r", str(made.file("*-demo.txt")))
    made.pip("--no-deps", "--no-index", str(made.file("*.whl")))
    return made
