"""The directory of one system on this machine: its broker's data stay in it between starts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import urlparse

import pyarrow.fs as pafs

from binwright.consumer.stage.files import open_location
from binwright.local.cache import file_lock
from binwright.protocol.errors import EmbeddedError, SettingsError
from binwright.runtime.settings.group import Settings

NAME = "_up"  # no topic is called so: tables stand beside it
BESIDE = Path("binwright-data")  # of an object store's lake
LOCK_S = 1.0
RUNNING = "running.txt"


def home_of(lake: str) -> Path:
    """Return where the broker's data are by default: with the tables, or here if those are away."""
    parts = urlparse(lake)
    if parts.scheme in {"", "file"}:
        return Path(parts.path).absolute() / NAME
    return BESIDE.absolute()


@asynccontextmanager
async def alone_in(directory: Path) -> AsyncIterator[None]:
    """Keep other systems out of a directory, which is made if it is not there.

    Raises:
        SettingsError: One runs in it, or it cannot be made; says what to name instead.
    """
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(file_lock(directory / "lock", deadline_s=LOCK_S))
        except EmbeddedError as exc:
            running = directory / RUNNING
            who = running.read_text() if running.exists() else "it is starting"
            raise SettingsError(
                f"another system runs in {directory}: {who}. End it, name another --lake or "
                "--directory, or land more topics from its Kafka: --bootstrap-servers and a --group"
            ) from exc
        except OSError as exc:
            raise SettingsError(
                f"{directory} cannot be written: {exc.strerror}; name another --lake or --directory"
            ) from exc
        (directory / RUNNING).unlink(missing_ok=True)
        yield


def note_running(directory: Path, settings: Settings) -> None:
    """Leave word for others of what runs here."""
    (directory / RUNNING).write_text(
        f"group {settings.group}, Kafka {settings.kafka.bootstrap_servers}, "
        f"since {datetime.now().astimezone():%H:%M}"
    )


async def check_tables(settings: Settings, directory: Path) -> None:
    """Check that a broker without data meets no tables: they would be another cluster's.

    Args:
        settings: Of the group and the lake.
        directory: Of the embedded broker.

    Raises:
        SettingsError: There are tables of the topics; says what to name.
    """
    if (directory / "kafka" / "data" / "meta.properties").exists():
        return
    there = await asyncio.to_thread(_tables, settings)
    if there:
        raise SettingsError(
            f"{settings.lake.path} holds tables of {', '.join(there)} already, and the data of the "
            f"Kafka that they come from are not in {directory}: name that Kafka by "
            "--bootstrap-servers, the --directory of its data, or another --lake"
        )


def _tables(settings: Settings) -> list[str]:
    try:
        lake, root = open_location(settings.lake.path)
        logs = lake.get_file_info([f"{root}/{topic}/_delta_log" for topic in settings.topics])
        infos = zip(settings.topics, logs, strict=True)
        return [topic for topic, log in infos if log.type == pafs.FileType.Directory]
    except (OSError, ValueError, NotImplementedError) as exc:  # what Arrow raises
        raise SettingsError(f"the lake {settings.lake.path} cannot be read: {exc}") from exc
