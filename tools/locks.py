"""Locks what is installed, with hashes, into `requirements`: `python -m tools.locks [--upgrade]`.

One file for each kind of installation, complete in itself: `pip install --require-hashes -r` takes
nothing else. All of them have the same version of a package. Versions that fit are kept; with
`--upgrade` the newest ones that fit are taken. Hashes are those of all files of a release, so that
a file holds on every platform.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements"
DEVELOPMENT = "dev"  # has all that others have, but the thin client
LOCK_S = 1_200.0
HEADER = "# Written by python -m tools.locks from pyproject.toml: do not edit.\n"

EXTRAS: Mapping[str, Sequence[str]] = {
    DEVELOPMENT: ("dev",),
    "quick": ("quick",),
    "demo": ("demo",),
    "java": ("java",),
    "kerberos": ("kerberos",),
    "monitor": ("monitor",),
    "controller": ("controller", "keda", "traces"),
    "consumer": ("consumer", "traces"),
    "tools": ("controller", "consumer", "lab"),
}
"""A file of `requirements` -> the extras that it installs."""
THIN = ("consumer", "tools")
"""Files of images, which have no JVM: the client of Spark Connect in place of Spark."""
ALONE = ("java", "kerberos")
"""Files without what binwright itself needs: they are installed beside another."""
BUILD = ("cython", "editables", "setuptools", "wheel")
"""What installs the checkout and packages without a wheel, beside the build system's own."""


def project(root: Path = ROOT) -> dict[str, Any]:
    """Return the contents of a checkout's pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text())


def requirements_of(file: str) -> list[str]:
    """Return the requirements of pyproject.toml that a file of `requirements` locks."""
    described = project()
    if file == "build":
        return [*described["build-system"]["requires"], *BUILD]
    own = [] if file in ALONE else described["project"]["dependencies"]
    extras = described["project"]["optional-dependencies"]
    found = dict.fromkeys([*own, *_flatten(EXTRAS[file], extras)])
    if file in THIN:
        return [re.sub("^pyspark==", "pyspark-client==", each) for each in found]
    return list(found)


def _flatten(names: Iterable[str], extras: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name in names:
        for requirement in extras[name]:
            if nested := re.fullmatch(r"binwright\[([\w,]+)\]", requirement):
                yield from _flatten(nested[1].split(","), extras)
            else:
                yield requirement


@dataclass(frozen=True, slots=True)
class Locked:
    """A package of a lock."""

    name: str  # normalised
    version: str
    marker: str  # where it is installed; empty: everywhere
    sha256: tuple[str, ...]  # of each file of the release


_ENTRY = re.compile(
    r"(?P<name>[a-z0-9-]+)(?:\[[a-z0-9,-]+\])?==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))?"
    r"(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)


def parse_lock(text: str) -> list[Locked]:
    """Return a lock's packages, in its order.

    Raises:
        ValueError: There is something that is no package with a version and a hash.
    """
    entries = text.removeprefix(HEADER)
    found: list[Locked] = []
    end = 0
    while end < len(entries):
        if not (match := _ENTRY.match(entries, end)):
            raise ValueError(f"no package with a version and a hash: {entries[end:].split()[0]}")
        end = match.end()
        sums = re.findall("[0-9a-f]{64}", match["hashes"])
        found.append(Locked(match["name"], match["version"], match["marker"] or "", tuple(sums)))
    return found


def lock(file: str, *, upgrade: bool) -> None:
    """Write a file of `requirements`.

    Raises:
        subprocess.CalledProcessError: No versions fit; the reason is in its output.
    """
    target = REQUIREMENTS / f"{file}.txt"
    # All others have the versions of the largest.
    others = [] if file == DEVELOPMENT else ["-c", str(REQUIREMENTS / f"{DEVELOPMENT}.txt")]
    subprocess.run(
        (
            *(sys.executable, "-m", "uv", "pip", "compile", "-", "--quiet", "-o", str(target)),
            *("--universal", "--python-version", "3.11", "--generate-hashes"),
            *("--no-header", "--no-annotate", "--upgrade" if upgrade else "--no-upgrade", *others),
            "--no-strip-extras",  # pip takes a[b], with hashes, by an entry of that name alone
        ),
        input="\n".join(requirements_of(file)),
        cwd=ROOT,
        text=True,
        check=True,
        timeout=LOCK_S,
    )
    target.write_text(HEADER + target.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    upgrade: bool = parser.parse_args().upgrade
    for file in (*EXTRAS, "build"):
        lock(file, upgrade=upgrade)
    return 0


if __name__ == "__main__":
    sys.exit(main())
