"""On each Python that is here: services install from their locks, and decisions are the same."""

import os
import sys
from pathlib import Path

import pytest
from tests.programs import ROOT, ProgramResult, run_program

pytestmark = pytest.mark.integration

INSTALL_S, RUN_S = 900.0, 600.0
MINORS = (11, 12, 13, 14)
LOCKS = ("build", "quick", "monitor", "controller", "consumer")
SERVICES = ("monitor", "controller", "consumer")
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"


def python_of(minor: int) -> str:
    """Return a Python 3 of this release: of the PATH, or of pyenv; skip where there is none."""
    others = sorted(map(str, PYENV.glob(f"3.{minor}.*/bin/python")))
    for python in (f"python3.{minor}", *others):
        try:
            done = run_program(python, "-c", "import ensurepip", timeout_s=RUN_S)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            return python
    pytest.skip(f"there is no Python 3.{minor} here that makes environments")


@pytest.mark.parametrize("minor", MINORS)
def test_services_install_and_decisions_hold(minor: int, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    succeeds(python_of(minor), "-m", "venv", str(home))
    python = str(home / "bin" / "python")
    pip = (python, "-m", "pip", "install", "--quiet", "--no-build-isolation")
    for lock in LOCKS:
        succeeds(*pip, "--require-hashes", "-r", f"requirements/{lock}.txt")
    succeeds(*pip, "--no-deps", "-e", str(ROOT))
    for service in SERVICES:
        succeeds(python, "-m", f"binwright.{service}", "--help")
    pure = [f"tests/{name}" for name in ("protocol", "packing", "group", "tables")]
    pure += sorted(str(each) for each in (ROOT / "tests").glob("*/decide"))
    done = succeeds(python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *pure)
    sys.stdout.write(f"Python 3.{minor}: {done.stdout.splitlines()[-1]}\n")


def succeeds(*command: str) -> ProgramResult:
    """Run a command with nothing of this environment's Python; it must succeed."""
    apart = {"PYTHONPATH": "", "PYTHONHOME": ""}
    done = run_program(*command, timeout_s=INSTALL_S, environment=apart)
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-3_000:]
    return done
