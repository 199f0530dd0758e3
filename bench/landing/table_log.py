"""Delta tables seen from outside: which commit landed how many rows, by the tables' logs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table that added rows."""

    version: int
    at: float  # seconds since the epoch
    files: int
    rows: int
    bytes: int  # of its files


class TableLog:
    """A table's log, read on as it grows. Compaction does not count: it adds no rows."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._next = 0
        self.commits: list[Commit] = []

    def read_new_commits(self) -> int:
        """Take what was committed since; return all rows there are."""
        while (file := self._log / f"{self._next:020}.json").exists():
            found = _commit(self._next, file)
            if found.files:
                self.commits.append(found)
            self._next += 1
        return sum(commit.rows for commit in self.commits)


def _commit(version: int, file: Path) -> Commit:
    at, adds = 0.0, list[dict[str, Any]]()
    for action in _actions(file):
        if "commitInfo" in action:
            at = action["commitInfo"]["timestamp"] / 1e3
        if "add" in action and action["add"]["dataChange"]:
            adds.append(action["add"])
    rows = sum(orjson.loads(add["stats"])["numRecords"] for add in adds)
    return Commit(version, at, len(adds), rows, sum(add["size"] for add in adds))


def _actions(file: Path) -> Iterator[dict[str, dict[str, Any]]]:  # as Delta's protocol has them
    for line in file.read_bytes().splitlines():
        yield orjson.loads(line)
