"""Programs of others that some tests need: run to their end, taken from `shared`, or missing."""

import hashlib
import lzma
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "bin"

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
