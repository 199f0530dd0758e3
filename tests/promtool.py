"""Prometheus' own tool, which judges metrics, rules and queries: built once, from source."""

from pathlib import Path

from tests.programs import ProgramResult, program_of_go, run_program

VERSION = "v0.316.0"  # of the Go module
PACKAGE = "github.com/prometheus/prometheus/cmd/promtool"
CHECK_S = 120.0


def promtool() -> Path:
    """Return the program.

    Raises:
        ProgramMissing: It is neither shared nor can it be built.
    """
    # Without the discovery of targets in clouds, which takes most of the build.
    small = ("-tags", "remove_all_sd")
    return program_of_go("promtool", PACKAGE, VERSION, *small, home="prometheus")


def check(*arguments: str, stdin: str = "") -> ProgramResult:
    """Run the tool; the caller judges the outcome."""
    return run_program(str(promtool()), *arguments, timeout_s=CHECK_S, stdin=stdin)
