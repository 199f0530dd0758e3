"""A group's tables, folded from the reports of their writers."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from binwright.protocol.messages import Report, TableReport
from binwright.protocol.model import Slot, TopicPartition, newest


@dataclass(slots=True)
class TableView:
    """One topic's table."""

    writer: Slot | None  # the consumer that writes it; None: none does
    epoch: int  # of that consumer, or of the last one
    report: TableReport  # the last one
    at_ms: int  # wall clock of that report
    rows: int = 0  # landed, by all its writers since the view began
    commits: int = 0
    bad: int = 0  # of the rows: bad records
    skipped: int = 0  # records that are in no table, as the settings want
    newest_ms: int | None = None  # the highest timestamp of landed records, by all its writers


@dataclass(slots=True)
class TableViews:
    """All tables that were reported."""

    by_topic: dict[str, TableView] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)  # next offset to land
    writer_changes: int = 0  # times a table got another writer
    _counted: dict[tuple[Slot, int, str], tuple[int, int, int, int]] = field(default_factory=dict)

    def apply_report(self, at_ms: int, report: Report) -> Iterator[str]:
        """Apply a consumer's report; yield the events in words."""
        yield from self._dropped(report)
        for topic, table in sorted(report.writing.items()):
            yield from self._table(at_ms, report, topic, table)

    def _dropped(self, report: Report) -> Iterator[str]:
        for topic, view in sorted(self.by_topic.items()):
            if view.writer == report.slot and topic not in report.writing:
                view.writer = None
                yield f"consumer {report.slot} no longer writes the table {topic}"

    def _table(self, at_ms: int, report: Report, topic: str, table: TableReport) -> Iterator[str]:
        before = self.by_topic.get(topic)
        state, fault = (before.report.state, before.report.fault) if before else ("", "")
        view = before or TableView(None, report.epoch, table, at_ms)
        self.by_topic[topic] = view
        taken = view.writer != report.slot
        # An epoch belongs to one process of one slot.
        self.writer_changes += view.epoch != report.epoch
        view.writer, view.epoch, view.report, view.at_ms = report.slot, report.epoch, table, at_ms
        view.newest_ms = newest(view.newest_ms, table.newest_ms)
        self._count(report, topic, view)
        if table.state != "claiming":
            self.committed.update(table.committed)
        if (taken or state == "claiming") and table.state == "landing":
            yield f"consumer {report.slot} writes the table {topic}"
        if table.fault and table.fault != fault:
            yield f"table {topic} takes nothing: {table.fault}"

    def _count(self, report: Report, topic: str, view: TableView) -> None:
        """Add the new rows and commits: a writer counts from 0 each time it gets the table."""
        key, table = (report.slot, report.epoch, topic), view.report
        rows, commits, bad, skipped = self._counted.get(key, (0, 0, 0, 0))
        if table.rows < rows or table.commits < commits:
            rows, commits, bad, skipped = 0, 0, 0, 0
        view.rows += table.rows - rows
        view.commits += table.commits - commits
        view.bad += table.bad - bad
        view.skipped += table.skipped - skipped
        self._counted[key] = (table.rows, table.commits, table.bad, table.skipped)

    def remove_consumer(self, slot: Slot) -> None:
        """Apply that a consumer is gone: its tables have no writer."""
        for view in self.by_topic.values():
            if view.writer == slot:
                view.writer = None

    def remove_partitions(self, topic: str, count: int) -> None:
        """Remove the offsets of partitions that no longer exist; the topic has `count` now."""
        removed = [p for p in self.committed if p.topic == topic and p.partition >= count]
        for partition in removed:
            del self.committed[partition]
