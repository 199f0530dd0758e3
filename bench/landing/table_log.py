"""Tables seen from outside: which commit landed how many rows, by the logs of Delta and Iceberg."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import fastavro
import orjson

_ADDED = 1  # the status of a manifest's entry


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table that added rows."""

    at: float  # when it could be read, seconds since the epoch
    files: tuple[Path, ...]
    rows: int
    bytes: int  # of its files


class TableLog(Protocol):
    """A table's log, read on as it grows. Compaction does not count: it adds no rows."""

    commits: list[Commit]

    def read_new_commits(self) -> int:
        """Take what was committed since; return all rows there are."""


class DeltaLog:
    """The log of a Delta table."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._next = 0
        self.commits: list[Commit] = []

    def read_new_commits(self) -> int:
        """Take what was committed since; return all rows there are."""
        while (file := self._table / "_delta_log" / f"{self._next:020}.json").exists():
            found = self._commit(file)
            if found.files:
                self.commits.append(found)
            self._next += 1
        return sum(commit.rows for commit in self.commits)

    def _commit(self, file: Path) -> Commit:
        # A data file may be older than its commit, by as long as it took to be staged.
        lines = (orjson.loads(line) for line in file.read_bytes().splitlines())
        adds = [a["add"] for a in lines if "add" in a and a["add"]["dataChange"]]
        return Commit(
            at=file.stat().st_mtime,
            files=tuple(self._table / add["path"] for add in adds),
            rows=sum(orjson.loads(add["stats"])["numRecords"] for add in adds),
            bytes=sum(add["size"] for add in adds),
        )


class IcebergLog:
    """The snapshots of an Iceberg table of a Hadoop catalog."""

    def __init__(self, table: Path) -> None:
        self._metadata = table / "metadata"
        self._seen: set[int] = set()
        self.commits: list[Commit] = []

    def read_new_commits(self) -> int:
        """Take what was committed since; return all rows there are."""
        versions = sorted(self._metadata.glob("v*.metadata.json"), key=_version)
        for file in versions[len(self._seen) :]:
            table = orjson.loads(file.read_bytes())
            self._seen.add(_version(file))
            if added := _added(table):
                self.commits.append(_snapshot(added, file.stat().st_mtime))
        return sum(commit.rows for commit in self.commits)


def _version(file: Path) -> int:
    return int(file.name.removeprefix("v").split(".")[0])


def _added(table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the current snapshot, None where there is none that this version added."""
    current, last = table.get("current-snapshot-id"), table["last-updated-ms"]
    snapshots = [s for s in table.get("snapshots", ()) if s["snapshot-id"] == current]
    return snapshots[0] if snapshots and snapshots[0]["timestamp-ms"] == last else None


def _snapshot(snapshot: Mapping[str, Any], at: float) -> Commit:
    files = [
        entry["data_file"]
        for manifest in _read_avro(snapshot["manifest-list"])
        if manifest["added_snapshot_id"] == snapshot["snapshot-id"]
        for entry in _read_avro(manifest["manifest_path"])
        if entry["status"] == _ADDED
    ]
    return Commit(
        at=at,
        files=tuple(_path(file["file_path"]) for file in files),
        rows=sum(file["record_count"] for file in files),
        bytes=sum(file["file_size_in_bytes"] for file in files),
    )


def _read_avro(place: str) -> Iterator[dict[str, Any]]:
    with _path(place).open("rb") as file:
        for entry in fastavro.reader(file):
            assert isinstance(entry, dict)
            yield entry


def _path(place: str) -> Path:
    return Path(place.removeprefix("file:"))


def within(commits: Iterable[Commit], began: float, ended: float) -> list[Commit]:
    """Return those that could be read from `began` on, before `ended`."""
    return [commit for commit in commits if began <= commit.at < ended]
