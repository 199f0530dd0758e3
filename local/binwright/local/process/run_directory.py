"""The directory a server lives in."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from binwright.protocol.errors import EmbeddedError


@contextmanager
def run_directory(directory: Path) -> Iterator[Path]:
    """Make `directory` and give its absolute path; if the block is cancelled, undo what was made.

    After one of our own errors everything stays: its message points to a log in there. What was
    there before always stays.
    """
    directory = directory.absolute()
    above = [directory, *directory.parents]
    made = [path for path in above if not path.exists()]
    before = set() if made else set(directory.iterdir())
    directory.mkdir(parents=True, exist_ok=True)
    try:
        yield directory
    except EmbeddedError:
        raise
    except BaseException:
        for path in made[-1:] or set(directory.iterdir()) - before:
            _remove(path)
        raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
