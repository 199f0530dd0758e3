"""Programs of others that some tests need: run to their end, taken from `shared`, or missing."""

import fcntl
import hashlib
import lzma
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from binwright.local.cache import cache_dir

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "bin"
BUILD_S, INSTALL_S = 3_000.0, 300.0
LIST_PACKAGES = """
import json
from importlib.metadata import distributions
print(json.dumps({each.metadata["Name"]: each.version for each in distributions()}))
"""
"""Code that prints the packages of the Python that runs it, name to version, as JSON."""

ProgramResult = subprocess.CompletedProcess[str]


class ProgramMissing(Exception):
    """What is needed cannot be had here; says why."""


def run_program(
    *command: str,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    stdin: str = "",
) -> ProgramResult:
    """Run a command to its end, `stdin` on its standard input; the caller judges the outcome."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


@contextmanager
def program_home(name: str, version: str) -> Iterator[Path]:
    """Give the directory of programs that are made once, locked against other processes."""
    home = cache_dir() / name / version
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield home


def program_of_go(
    program: str, package: str, version: str, *flags: str, home: str | None = None
) -> Path:
    """Return a program that Go's modules have: built once, from source.

    Args:
        program: Its name.
        package: Its package.
        version: Of the package's module.
        flags: For Go.
        home: The name of its directory, if it is not the program's.

    Raises:
        ProgramMissing: It is neither shared nor can it be built.
    """
    with program_home(home or program, version) as directory:
        target = directory / program
        if not target.exists() and not unpack_program(program, target):
            build_with_go(
                program,
                *("install", "-trimpath", "-ldflags", "-s -w", *flags, f"{package}@{version}"),
                environment={"GOBIN": str(directory / "build")},
            )
            (directory / "build" / program).rename(target)
    return target


def build_with_go(
    program: str, *command: str, environment: Mapping[str, str], cwd: Path = ROOT
) -> None:
    """Build a program by a command of Go's.

    Raises:
        ProgramMissing: There is no Go, or the program cannot be built in time.
    """
    if not shutil.which("go"):
        raise ProgramMissing(f"no {program} in {SHARED}, and no Go compiler to build it")
    try:
        done = run_program(
            *("go", *command),
            cwd=cwd,
            environment={"CGO_ENABLED": "0", **environment},
            timeout_s=BUILD_S,
        )
    except subprocess.TimeoutExpired as exc:
        raise ProgramMissing(f"{program} was not built within {BUILD_S:g} s") from exc
    if done.returncode:
        raise ProgramMissing(f"{program} cannot be built here: {done.stderr.strip()[-500:]}")


def program_of_apt(names: Sequence[str], *packages: str) -> str:
    """Return a program of the system, installed by apt where that can be done.

    Args:
        names: Those that it may have; the first is that of the package.
        packages: What to install where none of them is there.

    Raises:
        ProgramMissing: There is none, and none can be had; says why.
    """

    def found() -> str | None:
        path = f"{os.environ['PATH']}:/usr/sbin"
        return next(filter(None, (shutil.which(name, path=path) for name in names)), None)

    if there := found():
        return there
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ProgramMissing(f"no {names[0]} here, and only root with apt-get can install it")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    options = ("-qq", "-y", "--no-install-recommends")
    with program_home("apt", "packages"):  # one at a time
        for step in (("update", "-qq"), ("install", *options, *packages)):
            try:
                done = run_program("apt-get", *step, timeout_s=INSTALL_S, environment=quiet)
            except subprocess.TimeoutExpired as exc:
                raise ProgramMissing(f"apt-get {step[0]} took longer than {INSTALL_S:g} s") from exc
            if done.returncode:
                raise ProgramMissing(f"apt-get {step[0]}: {done.stderr.strip()[-300:]}")
    if there := found():
        return there
    raise ProgramMissing(f"apt-get installed {packages[0]}, and {names[0]} is not there")


def unpack_program(program: str, target: Path) -> bool:
    """Make `target` a shared program that may be run; tell whether there is one.

    Raises:
        Missing: There is one, but not the one that its checksum names.
    """
    packed = SHARED / f"{program}.xz"
    if not packed.exists():
        return False
    lines = (SHARED / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in map(str.split, lines)}
    found = hashlib.sha256(packed.read_bytes()).hexdigest()
    if sums.get(packed.name) != found:
        raise ProgramMissing(f"{packed}: sha256 {found} is not the one in SHA256SUMS")
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(f".{os.getpid()}")
    with lzma.open(packed) as source, fresh.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    fresh.chmod(0o755)
    fresh.rename(target)
    return True
