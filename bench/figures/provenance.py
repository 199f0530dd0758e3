"""What ran where and when: the line above each table."""

import datetime as dt
import os
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Provenance:
    """The run that a table is from."""

    date: str  # ISO 8601
    machine: str  # in words, as "2 cores, 24 GiB"
    version: str  # of binwright: its commit where that is known

    def line(self, command: str) -> str:
        """Return it as a line of Markdown."""
        return f"*`{command}`, {self.date}: {self.machine}, {self.version}*"


def here_and_now() -> Provenance:
    """Return the provenance of a run that ends now, on this machine, from this checkout."""
    today = dt.datetime.now(dt.UTC).date()
    memory = round(psutil.virtual_memory().total / (1 << 30))
    return Provenance(today.isoformat(), f"{os.cpu_count()} cores, {memory} GiB", _version())


def _version() -> str:
    command = ("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return found.stdout.strip() or version("binwright")
