"""What `binwright status` reads and shows: groups as text for a terminal."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from binwright.cli.terminal import LARGE, MEDIUM, TerminalColumn, count, data_size, fitting_table
from binwright.kafka.client import ClusterClient
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.follower import GroupFollower, group_topic
from binwright.look.group_view import GroupView
from binwright.look.order_text import order_text
from binwright.look.savings_text import savings_text
from binwright.look.status import ProposalStatus, SplitPartition, Status, status
from binwright.protocol.errors import ExternalError, TopicMissing
from binwright.protocol.metadata import MeasuredCapacity
from binwright.protocol.selection import METADATA_SUFFIX
from binwright.protocol.texts import first_of
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import LATE_S, Settings
from binwright.runtime.settings.group_config import group_config

READ_S, REFRESH_S, CATCH_UP_S = 0.2, 1.0, 30.0

Show = Callable[[Sequence[Status]], None]

COLOURS = {
    "steady": "green",
    "moving": "cyan",
    "unwritten": "red",
    "refused": "red",
    "unread": "red",
    "silent": "red",
    "empty": "yellow",
}
TABLE_COLOURS = {
    "landing": "green",
    "claiming": "cyan",
    "paused": "yellow",
    "refused": "red",
    "unwritten": "red",
    "silent": "red",
}
MOST_NAMED = 12  # tables or partitions in a cell
FAULTY = {"refused", "unwritten", "silent"}
"""States of tables that take no rows."""


async def show_groups(
    bus: KafkaControlTopics, settings: Settings, named: Collection[str], show: Show, *, watch: bool
) -> None:
    """Show groups once, or with `watch` every second until cancelled.

    Args:
        bus: Of the groups.
        settings: Of Kafka and the metrics topic.
        named: The groups; none: every group there is.
        show: Is given the status of each.
        watch: Go on.

    Raises:
        ExternalError: Kafka does not answer, or there is no group.
    """
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(CATCH_UP_S):
                named_topics = [await group_topic(bus, group) for group in sorted(named)]
                topics = named_topics or await _metadata_topics(settings)
                own = group_config(settings)
                views = {
                    topic: GroupView.of(own if topic == settings.metadata_topic else None)
                    for topic in topics
                }
                follower = await stack.enter_async_context(
                    GroupFollower(bus, views, settings.monitor.topic)
                )
                await follower.catch_up()
        except TimeoutError as exc:
            raise ExternalError(f"the topics could not be read in {CATCH_UP_S:g} s") from exc
        show(_statuses(views, settings, named))
        while watch:
            await asyncio.sleep(REFRESH_S)
            await follower.read(READ_S)
            show(_statuses(views, settings, named))


async def _metadata_topics(settings: Settings) -> list[str]:
    """Return the metadata topics of all groups."""
    async with ClusterClient(settings.kafka) as cluster:
        topics = (await cluster.topics(None)).leaders
    of_groups = sorted(topic for topic in topics if topic.endswith(METADATA_SUFFIX))
    if not of_groups:
        raise TopicMissing(f"there is no group here: no topic named GROUP{METADATA_SUFFIX}")
    return of_groups


def _statuses(
    views: Mapping[str, GroupView], settings: Settings, named: Collection[str]
) -> list[Status]:
    now_ms = wall_ms()
    statuses = []
    for topic, view in views.items():
        group = topic.removesuffix(METADATA_SUFFIX)
        topics = settings.landed_topics if group == settings.group else None
        statuses.append(status(group, view, now_ms, topics))
    # A topic of another system may have the same suffix.
    return [each for each in statuses if named or each.state != "empty"]


def draw(statuses: Sequence[Status], width: int) -> RenderableType:
    """Return the page: state, faults, consumers, tables, moves, last plan and proposal of each.

    Args:
        statuses: Of the groups.
        width: Characters of the terminal; what has no room is left out.
    """
    if not statuses:
        return Text("no group has reported yet", style="yellow")
    parts = [part for each in statuses for part in (Text(), *_group(each, width))]
    return Group(*parts[1:])  # an empty line between groups


def faults(status: Status) -> list[Text]:
    """Return what a person should look at first, a line each: tables that take no rows, loss."""
    lines = [
        f"table {each.name} is {each.state}{f': {each.report.fault}' if each.report.fault else ''}"
        for each in status.tables
        if each.state in FAULTY or each.report.fault
    ]
    lines += [
        f"table {each.name} lands {each.report.age_s:,.0f} s late: Spark is the limit, "
        "more consumers would land no more"
        for each in status.tables
        if each.state == "landing" and each.report.age_s > LATE_S and not each.report.fault
    ]
    if status.unread:
        lines.append(f"no consumer reads: {first_of(status.unread, MOST_NAMED, ' ')}")
    if status.hot:
        first, more = status.hot[0], len(status.hot) - 1
        split = any(each.partition == first.partition for each in status.splits)
        stagers = "all that stage it sustain" if split else "its consumer sustains"
        lines.append(
            f"{first.partition}{f' and {more} more' if more else ''}: {data_size(first.rate)}/s is "
            f"more than {stagers} ({data_size(first.limit)}/s)"
        )
    if status.lost_offsets:
        lines.append(f"lost (deleted unread, or undecodable): {status.lost_offsets:,} offsets")
    return [Text(line, style="red") for line in lines]


def rates(status: Status) -> str:
    """Return what is written and staged, and what backlogs count for beside it, as text."""
    text = f"written {data_size(status.load)}/s, staging {data_size(status.staging)}/s"
    behind = sum(each.need - each.load for each in status.consumers)
    return f"{text}, backlogs count for {data_size(behind)}/s" if behind >= 1 else text


def lag(status: Status) -> str:
    """Return what has not landed, as text; its size where the monitor has measured that."""
    size = f" ({data_size(status.lag_bytes)})" if status.lag_bytes else ""
    return f"lag {count(status.lag, 'record')}{size}, oldest row {status.age_s:.1f} s"


def _group(status: Status, width: int) -> list[RenderableType]:
    head = Text(status.group, style="bold")
    head.append(f"  {status.state}", style=COLOURS[status.state])
    head.append(
        f"  {count(len(status.consumers), 'consumer')}, {count(status.partitions, 'partition')}"
    )
    sums = Text("\n".join([rates(status), lag(status), *_limit(status)]))
    parts: list[RenderableType] = [head, *faults(status), sums]
    if status.consumers:
        parts.append(_consumers(status, width))
    if status.tables:
        parts.append(tables(status, width))
    parts.extend(Text(split_text(each), style="cyan") for each in status.splits)
    parts.extend(
        Text(f"{move.partition}: {_slot(move.old)} → {move.new} ({move.phase})", style="cyan")
        for move in status.moves
    )
    if plan := status.plan:
        reasons = "; ".join(plan.reasons) or "no reason given"
        parts.append(Text(f"last plan {plan.age_s:,.0f} s ago: {reasons}{_moved(plan.rscore)}"))
    if status.savings:
        texts = savings_text(status.savings, wall_ms(), status.adoptable)
        parts.append(Text("; ".join(texts)))
    if status.proposal:
        parts.extend(_proposal(status.group, status.proposal))
    parts.extend(Text(f"held: {reason}", style="yellow") for reason in status.held)
    parts.extend(Text(f"order: {order_text(each)}", style="yellow") for each in status.orders)
    return parts


def split_text(split: SplitPartition) -> str:
    """Return which consumers stage a partition, and how much of it each has staged, as text."""
    total = sum(share.rows for share in split.shares) or 1
    shares = [f"{share.slot} ({share.rows / total:.0%})" for share in split.shares]
    return (
        f"{split.partition} ({data_size(split.rate)}/s) is split: consumers "
        f"{', '.join(shares)} stage it"
    )


def _limit(status: Status) -> list[str]:
    if status.limits is None:
        return []
    limit = f"limit of a consumer {data_size(status.limits.default)}/s"
    return [f"{limit}, as measured" if status.limits_measured else limit]


def _moved(rscore: float) -> str:
    return f" ({rscore:.2f} times a consumer's capacity moved)" if rscore else ""


def _proposal(group: str, proposal: ProposalStatus) -> list[RenderableType]:
    if proposal.approved:
        note = "is approved"
    elif proposal.waits:
        note = f"waits: binwright approve {proposal.plan} --group {group}"
    else:
        note = "is only shown"
    reasons = "; ".join(proposal.reasons)
    head = (
        f"plan {proposal.plan}, {proposal.age_s:,.0f} s old, {note}\n  {reasons} → "
        f"{count(proposal.consumers, 'consumer')}{_moved(proposal.rscore)}"
    )
    changes = [f"{each.partition}: {_slot(each.old)} → {each.new}" for each in proposal.changes]
    return [
        Text(head, style="yellow"),
        Text(f"  {first_of(changes, MOST_NAMED, ' ')}", style="yellow"),
    ]


def _consumers(status: Status, width: int) -> Table:
    columns = (
        TerminalColumn("consumer"),
        TerminalColumn("state", "left"),
        TerminalColumn("load", min_width=8),
        TerminalColumn("staging", shown_from=MEDIUM, min_width=8),
        TerminalColumn("staged", shown_from=LARGE, min_width=6),
        TerminalColumn(
            "could read", shown_from=LARGE, shown=any(each.capacity for each in status.consumers)
        ),
        TerminalColumn("lag", min_width=5),
        TerminalColumn("writes", "left", shown_from=MEDIUM, fold=True),
        TerminalColumn("partitions", "left", fold=True),
    )
    rows = (
        (
            str(each.slot),
            each.state + (f" {each.silent_s:,.0f} s" if each.state == "silent" else ""),
            f"{data_size(each.load)}/s",
            f"{data_size(each.staging)}/s",
            data_size(each.staged_bytes),
            _capacity(each.capacity),
            f"{each.lag:,}",
            first_of(each.tables, MOST_NAMED, " "),
            first_of(each.partitions, MOST_NAMED, " "),
        )
        for each in status.consumers
    )
    return fitting_table(columns, rows, width)


def _capacity(measured: MeasuredCapacity | None) -> str:
    if measured is None:
        return ""
    return f"{data_size(measured.bytes_per_s)}/s ±{measured.spread:.0%}"


def tables(status: Status, width: int) -> Table:
    """Return a line for each table of a group, those that take no rows first."""
    columns = (
        TerminalColumn("table", "left", fold=True),
        TerminalColumn(
            "topic", "left", fold=True, shown=any(t.name != t.topic for t in status.tables)
        ),
        TerminalColumn("state", "left", min_width=8),
        TerminalColumn("writer", shown_from=MEDIUM),
        TerminalColumn("oldest row", min_width=8),
        TerminalColumn("waiting", shown_from=MEDIUM, min_width=6),
        TerminalColumn("lag", min_width=5),
        TerminalColumn("rows", min_width=9),
        TerminalColumn("bad", shown=any(each.report.bad for each in status.tables), min_width=3),
        TerminalColumn(
            "skipped", shown=any(each.report.skipped for each in status.tables), min_width=3
        ),
        TerminalColumn("commits", shown_from=MEDIUM, min_width=7),
    )
    rows = (
        (
            each.name,
            each.topic,
            Text(each.state, style=TABLE_COLOURS[each.state]),
            _slot(each.writer),
            f"{each.report.age_s:,.1f} s" if each.report.age_s else "",
            data_size(each.report.pending_bytes),
            f"{each.lag:,}",
            f"{each.rows:,}",
            f"{each.report.bad:,}",
            f"{each.report.skipped:,}",
            f"{each.report.commits:,}",
        )
        for each in sorted(status.tables, key=lambda each: each.state not in FAULTY)
    )
    return fitting_table(columns, rows, width)


def _slot(slot: int | None) -> str:
    return "none" if slot is None else str(slot)
