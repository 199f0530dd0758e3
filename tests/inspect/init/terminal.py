"""Runs `binwright init` as a process, with and without a terminal to ask in."""

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

DEADLINE_S = 120


def init(arguments: Sequence[str], home: Path, stdin: int) -> subprocess.CompletedProcess[str]:
    """Run the command in a directory."""
    return subprocess.run(
        [sys.executable, "-m", "binwright.cli", "init", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
        cwd=home,
        stdin=stdin,
    )


def answered(
    home: Path, answers: Sequence[str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run the command where a person gives these answers, each in a line."""
    person, terminal = pty.openpty()
    try:
        os.write(person, "".join(f"{answer}\n" for answer in answers).encode())
        return init(arguments, home, terminal)
    finally:
        os.close(person)
        os.close(terminal)
