"""Prometheus' own tool, which judges metrics, rules and queries: built once, from source."""

from pathlib import Path

from tests.programs import (
    ProgramResult,
    build_with_go,
    program_home,
    run_program,
    unpack_program,
)

VERSION = "v0.316.0"  # of the Go module
PACKAGE = f"github.com/prometheus/prometheus/cmd/promtool@{VERSION}"
CHECK_S = 120.0


def promtool() -> Path:
    """Return the program.

    Raises:
        ProgramMissing: It is neither shared nor can it be built.
    """
    with program_home("prometheus", VERSION) as home:
        target = home / "promtool"
        if not target.exists() and not unpack_program("promtool", target):
            _build(home / "build", target)
    return target


def check(*arguments: str, stdin: str = "") -> ProgramResult:
    """Run the tool; the caller judges the outcome."""
    return run_program(str(promtool()), *arguments, timeout_s=CHECK_S, stdin=stdin)


def _build(bin_dir: Path, target: Path) -> None:
    build_with_go(
        "promtool",
        # Without the discovery of targets in clouds, which takes most of the build.
        *("install", "-trimpath", "-ldflags", "-s -w", "-tags", "remove_all_sd", PACKAGE),
        environment={"GOBIN": str(bin_dir)},
    )
    (bin_dir / "promtool").rename(target)
