"""`make bench NAME=timings`: `binwright lab timings` as a person starts it, as JSON."""

import argparse
import json
import subprocess
import sys
from typing import Any

from bench import figures

COMMAND = (sys.executable, "-m", "binwright.cli", "lab", "timings", "--json")
LONGEST_S = 3_600.0


def measured(*options: str) -> dict[str, Any]:
    """Return what the command prints; end with its exit code if it fails."""
    done = subprocess.run(
        (*COMMAND, *options), stdout=subprocess.PIPE, timeout=LONGEST_S, check=False
    )
    if done.returncode:
        raise SystemExit(done.returncode)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=timings", description=__doc__)
    parser.add_argument("--events", default="100", help="triggers, starts and changes")
    parser.add_argument("--deadline-s", default="1500", help="for these events")
    parser.add_argument("--steps", default="100", help="of the monitor's test")
    parser.add_argument("--scale", default="1", help="of the backlogs")
    figures.add_option(parser)
    given = parser.parse_args()
    options = (
        *("--events", given.events, "--deadline-s", given.deadline_s),
        *("--steps", given.steps, "--scale", given.scale),
    )
    figures.progress("timings", measured(*options), given.figures)


if __name__ == "__main__":
    main()
