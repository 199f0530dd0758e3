"""Staged files in a directory or an object store: Parquet, whole and durable before anybody knows.

A local file is written under another name, flushed to disk and renamed; an object appears when its
upload is complete. All of it blocks, so it runs in threads of its own: a place that hangs holds up
nothing else.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self, TypeVar

from binwright.core.errors import StagingUnavailable
from binwright.core.model import TopicPartition
from binwright.core.ports import Record

if TYPE_CHECKING:
    from binwright.consumer.files import Files

T = TypeVar("T")

THREADS = 6
_SECRET = re.compile(r"(?<=//)[^/@]*@|\?.*$")


def shown(url: str) -> str:
    """Return the place without keys, for people."""
    return _SECRET.sub("", url)


class FileStaging:
    """A `Staging` at a path, a file://, s3:// (or s3a://), gs:// or abfss:// address.

    Addresses may carry what `pyarrow.fs.FileSystem.from_uri` understands, as
    `s3://bucket/prefix?region=eu-west-1&endpoint_override=http://minio:9000`; keys come from the
    environment or the machine where the address names none.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._threads = ThreadPoolExecutor(THREADS, "staging")
        self._opening: asyncio.Future[Files] | None = None

    async def __aenter__(self) -> Self:
        """Begin to open the place: Arrow takes a while, and others need not wait for it."""
        self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the threads; one that hangs is left alone."""
        if self._opening is not None:
            self._opening.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def __str__(self) -> str:
        """Name the place, without keys."""
        return shown(self._url)

    async def prepare(self) -> None:
        """See that it can be written; see `Staging.prepare`."""
        await self._do("be written", lambda files: files.prepare())

    async def write(
        self, topic: str, name: str, rows: Mapping[TopicPartition, Sequence[Record]]
    ) -> int:
        """Write a file whole and durably; see `Staging.write`."""
        return await self._do(f"take {topic}/{name}", lambda files: files.write(topic, name, rows))

    async def delete(self, topic: str, names: Collection[str]) -> None:
        """Delete files; see `Staging.delete`."""
        await self._do(f"delete files of {topic}", lambda files: files.delete(topic, names))

    async def present(self, topic: str, names: Collection[str]) -> Collection[str]:
        """Return which of these files are whole and readable; see `Staging.present`."""
        return await self._do(f"read {topic}", lambda files: files.readable(topic, names))

    async def existing(self, topic: str, names: Collection[str]) -> Collection[str]:
        """Return which of these files are there; see `Staging.existing`."""
        return await self._do(f"list {topic}", lambda files: files.existing(topic, names))

    async def collect(self, topic: str, older_than_s: float) -> int:
        """Delete the topic's old files; see `Staging.collect`."""
        return await self._do(f"clean {topic}", lambda files: files.collect(topic, older_than_s))

    async def _do(self, what: str, work: Callable[["Files"], T]) -> T:
        try:
            files = await self._open()
            run = asyncio.get_running_loop().run_in_executor
            return await run(self._threads, work, files)
        except (OSError, ValueError, NotImplementedError) as exc:  # Arrow's errors are such
            raise StagingUnavailable(
                f"the staging place {self} cannot {what}: {type(exc).__name__}: {exc}. Check "
                "staging.path, free space, and that this process may write there"
            ) from exc

    def _open(self) -> "asyncio.Future[Files]":
        """Return the place, opened once; anew if that failed."""
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            run = asyncio.get_running_loop().run_in_executor
            self._opening = opening = run(self._threads, _opened, self._url)
        return opening


def _opened(url: str) -> "Files":
    from binwright.consumer.files import Files  # noqa: PLC0415 - Arrow takes a while, in a thread

    return Files(url)
