"""What a group reports of its tables, and what their logs have: for `table list` and `describe`."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from binwright.cli.embedded_spark import running_lake
from binwright.cli.terminal import Console
from binwright.inspect.decide.table_facts import Facts, listed_state
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.topics import selected_topics
from binwright.lake.lake_reader import LakeReader, reader_of
from binwright.look.commands.status_page import show_groups
from binwright.look.status import Status
from binwright.look.table_status import TableStatus, topics_text
from binwright.protocol.errors import LakeUnavailable, UserError
from binwright.protocol.metadata import TableOperation
from binwright.runtime.settings.group import Settings
from binwright.tables.targets import Target

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One table; what is None is not known, or not there."""

    name: str
    topic: str  # whose records it takes, for people
    path: str
    format: str
    state: str  # see `listed_state`
    reason: str  # why it takes no rows, or not all; or who paused it, when and why
    freshness_s: float | None  # age of the newest record that landed
    rows: int | None
    bad: int | None  # in its table of bad records
    version: int | None
    topics: tuple[str, ...] = ()  # whose records it takes
    new_fields: tuple[str, ...] = ()  # of JSON, without a column: left out
    operation: TableOperation | None = None  # that a person ordered last; None: none, or unknown


Targets = tuple[Target, ...]
"""Of one table: one for each of its topics."""


def known_targets(settings: Settings, reported: Collection[TableStatus]) -> dict[str, Targets]:
    """Return a group's tables by name: those that it reports, else those that the settings give.

    Raises:
        TableRefused: The settings give a topic of theirs a name that no table can have.
    """
    targets: dict[str, Targets] = {}
    for topic in sorted({*(t for each in reported for t in each.topics), *settings.topics}):
        configured = {target.name: target for target in settings.targets(topic)}
        written = {t.name for t in reported if topic in t.topics and t.state != "unwritten"}
        for name in sorted(written or configured):
            targets[name] = (*targets.get(name, ()), configured.get(name, Target(topic, name)))
    return targets


async def targets_named(settings: Settings, name: str) -> Targets:
    """Return the table of this name: of topics that the settings land, else of its own name.

    Raises:
        UserError: The topic of this name has other tables.
        ExternalError: Kafka does not answer: it is asked for topics that match a pattern.
    """
    topics: Collection[str] = settings.topics
    if settings.topic_patterns and settings.landed_topics is not None:
        topics = await selected_topics(settings.kafka, settings.landed_topics)
    targets = _of_name(settings, topics, name) or _of_name(settings, [name], name)
    if not targets:
        own = ", ".join(sorted(target.name for target in settings.targets(name)))
        raise UserError(f"topic {name} has other tables: name one of {own}")
    return targets


def _of_name(settings: Settings, topics: Iterable[str], name: str) -> Targets:
    """Return the targets of this name."""
    return tuple(t for topic in sorted(topics) for t in settings.targets(topic) if t.name == name)


def listed(
    settings: Settings,
    targets: Targets,
    reported: TableStatus | None,
    read: Facts | LakeUnavailable | None,
) -> Listed:
    """Return a table, by what its group reports and what its log has, if it was read."""
    fault = "" if reported is None else reported.report.fault
    state = None if reported is None else reported.state
    facts, unread = (None, str(read)) if isinstance(read, LakeUnavailable) else (read, "")
    name, topics = targets[0].name, tuple(target.topic for target in targets)
    return Listed(
        name=name,
        topic=topics_text(topics),
        topics=topics,
        path=settings.lake.table_path(name),
        format=targets[0].format,
        state=listed_state(state, fault, exists=read is not None),
        reason="; ".join(filter(None, (fault, unread))),
        freshness_s=None if reported is None else reported.freshness_s,
        rows=None if facts is None else facts.rows,
        bad=None if facts is None else facts.bad,
        version=None if facts is None else facts.version,
        new_fields=() if reported is None else reported.new_fields,
        operation=None if reported is None else reported.report.operation,
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
    names: Collection[str],
    query: Callable[[Any, str], T],
    where: tuple[Path, Console],
) -> Mapping[str, T | LakeUnavailable]:
    """Return what `query` returns for each table, on one session for each server.

    A table that cannot be read has the reason in its place: it stops no other.

    Args:
        settings: Of the lake.
        names: Of the tables.
        query: Is given a session and a table's path; it may block.
        where: A directory for an embedded server, and the console for its progress.

    Raises:
        ExternalError: An embedded server does not start.
    """
    results: dict[str, T | LakeUnavailable] = {}
    by_server = defaultdict[str, list[str]](list)
    directory, console = where
    async with running_lake(directory, console.log, settings) as lake:
        for name in names:
            by_server[lake.server(name)].append(name)
        for together in by_server.values():
            paths = {name: settings.lake.table_path(name) for name in together}
            try:
                async with reader_of(lake, together[0]) as reader:
                    for name, path in paths.items():
                        results[name] = await _read(reader, path, query)
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
