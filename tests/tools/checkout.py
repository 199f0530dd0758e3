"""Checkouts of what is tested, changes that are not committed included."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.programs import ROOT, run_program

DATE = "2026-01-02T03:04:05Z"
AUTHOR = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "test"),
        ("EMAIL", "test@example.com"),
        ("DATE", DATE),
    )
}
GIT_S = 60.0


def git(directory: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run git; return its output."""
    done = run_program("git", *arguments, cwd=directory, timeout_s=GIT_S, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_checkout(directory: Path) -> Path:
    """Make a repository with one commit: the files of this one as they are now; return it."""
    for name in git(ROOT, "ls-files", "-z").split("\0"):
        source, target = ROOT / name, directory / name
        if name and (source.exists() or source.is_symlink()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    git(directory, "init", "--quiet")
    git(directory, "add", "--force", "--all")
    git(directory, "commit", "--quiet", "--message", "all", environment=AUTHOR)
    return directory
