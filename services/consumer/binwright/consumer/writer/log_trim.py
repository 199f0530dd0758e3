"""Old files of a table's log on a local disk: each makes every commit slower.

Delta lists the whole log directory for a commit: 55 us of CPU for each file in it, measured; at a
commit every five seconds a day leaves 34,000. Delta's own clean-up rounds its age to whole days. On
object stores the listing begins at the last checkpoint, so there is nothing to gain.
"""

import contextlib
import re
import time
from pathlib import Path
from urllib.parse import urlparse

LOG = "_delta_log"
AGE_S = 600.0
"""Younger files are left alone: somebody may be reading an older version at this moment."""

_FILE = re.compile(r"\.?(?P<version>\d{20})\.(?P<kind>.+)")


def local_path(lake: str) -> Path | None:
    """Return the directory that a lake's address names; None if it is not on a local disk."""
    parts = urlparse(lake)
    return Path(parts.path) if parts.scheme in {"", "file"} else None


def trim_log(table: Path, keep: int, now: float | None = None) -> int:
    """Delete what of the table's log lies before a checkpoint that is `keep` commits old.

    As Delta's clean-up does: what is left begins with a checkpoint, so every version from there on
    can be read; older ones cannot any more.

    Args:
        table: The table's directory.
        keep: How many of the newest commits stay at least; a history is read back so far.
        now: Seconds since the epoch; None: now.

    Returns:
        How many files were deleted.
    """
    found = [
        (int(name["version"]), name["kind"], file)
        for file in (table / LOG).iterdir()
        if (name := _FILE.fullmatch(file.name))
    ]
    newest = max((version for version, kind, _ in found if kind == "json"), default=-1)
    begin = max(
        (v for v, kind, _ in found if kind == "checkpoint.parquet" and v <= newest - keep),
        default=0,
    )
    before = (time.time() if now is None else now) - AGE_S
    gone = 0
    for version, _, file in found:
        if version < begin:
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_mtime < before:
                    file.unlink()
                    gone += 1
    return gone
