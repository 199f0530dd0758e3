"""Versions of binwright, each installed from its wheel into an environment of its own.

The environments share the packages of others with the tests, so nothing is downloaded.
"""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.programs import ROOT, run_program

STEP_S = 300.0
FIRST = "e8da60904271ddc5a4ccbb5bb8868d2baa39622c"
"""What counts as the last release as long as no release has a tag."""
BEFORE_COMMANDS = "521e2c5e8d10d61ac1e999acb545667ce1df0e61"
"""The last commit whose controllers sent commands in `GROUP.metadata` (`hello/1`)."""
VARIABLE = "FORMER"
NUMBER = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)


class NotInstalled(Exception):
    """A version cannot be had; says why."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version that can be run.

    Attributes:
        name: As its consumers report it.
        python: Of its environment.
    """

    name: str
    python: Path


def former_ref() -> str:
    """Return what to upgrade from: `FORMER` of the environment, or the last release's tag."""
    if given := os.environ.get(VARIABLE):
        return given
    newest = ("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD")
    done = run_program("git", *newest, timeout_s=STEP_S)
    return done.stdout.strip() if done.returncode == 0 else FIRST


def unpack(ref: str, directory: Path) -> Path:
    """Write the files of a commit into a new directory; return it.

    Raises:
        NotInstalled: The clone does not have that commit.
    """
    directory.mkdir(parents=True)
    packed = directory.with_suffix(".tar")
    done = run_program("git", "archive", ref, f"--output={packed}", timeout_s=STEP_S)
    if done.returncode:
        raise NotInstalled(f"{ref}: {done.stderr.strip()}: git fetch --unshallow --tags")
    _run("tar", "-xf", str(packed), "-C", str(directory))
    return directory


def unpack_present(directory: Path, change: Callable[[Path], None] = lambda _: None) -> Path:
    """Write the files of this checkout, as they are, into a new directory; then change them."""
    directory.mkdir(parents=True)
    names = _run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    change(directory)
    return directory


def install(tree: Path, label: str) -> Version:
    """Build the wheel of a tree and install it; its version gets a label."""
    described = tree / "pyproject.toml"
    text = described.read_text()
    name = f"{NUMBER.findall(text)[0]}+{label}"
    described.write_text(NUMBER.sub(f'version = "{name}"', text, count=1))
    built, home = tree / "built", tree / "environment"
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built), cwd=tree)
    (wheel,) = built.glob("*.whl")
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet")
    _run(*pip, "--no-deps", "--no-index", str(wheel))
    # As a path, not as a site: what is installed for development there stays out.
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "packages-of-the-tests.pth").write_text(sysconfig.get_path("purelib"))
    code = (
        "import binwright.consumer as c, importlib.metadata as m;"
        "print(m.version('binwright'), *c.__path__)"
    )
    version, where = _run(str(python), "-c", code, cwd=tree.parent).split()
    if version != name or not where.startswith(str(home)):
        raise NotInstalled(f"{python} runs binwright {version} of {where} instead of {name}")
    return Version(name, python)


def _run(*command: str, cwd: Path = ROOT) -> str:
    clean = {name: each for name, each in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, env=clean, capture_output=True, text=True, check=False, timeout=STEP_S
    )
    if done.returncode:
        raise NotInstalled(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout
