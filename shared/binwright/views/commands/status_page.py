"""What `binwright status` reads and shows: groups as text for a terminal."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from binwright.cli.terminal import megabytes
from binwright.kafka.client import ClusterClient
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.errors import ExternalError, TopicMissing
from binwright.protocol.selection import METADATA_SUFFIX
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings import Settings
from binwright.views.commands.live_page import TABLE_COLOURS
from binwright.views.follower import GroupFollower, group_topic
from binwright.views.group_view import GroupView
from binwright.views.status import ProposalStatus, Status, status

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
TEXT_COLUMNS = {"state", "partitions", "writes", "table"}  # the others hold numbers


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
                views = {topic: GroupView() for topic in topics}
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


def draw(statuses: Sequence[Status]) -> RenderableType:
    """Return the page: state, consumers, tables, moves, last plan and proposal of each group."""
    if not statuses:
        return Text("no group has reported yet", style="yellow")
    return Group(*(part for each in statuses for part in _group(each)))


def _group(status: Status) -> list[RenderableType]:
    head = Text(status.group, style="bold")
    head.append(f"  {status.state}", style=COLOURS[status.state])
    head.append(
        f"  {_count(len(status.consumers), 'consumer')}, {_count(status.partitions, 'partition')}, "
        f"written {megabytes(status.load)}/s, staging {megabytes(status.staging)}/s, "
        f"lag {status.lag:,} records, oldest {status.age_s:.1f} s"
    )
    parts: list[RenderableType] = [head]
    if status.lost_offsets:
        lost = f"  lost to retention before they were read: {status.lost_offsets:,} offsets"
        parts.append(Text(lost, style="red"))
    if status.unread:
        unread = _some(list(map(str, status.unread)))
        parts.append(Text(f"  no consumer reads: {unread}", style="red"))
    if status.consumers:
        parts.append(_consumers(status))
    if status.tables:
        parts.append(_tables(status))
    parts.extend(
        Text(f"  {move.partition}: {_slot(move.old)} → {move.new} ({move.phase})", style="cyan")
        for move in status.moves
    )
    if plan := status.plan:
        reasons = "; ".join(plan.reasons) or "no reason given"
        text = (
            f"  last plan {plan.age_s:,.0f} s ago: {reasons} → "
            f"{_count(plan.consumers, 'consumer')}, {_count(plan.moves, 'move')}, "
            f"R-score {plan.rscore:.2f}"
        )
        parts.append(Text(text))
    if status.proposal:
        parts.extend(_proposal(status.group, status.proposal))
    return parts


def _proposal(group: str, proposal: ProposalStatus) -> list[RenderableType]:
    if proposal.approved:
        note = "is approved"
    elif proposal.waits:
        note = f"waits: binwright approve {proposal.plan} --group {group}"
    else:
        note = "is only shown"
    reasons = "; ".join(proposal.reasons)
    head = (
        f"  plan {proposal.plan}, {proposal.age_s:,.0f} s old, {note}\n    {reasons} → "
        f"{_count(proposal.consumers, 'consumer')}, R-score {proposal.rscore:.2f}"
    )
    changes = [f"{each.partition}: {_slot(each.old)} → {each.new}" for each in proposal.changes]
    return [Text(head, style="yellow"), Text(f"    {_some(changes)}", style="yellow")]


def _consumers(status: Status) -> Table:
    names = ("consumer", "state", "load", "staging", "staged", "lag", "writes", "partitions")
    table = _columns(names, folded="partitions")
    for each in status.consumers:
        silence = f" for {each.silent_s:,.0f} s" if each.state == "silent" else ""
        lost = f", lost {each.lost_offsets:,} offsets" if each.lost_offsets else ""
        table.add_row(
            str(each.slot),
            each.state + silence + lost,
            f"{megabytes(each.load)}/s",
            f"{megabytes(each.staging)}/s",
            megabytes(each.staged_bytes),
            f"{each.lag:,}",
            _some(list(each.tables)),
            _some(list(map(str, each.partitions))),
        )
    return table


def _tables(status: Status) -> Table:
    names = ("table", "writer", "oldest row", "waiting", "lag", "rows", "commits", "state")
    table = _columns(names, folded="state")
    for each in status.tables:
        fault = f": {each.fault}" if each.fault else ""
        table.add_row(
            each.topic,
            _slot(each.writer),
            f"{each.age_s:,.1f} s" if each.age_s else "",
            megabytes(each.pending_bytes),
            f"{each.lag:,}",
            f"{each.rows:,}",
            f"{each.commits:,}",
            Text(f"{each.state}{fault}", style=TABLE_COLOURS[each.state]),
        )
    return table


def _columns(names: Sequence[str], *, folded: str) -> Table:
    """Return an empty table; the column `folded` goes on in the next line."""
    table = Table(box=None, header_style="dim", padding=(0, 2))
    for name in names:
        justify: Literal["left", "right"] = "left" if name in TEXT_COLUMNS else "right"
        table.add_column(name, justify=justify, no_wrap=name != folded, overflow="fold")
    return table


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _slot(slot: int | None) -> str:
    return "none" if slot is None else str(slot)


def _some(names: list[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return " ".join(names[:most]) + more
