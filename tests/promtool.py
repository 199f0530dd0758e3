"""Prometheus' own tool, which judges metrics, rules and queries: built once, from source."""

import fcntl
import shutil
from pathlib import Path

from tests.programs import ProgramMissing, ProgramResult, run_program, unpack_program

from binwright.local.cache import cache_dir

VERSION = "v0.316.0"  # of the Go module
PACKAGE = f"github.com/prometheus/prometheus/cmd/promtool@{VERSION}"
BUILD_S = 3_000.0
CHECK_S = 120.0


def promtool() -> Path:
    """Return the program.

    Raises:
        ProgramMissing: It is neither shared nor can it be built.
    """
    home = cache_dir() / "prometheus" / VERSION
    home.mkdir(parents=True, exist_ok=True)
    target = home / "promtool"
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists() and not unpack_program("promtool", target):
            _build(home / "build", target)
    return target


def check(*arguments: str, stdin: str = "") -> ProgramResult:
    """Run the tool; the caller judges the outcome."""
    return run_program(str(promtool()), *arguments, timeout_s=CHECK_S, stdin=stdin)


def _build(bin_dir: Path, target: Path) -> None:
    if not shutil.which("go"):
        raise ProgramMissing("no promtool, and no Go compiler to build it")
    done = run_program(
        # Without the discovery of targets in clouds, which takes most of the build.
        *("go", "install", "-trimpath", "-ldflags", "-s -w", "-tags", "remove_all_sd", PACKAGE),
        environment={"GOBIN": str(bin_dir), "CGO_ENABLED": "0"},
        timeout_s=BUILD_S,
    )
    if done.returncode:
        raise ProgramMissing(f"promtool cannot be built here: {done.stderr.strip()[-500:]}")
    (bin_dir / "promtool").rename(target)
