"""What a group reports of its tables, and what their logs have: for `table list` and `describe`."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from binwright.audit.lake_reader import LakeReader, reader_of
from binwright.cli.embedded_spark import running_lake
from binwright.consumer.decide.table_facts import Facts, listed_state
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.errors import LakeUnavailable
from binwright.runtime.settings import Settings
from binwright.views.commands.status_page import show_groups
from binwright.views.status import Status
from binwright.views.table_status import TableStatus

T = TypeVar("T")

RAW = "bytes"
"""The format of topics that no entry of `tables` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One table; what is None is not known, or not there."""

    topic: str
    path: str
    format: str
    state: str  # see `listed_state`
    reason: str  # why it takes no rows, or not all; or who paused it, when and why
    freshness_s: float | None  # age of the newest record that landed
    rows: int | None
    bad: int | None  # in its table of bad records
    version: int | None


def listed(
    settings: Settings,
    topic: str,
    reported: TableStatus | None,
    read: Facts | LakeUnavailable | None,
) -> Listed:
    """Return a topic's table, by what its group reports and what its log has, if it was read."""
    entry, fault = settings.table(topic), "" if reported is None else reported.fault
    state = None if reported is None else reported.state
    facts, unread = (None, str(read)) if isinstance(read, LakeUnavailable) else (read, "")
    return Listed(
        topic=topic,
        path=settings.lake.table_path(topic),
        format=RAW if entry is None else entry.format,
        state=listed_state(state, fault, exists=read is not None),
        reason="; ".join(filter(None, (fault, unread))),
        freshness_s=None if reported is None else reported.freshness_s,
        rows=None if facts is None else facts.rows,
        bad=None if facts is None else facts.bad,
        version=None if facts is None else facts.version,
    )


async def group_status(settings: Settings) -> Status:
    """Return the status of the settings' group.

    Raises:
        ExternalError: Kafka does not answer, or there is no such group.
    """
    statuses: list[Status] = []
    async with KafkaControlTopics(settings.kafka, read_only=True) as bus:
        await show_groups(bus, settings, [settings.group], statuses.extend, watch=False)
    return statuses[0]


async def read_tables(
    settings: Settings,
    topics: Collection[str],
    query: Callable[[Any, str], T],
    where: tuple[Path, Console],
) -> Mapping[str, T | LakeUnavailable]:
    """Return what `query` returns for the table of each topic, on one session for each server.

    A table that cannot be read has the reason in its place: it stops no other.

    Args:
        settings: Of the lake.
        topics: Whose tables they are.
        query: Is given a session and a table's path; it may block.
        where: A directory for an embedded server, and the console for its progress.

    Raises:
        ExternalError: An embedded server does not start.
    """
    results: dict[str, T | LakeUnavailable] = {}
    by_server = defaultdict[str, list[str]](list)
    directory, console = where
    async with running_lake(directory, console.log, settings) as lake:
        for topic in topics:
            by_server[lake.server(topic)].append(topic)
        for together in by_server.values():
            paths = {topic: settings.lake.table_path(topic) for topic in together}
            try:
                async with reader_of(lake, together[0]) as reader:
                    for topic, path in paths.items():
                        results[topic] = await _read(reader, path, query)
            except LakeUnavailable as exc:
                results |= dict.fromkeys(paths, exc)
    return results


async def _read(
    reader: LakeReader, path: str, query: Callable[[Any, str], T]
) -> T | LakeUnavailable:
    try:
        return await reader.run(f"read the table at {path}", lambda spark: query(spark, path))
    except LakeUnavailable as exc:
        return exc
