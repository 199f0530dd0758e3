"""Prometheus, and its tool, which judges metrics, rules and queries: built once, from source."""

from pathlib import Path

from tests.programs import ProgramResult, program_of_go, run_program

VERSION = "v0.316.0"  # of the Go module
PACKAGES = "github.com/prometheus/prometheus/cmd"
CHECK_S = 120.0


def promtool() -> Path:
    """Return the tool.

    Raises:
        ProgramMissing: It is neither shared nor can it be built.
    """
    return _built("promtool")


def prometheus() -> Path:
    """Return the server, without its web pages.

    Raises:
        ProgramMissing: It is neither shared nor can it be built.
    """
    return _built("prometheus")


def _built(program: str) -> Path:
    # Without the discovery of targets in clouds, which takes most of the build.
    small = ("-tags", "remove_all_sd")
    return program_of_go(program, f"{PACKAGES}/{program}", VERSION, *small, home="prometheus")


def check(*arguments: str, stdin: str = "") -> ProgramResult:
    """Run the tool; the caller judges the outcome."""
    return run_program(str(promtool()), *arguments, timeout_s=CHECK_S, stdin=stdin)
