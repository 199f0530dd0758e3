"""Answers why a table is late, or why nothing lands in it."""

import math

from binwright.cli.terminal import data_size
from binwright.look.explain.answers import Explanation, GroupFacts, Line, duration
from binwright.look.table_status import TableStatus
from binwright.protocol.metadata import TableCompaction, TableRegistration
from binwright.protocol.model import TopicPartition

BUSY = 0.5
"""Share of its time that a consumer waits for staging, from which that is the limit."""


def explain_table(group: GroupFacts, name: str) -> Explanation:
    """Say why a table is late, or that it is not."""
    about = f"table {name}"
    table = next((each for each in group.status.tables if each.name == name), None)
    if table is None:
        return Explanation(about, (Line("is", "the group has no such table"),))
    lines, report = [Line("is", _state(table))], table.report
    if report.appended:
        lines.append(Line("is", f"Spark writes its rows again: {report.appended}"))
    if report.compaction is not None:
        lines += [Line("is", text) for text in _small_files(report.compaction)]
    if report.registration is not None:
        lines.append(Line("is", _registered(report.registration)))
    if held := _held_by_transactions(group, table):
        lines += [Line("why", text) for text in held]
        remedy = (
            "its producer ends the transaction, or Kafka after its transaction.timeout.ms; "
            "`kafka-transactions.sh find-hanging` finds one that hangs, and `abort` ends it"
        )
        lines.append(Line("change", remedy))
    target_s = group.freshness.target_s
    if table.state == "landing" and held and _all_else_landed(group, table):
        return Explanation(about, tuple(lines))
    if table.state == "landing" and _is_in_time(group, table):
        wanted = f"the target is {target_s:g} s" if target_s else "its target is not known here"
        lines.append(Line("why", f"it is not late: {wanted}"))
    else:
        lines += [Line("why", text) for text in _causes(group, table)]
        lines += [Line("change", text) for text in _remedies(table)]
    return Explanation(about, tuple(lines))


def _small_files(compaction: TableCompaction) -> list[str]:
    of_writer = (
        f"{compaction.small_files:,} small files with {data_size(compaction.small_bytes)} can be "
        f"merged; its writer has rewritten {compaction.files_read:,} into "
        f"{compaction.files_written:,}, in {duration(compaction.seconds)} of Spark"
    )
    failed = f"its small files are not merged: {compaction.fault}"
    return [of_writer, failed] if compaction.fault else [of_writer]


def _registered(registration: TableRegistration) -> str:
    if registration.registered:
        return f"it is registered as {registration.name}"
    waits = registration.fault or "its writer has not come to it yet"
    return f"it is not registered as {registration.name}: {waits}"


def _state(table: TableStatus) -> str:
    writer = "nobody writes it" if table.writer is None else f"consumer {table.writer} writes it"
    landed = (
        "nothing landed yet"
        if table.freshness_s is None
        else f"the newest record that landed is {duration(table.freshness_s)} old"
    )
    topic = "" if table.name == table.topic else f"; it takes {_topics(table)}"
    return (
        f"{table.state}{topic}; {writer}; {landed}; {table.lag:,} records have not landed, "
        f"{data_size(table.report.pending_bytes)} of them are staged, "
        f"the oldest for {table.report.age_s:.1f} s"
    )


def _topics(table: TableStatus) -> str:
    return f"{'topic' if len(table.topics) == 1 else 'topics'} {table.topic}"


def _is_in_time(group: GroupFacts, table: TableStatus) -> bool:
    if table.report.fault:
        return False
    if not table.lag:
        return True  # all that there is has landed
    target_s = group.freshness.target_s
    return target_s is not None and (table.freshness_s or 0.0) <= 2 * target_s


def _held_by_transactions(group: GroupFacts, table: TableStatus) -> list[str]:
    """Return which partitions an open transaction holds back: consumers read committed records."""
    return [
        f"an open transaction holds back {each.topic}-{each.partition}: it began at offset "
        f"{stable}, and before it ends none of the {each.end - stable:,} records from there is read"
        for each in table.partitions
        if (stable := group.stable.get(TopicPartition(each.topic, each.partition))) is not None
        and each.end is not None
        and stable < each.end
    ]


def _all_else_landed(group: GroupFacts, table: TableStatus) -> bool:
    return all(
        not each.lag
        or (each.committed or 0)
        >= group.stable.get(TopicPartition(each.topic, each.partition), math.inf)
        for each in table.partitions
    )


def _causes(group: GroupFacts, table: TableStatus) -> list[str]:
    match table.state:
        case "refused":
            return [f"it takes no rows: {table.report.fault}"]
        case "paused":
            return [f"a person has paused it: {table.report.fault}"]
        case "unwritten":
            return ["no consumer is its writer: is there a controller, and is a consumer ready?"]
        case "silent":
            return [
                f"its writer, consumer {table.writer}, does not report: the controller replaces it"
            ]
        case "claiming":
            return [
                (
                    f"consumer {table.writer} is taking it over: it fences older writers, and "
                    "reads what they have committed"
                )
            ]
    if table.report.fault:
        return [table.report.fault]
    return _slow_part(group, table)


def _slow_part(group: GroupFacts, table: TableStatus) -> list[str]:
    """Return where its records wait: in the log, or staged."""
    unread = sum(
        max(0, each.end - (each.staged if each.staged is not None else each.committed or 0))
        for each in table.partitions
        if each.end is not None
    )
    staged = max(0, table.lag - unread)
    reasons = [
        (
            f"of {table.lag:,} records {unread:,} are not staged yet, {staged:,} are staged and "
            "have not landed"
        )
    ]
    if table.report.age_s > group.freshness.late_s:
        reasons.append(
            f"the sink is the limit: a staged row has waited for {table.report.age_s:.0f} s; more "
            "consumers land no more"
        )
    own = {each.reader for each in table.partitions}
    for each in group.live:
        limit = group.limit(each.slot)
        if each.slot in own and limit and each.need > limit:
            reasons.append(
                f"consumer {each.slot} gets more than it sustains: {data_size(each.need)}/s of "
                f"{data_size(limit)}/s"
            )
        elif each.slot in own and each.busy > BUSY:
            reasons.append(f"consumer {each.slot} waits for staging in {each.busy:.0%} of its time")
    if len(reasons) == 1:
        reasons.append("no consumer is full, and no staged row waits long: it is catching up")
    return reasons


def _remedies(table: TableStatus) -> list[str]:
    look = f"`binwright table describe {table.name}` shows its log and its settings"
    match table.state:
        case "paused":
            return [f"`binwright table resume {table.name}`"]
        case "refused":
            return [f"mend what it names; {look}"]
        case "unwritten" | "silent":
            return ["`binwright status` shows consumers, `binwright doctor` what they cannot reach"]
    return [look]
