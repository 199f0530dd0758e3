"""A Spark Connect server for a command that reads tables: the named one, or one of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

from binwright.cli.options import named_spark
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.group import Settings

# By name: nothing but the command line knows that there are embedded servers.
EMBEDDED = "binwright.local.stack"


@asynccontextmanager
async def running_lake(
    directory: Path, progress: Callable[[str], None], settings: Settings
) -> AsyncIterator[LakeSettings]:
    """Give the lake of the settings with servers that run; see `spark_connect`."""
    lake, named = settings.lake, named_spark(settings)
    async with spark_connect(directory, progress, named) as spark:
        # The address of an embedded server holds its token.
        own = {"spark": spark, "token_file": None}
        yield lake.model_copy(update=own) if named is None else lake


@asynccontextmanager
async def spark_connect(
    directory: Path, progress: Callable[[str], None], named: str | None
) -> AsyncIterator[str]:
    """Give the URL of a Spark Connect server, perhaps with a token; one is embedded for the block.

    Args:
        directory: Of an embedded server's data and logs.
        progress: Called with each step of its start, in words.
        named: The address that the user has named; None: one is embedded.

    Raises:
        SettingsError: No address is named, and the embedded servers are not installed.
        EmbeddedError: The embedded server does not start.
    """
    if named is not None:
        yield named
        return
    try:
        stack = import_module(EMBEDDED)
    except ModuleNotFoundError as exc:
        raise SettingsError(
            f"no Spark server is named, and none can be embedded ({exc}): name one with --spark "
            "(sc://HOST:PORT), or pip install 'binwright[embedded]'"
        ) from exc
    async with stack.servers(directory, progress, bootstrap_servers="not needed") as running:
        yield running.spark_url
