"""Deletes old files of a table's log on a local disk: each of them slows every commit down.

Delta lists the whole log directory for a commit: 55 us of CPU per file, measured. A commit every
five seconds leaves 34,000 files a day, and Delta's own clean-up rounds ages to whole days. On
object stores the listing begins at the last checkpoint, so nothing is trimmed there.
"""

import contextlib
import re
import time
from pathlib import Path
from urllib.parse import urlparse

LOG = "_delta_log"
MIN_AGE_S = 600.0
"""Younger files are kept: a query may be reading an older version."""

_FILE = re.compile(r"\.?(?P<version>\d{20})\.(?P<kind>.+)")


def local_path(lake: str) -> Path | None:
    """Return the directory of a lake's address; None if it is not on a local disk."""
    parts = urlparse(lake)
    return Path(parts.path) if parts.scheme in {"", "file"} else None


def trim_log(table: Path, keep: int, now: float | None = None) -> int:
    """Delete log files before the newest checkpoint that is at least `keep` commits old.

    As after Delta's clean-up, the log then begins with a checkpoint: every version from there on
    can be read, older ones cannot.

    Args:
        table: The table's directory.
        keep: The number of newest commits to keep at least; a history is read back so far.
        now: Seconds since the epoch; None for the wall clock.

    Returns:
        How many files were deleted.
    """
    files = [
        (int(name["version"]), name["kind"], file)
        for file in (table / LOG).iterdir()
        if (name := _FILE.fullmatch(file.name))
    ]
    newest = max((version for version, kind, _ in files if kind == "json"), default=-1)
    begin = max(
        (v for v, kind, _ in files if kind == "checkpoint.parquet" and v <= newest - keep),
        default=0,
    )
    before = (time.time() if now is None else now) - MIN_AGE_S
    deleted = 0
    for version, _, file in files:
        if version < begin:
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_mtime < before:
                    file.unlink()
                    deleted += 1
    return deleted
