"""`make bench`: every bench, one after the other; each refreshes its part of docs/figures.md.

Prints what all of them measured as JSON. A bench that fails is named, and the others go on.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.figures import PAGE

BENCHES = (
    "demo",
    "packing",
    "zones",
    "prediction",
    "brokers",
    "simulation",
    "sweep",
    "timings",
    "monitor",
    "moves",
    "controller",
    "groups",
    "scaling",
    "scaled-groups",
    "takeover",
    "deaths",
    "handover",
    "split",
    "catch-up",
    "landing",
    "kubernetes",
)
"""Each a module of this package that prints JSON and takes `--figures PAGE`."""
LONGEST_S = 7_200.0


def measured(name: str, page: Path) -> Any:
    """Run a bench in a process of its own; return what it printed, None if it failed."""
    sys.stderr.write(f"bench: {name}\n")
    module = f"bench.{name.replace('-', '_')}"
    command = (sys.executable, "-m", module, "--figures", str(page))
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=LONGEST_S, check=True)
    except subprocess.SubprocessError as exc:
        sys.stderr.write(f"bench: {name} failed: {exc}\n")
        return None
    return json.loads(done.stdout)


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BENCHES, default=BENCHES)
    parser.add_argument("--figures", type=Path, default=PAGE, help="the page to be refreshed")
    wanted = parser.parse_args()
    found = {name: measured(name, wanted.figures) for name in wanted.only}
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 1 if None in found.values() else 0


if __name__ == "__main__":
    sys.exit(main())
