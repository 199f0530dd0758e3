"""What `make nightly` ends with: chaos by random seeds for an hour, then benches that compare.

Each night is a line of a series, which a page of HTML shows. The exit code is 1 if a run of chaos
was not clean or a bench failed; tables and logs of such a run are kept beside the series.
"""

import argparse
import json
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.figures.provenance import here_and_now
from bench.nightly.page import page
from bench.nightly.series import (
    RATIOS,
    ChaosRun,
    Night,
    append,
    chaos_run,
    ratios_of,
    read,
)

HOME = Path("nightly")
OPTIONS = {"landing": ("--only", "live"), "handover": ()}
SEEDS = 1_000_000
FAULTS = 10
SHORTEST_S = 120.0  # of a run of chaos: servers start and are audited beside its faults
LATER_S = 1_800.0  # that a run of chaos may take beyond the time for its faults
BENCH_S = 7_200.0


def printed(command: Sequence[str], timeout_s: float) -> Any:
    """Return the JSON that a module of this checkout prints; None if it prints none in time."""
    sys.stderr.write(f"nightly: {' '.join(command)}\n")
    try:
        done = subprocess.run(
            (sys.executable, "-m", *command), stdout=subprocess.PIPE, timeout=timeout_s, check=False
        )
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as exc:
        sys.stderr.write(f"nightly: {command[0]} failed: {exc}\n")
        return None


def chaos(minutes: float, home: Path) -> Iterator[ChaosRun]:
    """Run chaos once, and again by other seeds until too little of the minutes is left."""
    left_s = 60 * minutes
    ends = time.monotonic() + left_s
    while True:
        seed = secrets.randbelow(SEEDS)
        kept = home / f"chaos-{seed}"
        options = ("--seed", str(seed), "--faults", str(FAULTS), "--minutes", f"{left_s / 60:.2f}")
        command = ("tests.chaos", *options, "--keep", str(kept), "--json")
        run = chaos_run(seed, printed(command, left_s + LATER_S))
        if run.outcome == "clean":
            shutil.rmtree(kept)
        yield run
        if (left_s := ends - time.monotonic()) < SHORTEST_S:
            return


def main() -> int:
    """Run a night, add it to the series, and draw the page."""
    parser = argparse.ArgumentParser(prog="make nightly", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of chaos")
    parser.add_argument("--bench", nargs="*", choices=RATIOS, default=tuple(RATIOS))
    parser.add_argument("--home", type=Path, default=HOME, help="of series, page and what is kept")
    asked = parser.parse_args()
    home: Path = asked.home.absolute()
    home.mkdir(parents=True, exist_ok=True)
    origin = here_and_now()
    runs = tuple(chaos(asked.minutes, home))
    ratios: dict[str, float | None] = {}
    for bench in asked.bench:
        facts = printed((f"bench.{bench}", *OPTIONS[bench]), BENCH_S)
        ratios |= ratios_of(bench, facts)
    night = Night(origin.date, origin.version, origin.machine, runs, ratios)
    series = home / "series.jsonl"
    append(series, night)
    (home / "index.html").write_text(page(read(series)))
    sys.stdout.write(f"{series}\n{home / 'index.html'}\n")
    return 0 if night.clean else 1


if __name__ == "__main__":
    sys.exit(main())
