"""Staged files on Arrow's file systems.

All calls block and raise errors of the store; what a damaged file contains is no error of it.
"""

import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from binwright.consumer.stage import parquet
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import (
    bad_file,
    is_bad_file,
    is_lease,
    is_mark,
    is_portion,
    is_staged_file,
    is_topic_name,
)
from binwright.protocol.ports.kafka import Records
from binwright.tables.ports import Footer

UNFINISHED = ".unfinished-"  # prefix of a local file that is being written
FEW = 5  # below it, objects are looked up one by one
UNFINISHED_S = 3600.0  # an older unfinished file is abandoned
OWNER = "~owner"
"""The file that says whose place it is; no table has this name."""


def open_location(url: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a path or address, and the path in it."""
    scheme, _, rest = url.rpartition("://")
    scheme = "s3" if scheme == "s3a" else scheme
    source = f"{scheme}://{rest}" if scheme else str(Path(rest).absolute())
    return pafs.FileSystem.from_uri(source)


@dataclass(frozen=True, slots=True)
class Probe:
    """What is known of a location after a probe was written there.

    Attributes:
        created: Directories that were made for it, the deepest first.
        free_bytes: Of its disk; None: it is an object store.
    """

    created: tuple[Path, ...]
    free_bytes: int | None


class Files:
    """Staged files below a root, with one directory per table."""

    def __init__(
        self, url: str, sync: Callable[[int], None] = os.fsync, *, moved: bool = False
    ) -> None:
        """Open the location.

        Args:
            url: Its path or address.
            sync: Writes a local file or directory to the disk.
            moved: Whether versions before staged in the directory above: what they announced is
                taken over from there, and their leases are deleted.
        """
        self._fs, self._root = open_location(url)
        self._sync_handle = sync
        self._local = isinstance(self._fs, pafs.LocalFileSystem)
        self._former = self._root.rpartition("/")[0] if moved else None

    def prepare(self, owner: str = "") -> None:
        """Check that files can be written, and load all that the first write needs.

        Args:
            owner: Whose place it is from now on; "": nobody's.

        Raises:
            OSError: It cannot be written, or is another's.
        """
        if self._local:
            self._fs.create_dir(self._root, recursive=True)
        probe = f"{self._root}/{UNFINISHED}probe-{uuid4().hex[:8]}"
        with self._fs.open_output_stream(probe) as stream:
            stream.write(parquet.encode({}, parquet.NO_ROWS))
        self._fs.delete_file(probe)
        if owner:
            self._own(owner)

    def _own(self, owner: str) -> None:
        if self._owner() is None:
            with self._fs.open_output_stream(f"{self._root}/{OWNER}") as stream:
                stream.write(owner.encode())
        if (actual := self._owner()) != owner:  # read back: two may begin together
            raise PermissionError(
                f"it is of {actual}, as its file {OWNER} says, and this is {owner}: give one of "
                "them another place, or delete that file if the other is gone for good"
            )

    def _owner(self) -> str | None:
        try:
            with self._fs.open_input_file(f"{self._root}/{OWNER}") as file:
                return _read(file, 0, file.size()).decode(errors="replace")
        except FileNotFoundError:
            return None

    def write_probe(self, name: str, content: str) -> Probe:
        """Write a file that other programs can read, with one row and one column, `content`."""
        missing = self._missing_directories()
        try:
            if self._local:
                self._fs.create_dir(self._root, recursive=True)
            with self._fs.open_output_stream(f"{self._root}/{name}") as stream:
                pq.write_table(pa.table({"content": [content]}), stream)
        except OSError:
            self._remove_directories(missing)
            raise
        return Probe(missing, shutil.disk_usage(self._root).free if self._local else None)

    def delete_probe(self, name: str, probe: Probe) -> None:
        """Delete the file, and the directories that were made for it, unless they are in use."""
        with suppress(FileNotFoundError):
            self._fs.delete_file(f"{self._root}/{name}")
        self._remove_directories(probe.created)

    def _missing_directories(self) -> tuple[Path, ...]:
        """Return the root and those above it that do not exist, the deepest first."""
        root = Path(self._root)
        return tuple(p for p in (root, *root.parents) if not p.exists()) if self._local else ()

    @staticmethod
    def _remove_directories(created: Sequence[Path]) -> None:
        with suppress(OSError):  # another process has begun to use it
            for directory in created:
                directory.rmdir()

    def write(
        self,
        directory: str,
        name: str,
        rows: Mapping[TopicPartition, Sequence[Records]],
        footer: Footer,
    ) -> int:
        """Write a file of raw records whole and durably; return its bytes."""
        return self.put(directory, name, parquet.encode(rows, footer))

    def keep(self, directory: str, name: str, content: bytes) -> None:
        """Write a file durably, under a name that is not one of a staged file."""
        self.put(directory, name, pa.py_buffer(content))

    def content(self, directory: str, name: str) -> bytes | None:
        """Return what a file has, `FOOTER_BYTES` at most; None: there is none of this name."""
        try:
            with self._fs.open_input_file(self._path(directory, name)) as file:
                return _read(file, 0, min(file.size(), parquet.FOOTER_BYTES))
        except FileNotFoundError:
            return None

    def put(self, directory: str, name: str, content: pa.Buffer) -> int:
        """Write a file whole and durably; return its bytes."""
        if self._local:
            self._write_locally(Path(self._root) / directory, name, content)
        else:
            with self._fs.open_output_stream(self._path(directory, name)) as stream:
                stream.write(content)
        return content.size

    def put_both(self, directory: str, name: str, content: pa.Buffer, bad: pa.Buffer | None) -> int:
        """Write a file, and its bad records beside it, whole and durably; return the file's bytes.

        The bad records come first (†): whoever reads the file looks for them.
        """
        if bad is not None:
            self.put(directory, bad_file(name), bad)
        return self.put(directory, name, content)

    def _write_locally(self, directory: Path, name: str, content: pa.Buffer) -> None:
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True)
            self._sync(directory.parent)
        unfinished = directory / f"{UNFINISHED}{name}"
        try:
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                self._sync_handle(file.fileno())
            unfinished.rename(directory / name)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        self._sync(directory)

    def _sync(self, directory: Path) -> None:
        handle = os.open(directory, os.O_RDONLY)
        try:
            self._sync_handle(handle)
        finally:
            os.close(handle)

    def delete(self, directory: str, names: Collection[str]) -> None:
        """Delete staged files, with what is beside them, and marks; a missing one is no error."""
        beside = [bad_file(name) for name in names if is_staged_file(name) or is_portion(name)]
        for name in self._sizes(directory, {*names, *beside}):
            if _is_ours(name) or is_mark(name):
                self._delete(directory, name)

    def existing(self, directory: str, names: Collection[str]) -> frozenset[str]:
        """Return which of these files exist and are not empty: Spark skips an empty one.

        Raises:
            FileNotFoundError: The place itself is gone, as an unmounted volume is.
        """
        existing = frozenset(name for name, size in self._sizes(directory, names).items() if size)
        if self._local and len(existing) < len(names) and not Path(self._root).is_dir():
            raise FileNotFoundError(f"the staging place is gone: {self._root} is no directory")
        return existing

    def _sizes(self, directory: str, names: Collection[str]) -> dict[str, int]:
        """Return the sizes of those of these files that exist, bytes."""
        if self._local or len(names) < FEW:
            infos = self._fs.get_file_info([self._path(directory, name) for name in sorted(names)])
        else:  # one listing for up to a thousand
            infos = self._listed(directory)
        wanted = frozenset(names)
        files = (info for info in infos if info.type == pafs.FileType.File)
        return {info.base_name: info.size for info in files if info.base_name in wanted}

    def readable(self, directory: str, names: Collection[str]) -> frozenset[str]:
        """Return which of these files, and what is beside them, can be read as a whole."""
        return frozenset(name for name in names if self._is_whole(directory, name))

    def _is_whole(self, directory: str, name: str) -> bool:
        # Read first, decoded then: an error of the store or the network says nothing of the file.
        try:
            with self._fs.open_input_file(self._path(directory, name)) as file:
                content = _read(file, 0, file.size())
        except FileNotFoundError:
            return False
        footer = parquet.decode_footer(content)
        if footer is not None and footer.as_table and footer.bad:
            return parquet.is_whole(content) and self._is_whole(directory, bad_file(name))
        return parquet.is_whole(content)

    def delete_all(self) -> None:
        """Delete the whole location: of a throw-away table."""
        self._fs.delete_dir(self._root)

    def footer(self, directory: str, name: str) -> Footer | None:
        """Return what a file says of itself; None if it is missing, damaged, or none of ours.

        Its end is read, 4 MiB at most: on an object store in two requests.
        """
        try:
            return self._footer(directory, name)
        except FileNotFoundError:
            return self._footer(directory, name) if self._takes_over(directory, name) else None

    def _footer(self, directory: str, name: str) -> Footer | None:
        with self._fs.open_input_file(self._path(directory, name)) as file:
            size = file.size()
            tail = _read(file, max(0, size - parquet.TAIL_BYTES), size)
            wanted = parquet.footer_bytes(tail)
            if wanted is None or wanted > size:
                return None
            if wanted > len(tail):
                tail = _read(file, size - wanted, size)
        return parquet.decode_footer(tail)

    def _takes_over(self, directory: str, name: str) -> bool:
        """Move a file here that a version before staged in the directory above, if it is there."""
        if self._former is None or not is_staged_file(name):
            return False
        source = f"{self._former}/{directory}/{name}"
        if self._fs.get_file_info(source).type != pafs.FileType.File:
            return False
        if self._local:
            self._fs.create_dir(f"{self._root}/{directory}", recursive=True)
        self._fs.move(source, self._path(directory, name))
        return True

    def directories(self) -> frozenset[str]:
        """Return the names of directories."""
        return frozenset(
            info.base_name
            for info in self._listed()
            if info.type == pafs.FileType.Directory and is_topic_name(info.base_name)
        )

    def sizes(self, directory: str) -> dict[str, int]:
        """Return the bytes of its staged files, without leases and unfinished ones."""
        files = (info for info in self._listed(directory) if info.is_file)
        return {info.base_name: info.size for info in files if is_staged_file(info.base_name)}

    def older(self, directory: str, age_s: float) -> frozenset[str]:
        """Return the names of files of this age or older, and of abandoned unfinished ones."""
        now = time.time()
        return frozenset(
            info.base_name
            for info in self._listed(directory)
            if info.is_file
            and _is_ours(info.base_name)
            and info.mtime_ns is not None
            and now - info.mtime_ns / 1e9
            >= (min(age_s, UNFINISHED_S) if info.base_name.startswith(UNFINISHED) else age_s)
        )

    def write_lease(self, directory: str, lease: str) -> None:
        """Write a file without rows."""
        self.write(directory, lease, {}, parquet.NO_ROWS)

    def delete_other_leases(self, directory: str, lease: str) -> None:
        """Delete all leases of the table but this one; a missing one is no error."""
        former = [] if self._former is None else self._listed(directory, self._former)  # (†)
        for info in (*self._listed(directory), *former):
            if is_lease(info.base_name) and info.base_name != lease:
                with suppress(FileNotFoundError):
                    self._fs.delete_file(info.path)

    def _listed(self, directory: str = "", root: str | None = None) -> list[pafs.FileInfo]:
        """Return what is in a directory, or in the root; nothing if it does not exist."""
        path = f"{root or self._root}/{directory}" if directory else self._root
        return self._fs.get_file_info(pafs.FileSelector(path, allow_not_found=True))

    def _delete(self, directory: str, name: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.delete_file(self._path(directory, name))

    def _path(self, directory: str, name: str) -> str:
        return f"{self._root}/{directory}/{name}"


def _is_ours(name: str) -> bool:
    finished = name.removeprefix(UNFINISHED)
    if is_lease(finished):
        return name != finished
    return is_staged_file(finished) or is_bad_file(finished) or is_portion(finished)


def _read(file: pa.NativeFile, begin: int, end: int) -> bytes:
    """Return the bytes of a file in [begin, end); raise `OSError` if the store gives fewer."""
    file.seek(begin)
    content = file.read(end - begin)
    if len(content) < end - begin:
        raise OSError(f"the store returned {len(content)} of {end - begin} bytes")
    return content
