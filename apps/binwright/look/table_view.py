"""A group's tables, folded from the reports of their writers."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from binwright.protocol.metadata import Report, TableReport
from binwright.protocol.model import Slot, TopicPartition, newest

COUNTS = ("rows", "commits", "bad", "skipped")
"""What a writer counts of a table, from 0 each time it gets it."""
NO_REPORT = TableReport(state="claiming", committed={})
"""Of a table of which no writer has said anything."""


@dataclass(slots=True)
class TableView:
    """One table."""

    topics: tuple[str, ...]  # whose records it takes
    writer: Slot | None  # the consumer that writes it; None: none does
    epoch: int  # of that consumer, or of the last one
    report: TableReport  # the last one, with the counts of all its writers since the view began
    at_ms: int  # wall clock of that report
    committed: dict[TopicPartition, int] = field(default_factory=dict)  # next offset to land


@dataclass(slots=True)
class TableViews:
    """All tables that were reported."""

    by_name: dict[str, TableView] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    """Next offset to land: the lowest one of the topic's tables."""
    writer_changes: int = 0  # times a table got another writer
    _of_topics: dict[str, dict[str, TableView]] = field(default_factory=dict)  # topic, name
    _counted: dict[tuple[Slot, int, str], Mapping[str, int]] = field(default_factory=dict)

    def apply_report(self, at_ms: int, report: Report) -> Iterator[str]:
        """Apply a consumer's report; yield the events in words."""
        yield from self._dropped(report)
        for name, table in sorted(report.writing.items()):
            yield from self._table(at_ms, report, name, table)

    def _dropped(self, report: Report) -> Iterator[str]:
        topics = report.written_topics
        for name, view in sorted(self.by_name.items()):
            if name in report.writing:
                continue
            if view.writer == report.slot:
                view.writer = None
                yield f"consumer {report.slot} no longer writes the table {name}"
            # Whoever writes a topic writes all tables of its settings.
            if not topics.isdisjoint(view.topics):
                self._remove(name, view)

    def _table(self, at_ms: int, report: Report, name: str, table: TableReport) -> Iterator[str]:
        before, topics = self.by_name.get(name), table.topics_of(name)
        if before is not None and before.topics != topics:
            self._remove(name, before)
            before = None if {*topics}.isdisjoint(before.topics) else before
        state, fault = (before.report.state, before.report.fault) if before else ("", "")
        view = before or TableView(topics, None, report.epoch, table, at_ms)
        view.topics, self.by_name[name] = topics, view
        for topic in topics:
            self._of_topics.setdefault(topic, {})[name] = view
        taken = view.writer != report.slot
        # An epoch belongs to one process of one slot.
        self.writer_changes += view.epoch != report.epoch
        view.writer, view.epoch, view.at_ms = report.slot, report.epoch, at_ms
        view.report = self._total((report.slot, report.epoch, name), table, before)
        if table.state != "claiming":
            view.committed.update(table.committed)
            self._update_committed(table.committed)
        if (taken or state == "claiming") and table.state == "landing":
            yield f"consumer {report.slot} writes the table {name}"
        if table.fault and table.fault != fault:
            yield f"table {name} takes nothing: {table.fault}"

    def _remove(self, name: str, view: TableView) -> None:
        del self.by_name[name]
        for topic in view.topics:
            del self._of_topics[topic][name]

    def _update_committed(self, changed: Collection[TopicPartition]) -> None:
        # A table has what it took of topics that it takes no more, too: these have no tables.
        tables = {
            topic: [view.committed for view in self._of_topics.get(topic, {}).values()]
            for topic in {partition.topic for partition in changed}
        }
        for partition in changed:
            known = [t[partition] for t in tables[partition.topic] if partition in t]
            if known:
                self.committed[partition] = min(known)

    def _total(
        self, writer: tuple[Slot, int, str], table: TableReport, before: TableView | None
    ) -> TableReport:
        """Return a writer's report, with the counts and the newest record of earlier ones, too."""
        counts = {name: getattr(table, name) for name in COUNTS}
        last = self._counted.get(writer, {})
        if any(counts[name] < last.get(name, 0) for name in ("rows", "commits")):
            last = {}
        self._counted[writer] = counts
        earlier = before.report if before else NO_REPORT
        totals = {n: getattr(earlier, n) + counts[n] - last.get(n, 0) for n in COUNTS}
        return replace(table, **totals, newest_ms=newest(earlier.newest_ms, table.newest_ms))

    def remove_consumer(self, slot: Slot) -> None:
        """Apply that a consumer is gone: its tables have no writer."""
        for view in self.by_name.values():
            if view.writer == slot:
                view.writer = None

    def remove_partitions(self, topic: str, count: int) -> None:
        """Remove the offsets of partitions that no longer exist; the topic has `count` now."""
        tables = (view.committed for view in self._of_topics.get(topic, {}).values())
        for committed in (self.committed, *tables):
            for partition in [p for p in committed if p.topic == topic and p.partition >= count]:
                del committed[partition]
