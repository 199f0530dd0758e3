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

BENCHES = {
    "demo": "bench.demo",
    "packing": "bench.packing",
    "brokers": "bench.brokers",
    "simulation": "bench.simulation",
    "sweep": "bench.sweep",
    "timings": "bench.timings",
    "monitor": "bench.monitor",
    "moves": "bench.moves",
    "controller": "bench.controller",
    "groups": "bench.groups",
    "scaling": "bench.scaling",
    "scaled-groups": "bench.scaled_groups",
    "takeover": "bench.takeover",
    "deaths": "bench.deaths",
    "handover": "bench.handover",
    "landing": "bench.landing",
    "kubernetes": "bench.kubernetes",
}
"""Each a module that prints JSON and takes `--figures PAGE`."""
LONGEST_S = 7_200.0


def measured(name: str, page: Path) -> Any:
    """Run a bench in a process of its own; return what it printed, None if it failed."""
    sys.stderr.write(f"bench: {name}\n")
    command = (sys.executable, "-m", BENCHES[name], "--figures", str(page))
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
