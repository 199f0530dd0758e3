"""The page of figures, `docs/figures.md`: each bench refreshes its own sections.

python -m bench.landing --only live --figures docs/figures.md
python -m bench.figures landing live.json      # from JSON that a bench printed before
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bench.figures.benches import BENCHES
from bench.figures.document import replaced
from bench.figures.provenance import ROOT, Provenance, here_and_now

PAGE = ROOT / "docs" / "figures.md"
_NEW = "# Figures\n"


def publish(page: Path, bench: str, facts: Any, origin: Provenance | None = None) -> None:
    """Write what a bench measured into its sections of the page; all else on the page stays.

    Args:
        page: Made if it is not there.
        bench: One of `BENCHES`.
        facts: What the bench prints, as JSON has it.
        origin: Which run they are from; None: one that ends now, here.

    Raises:
        PageError: The markers in the page do not come in pairs.
    """
    shown = BENCHES[bench]
    above = (origin or here_and_now()).line(shown.command)
    bodies = {name: f"{above}\n\n{body}" for name, body in shown.sections(facts).items()}
    before = page.read_text() if page.exists() else _NEW
    page.write_text(replaced(before, bodies, shown.titles))


def progress(bench: str, facts: Any, page: Path | None) -> None:
    """Print what a bench measured as JSON, and refresh its sections of a page if one is given."""
    sys.stdout.write(json.dumps(facts, indent=2) + "\n")
    if page is not None:
        publish(page, bench, facts)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Give a bench the option `--figures PAGE`."""
    parser.add_argument(
        "--figures", type=Path, help="a page whose sections of this bench are to be refreshed"
    )
