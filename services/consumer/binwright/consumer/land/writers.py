"""The tables that this consumer writes, for the topics whose role it has."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain

from binwright.consumer.events import Emit, Event, TableLost, WritingStopped
from binwright.consumer.land.context import WriterContext
from binwright.consumer.land.effects import OffsetCommitter
from binwright.consumer.land.table_writer import TableWriter
from binwright.protocol.errors import TableRefused
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metadata import TableReport
from binwright.runtime.logs import log
from binwright.runtime.run import background_tasks, must_not_end
from binwright.tables.targets import Target

COMMIT_ABANDONED = LogEvent.warning(
    "commit.abandoned",
    "A consumer ended while a commit was under way; the next writer finds out what became of it.",
)

STOP_S = 5.0
"""Seconds that a stop waits for the commit in flight; a new writer's claim fences a later one."""
DELETIONS_S = 1.0
"""Seconds that an end waits for staged files to be deleted; the rest is collected by age."""

_Task = asyncio.Task[None]


@dataclass(frozen=True, slots=True)
class _Role:
    """The role for one topic: this process knows what has landed in each of its tables."""

    targets: tuple[Target, ...]
    offsets: OffsetCommitter
    committing: _Task  # of the topic's offsets
    fault: str = ""  # why the topic has no tables


@dataclass(frozen=True, slots=True)
class _Writing:
    """A table that is written."""

    writer: TableWriter
    task: _Task


class Writers:
    """Starts and stops writing tables, as the controller commands for their topics.

    A table has one writer for all of its topics. Tables hold no others, but those of a topic end
    together: a table that another topic has, too, begins again.
    """

    def __init__(self, context: WriterContext, emit: Emit) -> None:
        """Prepare; `start` begins to write tables."""
        self._context, self._emit = context, emit
        self._roles: dict[str, _Role] = {}  # by topic
        self._offsets: dict[str, OffsetCommitter] = {}  # likewise
        self._tables: dict[str, _Writing] = {}  # by name
        self._ending: dict[str, _Task] = {}  # likewise
        self._releasing: dict[str, _Task] = {}  # by topic
        self._stopped: dict[str, dict[str, TableWriter]] = {}  # topic -> tables that end

    def start(self, topics: Collection[str]) -> None:
        """Write the tables of these topics."""
        new = {topic: self._new_role(topic) for topic in topics if topic not in self._roles}
        self._roles |= new
        self._begin({target.name for role in new.values() for target in role.targets})

    def stop(self, topics: Collection[str]) -> None:
        """Stop writing after the commits in flight, then emit `WritingStopped`."""
        self._release(topics, WritingStopped)

    def reports(self) -> dict[str, dict[str, TableReport]]:
        """Return the reports of each topic's tables, until the last commit here has ended."""
        reports = {
            topic: {name: writer.report() for name, writer in tables.items()}
            for topic, tables in self._stopped.items()
        }
        tables = {name: each.writer.report() for name, each in self._tables.items()}
        for topic, role in self._roles.items():
            reports[topic] = {target.name: tables[target.name] for target in role.targets}
            if role.fault:
                fault = TableReport(state="refused", committed={}, fault=role.fault)
                reports[topic] = {topic: fault}
        return dict(sorted(reports.items()))

    async def run(self) -> None:
        """Maintain the tables and read orders until cancelled, then abandon all tables."""
        try:
            async with background_tasks(must_not_end(self._context.orders.run())):
                await self._context.maintenance.run()
        finally:
            tasks = {each.task for each in self._tables.values()}
            tasks |= {role.committing for role in self._roles.values()}
            tasks |= {*self._ending.values(), *self._releasing.values()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    # --- inside ----------------------------------------------------------------------------------

    def _new_role(self, topic: str) -> _Role:
        targets: tuple[Target, ...] = ()
        fault = ""
        try:
            targets = tuple(self._context.targets(topic))
        except TableRefused as exc:
            fault = str(exc)
        committer = OffsetCommitter(self._context.reader, [target.name for target in targets])
        self._offsets[topic] = committer
        return _Role(targets, committer, asyncio.create_task(committer.run()), fault)

    def _begin(self, names: Collection[str]) -> None:
        """Write these tables for all topics that have them, or go on so."""
        of_name: dict[str, list[Target]] = {}
        for target in chain.from_iterable(role.targets for role in self._roles.values()):
            if target.name in names:
                of_name.setdefault(target.name, []).append(target)
        for name, targets in sorted(of_name.items()):
            if name in self._tables:
                self._tables[name].writer.take(targets)
            else:
                writer = TableWriter(targets, self._context, self._offsets, self._emit)
                task = asyncio.create_task(self._write(name, writer))
                self._tables[name] = _Writing(writer, task)

    async def _write(self, name: str, writer: TableWriter) -> None:
        if (before := self._ending.get(name)) is not None:
            await asyncio.wait({before})
        try:
            lost = await writer.run()
        finally:
            await writer.end(DELETIONS_S)
        if lost and name in self._tables and self._tables[name].writer is writer:
            having = [t for t, role in self._roles.items() if name in _names(role)]
            self._release(having, TableLost)

    def _release(self, topics: Collection[str], event: Callable[[str], Event]) -> None:
        """Give up these topics: end their tables, then emit the event of each."""
        names: set[str] = set()
        for topic in topics:
            role, before = self._roles.pop(topic, None), self._releasing.get(topic)
            own = () if role is None else _names(role)
            if role is not None:
                self._stopped[topic] = {
                    name: self._tables[name].writer for name in own if name in self._tables
                }
            names.update(own)
            self._releasing[topic] = asyncio.create_task(
                self._emit_ended(topic, role, before, event(topic))
            )
        for name in sorted(names):
            self._end_table(name)
        self._begin(names)

    def _end_table(self, name: str) -> None:
        if (writing := self._tables.pop(name, None)) is None:
            return
        writing.writer.stopping = True
        if not writing.writer.committing:
            writing.task.cancel()
        self._ending[name] = asyncio.create_task(self._end(name, writing, self._ending.get(name)))

    async def _end(self, name: str, writing: _Writing, before: _Task | None) -> None:
        """Wait for the commit in flight, then abandon it: whether it lands is unknown."""
        if before is not None:
            await asyncio.wait({before})
        if writing.writer.committing:
            _, late = await asyncio.wait({writing.task}, timeout=STOP_S)
            if late:
                log(COMMIT_ABANDONED, table=name, waited_s=STOP_S)
        writing.task.cancel()
        await asyncio.wait({writing.task})
        if self._ending.get(name) is asyncio.current_task():
            del self._ending[name]

    async def _emit_ended(
        self, topic: str, role: _Role | None, before: _Task | None, event: Event
    ) -> None:
        """Emit an event once the topic's tables have ended."""
        waited = (
            {self._ending[name] for name in _names(role) if name in self._ending} if role else set()
        )
        if before is not None:
            waited.add(before)
        if waited:
            await asyncio.wait(waited)
        if role is not None:
            role.committing.cancel()
            if self._offsets.get(topic) is role.offsets:
                del self._offsets[topic]
        if self._releasing.get(topic) is asyncio.current_task():
            del self._releasing[topic]
            self._stopped.pop(topic, None)
        self._emit(event)


def _names(role: _Role) -> frozenset[str]:
    return frozenset(target.name for target in role.targets)
