"""`python -m bench.figures BENCH FILE`: JSON that a bench printed before, into the page."""

import argparse
import json
from pathlib import Path

from bench.figures import PAGE, publish
from bench.figures.benches import BENCHES
from bench.figures.provenance import Provenance, here_and_now


def main() -> None:
    """Refresh the sections."""
    now = here_and_now()
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument("bench", choices=BENCHES)
    parser.add_argument("file", type=Path, help="the JSON")
    parser.add_argument("--figures", type=Path, default=PAGE, help="the page")
    parser.add_argument("--date", default=now.date, help="of the run")
    parser.add_argument("--machine", default=now.machine, help='of the run, as "2 cores, 24 GiB"')
    parser.add_argument("--version", default=now.version, help="of binwright in the run")
    given = parser.parse_args()
    origin = Provenance(given.date, given.machine, given.version)
    publish(given.figures, given.bench, json.loads(given.file.read_text()), origin)


if __name__ == "__main__":
    main()
