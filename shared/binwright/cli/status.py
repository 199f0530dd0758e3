"""`binwright status`: every group, from the topics alone, wherever this runs."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from binwright.cli.options import Bootstrap, settings_at
from binwright.cli.screen import TABLE_COLOURS, megabytes
from binwright.cli.work import run
from binwright.core import wire
from binwright.core.errors import TopicMissing, WorldError
from binwright.core.messages import Inbound, Measurement
from binwright.core.ports import Reader, Record
from binwright.core.selection import METADATA_SUFFIX
from binwright.lab.picture import Picture
from binwright.lab.status import ProposalStatus, Status, status
from binwright.shell.broker import Cluster
from binwright.shell.bus import KafkaBus
from binwright.shell.history import History
from binwright.shell.letters import INBOX, METRICS_PARTITION, Decoder
from binwright.shell.logs import configure
from binwright.shell.settings import Settings

RECENT = 500  # measurements: what was said lately of all topics
READ_S, REFRESH_S, CATCH_UP_S = 0.2, 1.0, 30.0
COLOURS = {
    "steady": "green",
    "moving": "cyan",
    "unwritten": "red",
    "refused": "red",
    "unread": "red",
    "silent": "red",
    "empty": "yellow",
}

WORDS = {"state", "partitions", "writes", "table"}  # columns; the others are numbers

Show = Callable[[Sequence[Status]], None]


@dataclass
class Followed:
    """One group, or (without a name) what the monitors say, up to where it was read."""

    reader: Reader
    end: int  # of the topic, when we came
    decoder: Decoder[Any]
    picture: Picture = field(default_factory=Picture)

    async def read(self, take: Callable[[Record, Any], None], *, whole: bool) -> None:
        """Take what is new; with `whole`, go on until all is read that was there when we came."""
        while True:
            for record, said in self.decoder.readable(await self.reader.read(READ_S)):
                take(record, said)
            if not whole or self.reader.position >= self.end:
                return

    def heard(self, at: Record, said: Inbound) -> None:
        """Take one message of the group."""
        self.picture.heard(at.offset, at.timestamp_ms, said)


@dataclass
class Look:
    """Where groups are looked for, and what is known of them."""

    settings: Settings
    groups: Collection[str]  # empty: whichever there are
    known: dict[str, Followed] = field(default_factory=dict)
    metrics: Followed | None = None

    async def run(self, show: Show, *, watch: bool) -> None:
        """Show every group once, or again and again until cancelled.

        Raises:
            WorldError: Kafka does not answer, or there is no group.
        """
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(KafkaBus(self.settings.kafka))
            try:
                async with asyncio.timeout(CATCH_UP_S):
                    await self._open(bus, stack)
                    await self._read(whole=True)
            except TimeoutError as exc:
                raise WorldError(f"the topics could not be read in {CATCH_UP_S:g} s") from exc
            show(self._found())
            while watch:
                await asyncio.sleep(REFRESH_S)
                await self._read(whole=False)
                show(self._found())

    async def _open(self, bus: KafkaBus, stack: AsyncExitStack) -> None:
        for group in self.groups or await _there(self.settings):
            topic = f"{group}{METADATA_SUFFIX}"
            if not await bus.partitions(topic):
                raise TopicMissing(f"there is no group {group} here: no topic {topic}")
            self.known[group] = await _follow_group(bus, stack, topic)
        if not self.known:
            raise TopicMissing(f"there is no group here: no topic named GROUP{METADATA_SUFFIX}")
        topic = self.settings.monitor.topic
        if await bus.partitions(topic):  # without a monitor there are no loads
            self.metrics = await _follow_metrics(bus, stack, topic)

    async def _read(self, *, whole: bool) -> None:
        reads = [f.read(f.heard, whole=whole) for f in self.known.values()]
        if self.metrics:
            reads.append(self.metrics.read(self._measured, whole=whole))
        await asyncio.gather(*reads)

    def _measured(self, _: Record, said: Measurement) -> None:
        for followed in self.known.values():
            followed.picture.measured(said)

    def _found(self) -> list[Status]:
        now_ms = time.time_ns() // 1_000_000
        found = []
        for group, followed in sorted(self.known.items()):
            own = self.settings.landed if group == self.settings.group else None
            found.append(status(group, followed.picture, now_ms, own))
        # Somebody else's topic may end in the same word.
        return [each for each in found if self.groups or each.state != "empty"]


async def _there(settings: Settings) -> list[str]:
    async with Cluster(settings.kafka) as cluster:
        names = (await cluster.topics(None)).leaders
    ours = (name for name in names if name.endswith(METADATA_SUFFIX))
    return sorted(name.removesuffix(METADATA_SUFFIX) for name in ours)


async def _follow_group(bus: KafkaBus, stack: AsyncExitStack, topic: str) -> Followed:
    end = await bus.end(topic, INBOX)
    reader = History(await bus.reader(topic, INBOX, 0), end)
    stack.push_async_callback(reader.close)
    return Followed(reader, end, Decoder(wire.decode_inbound))


async def _follow_metrics(bus: KafkaBus, stack: AsyncExitStack, topic: str) -> Followed:
    end = await bus.end(topic, METRICS_PARTITION)
    reader = await bus.reader(topic, METRICS_PARTITION, max(0, end - RECENT))
    stack.push_async_callback(reader.close)
    return Followed(reader, end, Decoder(wire.decode_measurement))


def draw(found: Sequence[Status]) -> RenderableType:
    """Return the page: for every group its state, consumers, tables, moves and last plan."""
    if not found:
        return Text("no group has spoken yet", style="yellow")
    return Group(*(part for each in found for part in _group(each)))


def _group(of: Status) -> list[RenderableType]:
    head = Text(of.group, style="bold")
    head.append(f"  {of.state}", style=COLOURS[of.state])
    head.append(
        f"  {_count(len(of.consumers), 'consumer')}, {_count(of.partitions, 'partition')}, "
        f"written {megabytes(of.load)}/s, staging {megabytes(of.staging)}/s, "
        f"lag {of.lag:,} records, oldest {of.age_s:.1f} s"
    )
    parts: list[RenderableType] = [head]
    if of.unread:
        parts.append(Text(f"  read by nobody: {_some(list(map(str, of.unread)))}", style="red"))
    if of.consumers:
        parts.append(_consumers(of))
    if of.tables:
        parts.append(_tables(of))
    parts.extend(
        Text(f"  {move.partition}: {_slot(move.old)} → {move.new} ({move.phase})", style="cyan")
        for move in of.moves
    )
    if of.plan:
        told = "; ".join(of.plan.reasons) or "no reason told"
        parts.append(
            Text(
                f"  last plan {of.plan.age_s:,.0f} s ago: {told} → "
                f"{_count(of.plan.consumers, 'consumer')}, {_count(of.plan.moves, 'move')}, "
                f"R-score {of.plan.rscore:.2f}"
            )
        )
    if of.proposal:
        parts.extend(_proposal(of.group, of.proposal))
    return parts


def _proposal(group: str, of: ProposalStatus) -> list[RenderableType]:
    if of.approved:
        how = "is approved"
    elif of.waits:
        how = f"waits: binwright approve {of.plan} --group {group}"
    else:
        how = "is only shown"
    told = (
        f"  plan {of.plan}, {of.age_s:,.0f} s old, {how}\n    {'; '.join(of.reasons)} → "
        f"{_count(of.consumers, 'consumer')}, R-score {of.rscore:.2f}"
    )
    changes = [f"{each.partition}: {_slot(each.old)} → {each.new}" for each in of.changes]
    return [Text(told, style="yellow"), Text(f"    {_some(changes)}", style="yellow")]


def _consumers(of: Status) -> Table:
    names = ("consumer", "state", "load", "staging", "staged", "lag", "writes", "partitions")
    table = _columns(names, folded="partitions")
    for each in of.consumers:
        quiet = f" for {each.silent_s:,.0f} s" if each.state == "silent" else ""
        lost = f", lost {each.lost_offsets:,} offsets" if each.lost_offsets else ""
        table.add_row(
            str(each.slot),
            each.state + quiet + lost,
            f"{megabytes(each.load)}/s",
            f"{megabytes(each.staging)}/s",
            megabytes(each.staged_bytes),
            f"{each.lag:,}",
            _some(list(each.tables)),
            _some(list(map(str, each.partitions))),
        )
    return table


def _tables(of: Status) -> Table:
    names = ("table", "writer", "oldest row", "waiting", "lag", "rows", "commits", "state")
    table = _columns(names, folded="state")
    for each in of.tables:
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
        justify: Literal["left", "right"] = "left" if name in WORDS else "right"
        table.add_column(name, justify=justify, no_wrap=name != folded, overflow="fold")
    return table


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _slot(slot: int | None) -> str:
    return "nobody" if slot is None else str(slot)


def _some(names: list[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return " ".join(names[:most]) + more


def command(
    *,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="Only this group; may be given again.")
    ] = None,
    bootstrap_servers: Bootstrap = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C.")] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs; with --watch a line a time.")
    ] = False,
) -> None:
    """Show every group: state, consumers, tables, lag, moves in flight, last plan and proposal."""
    configure("error", "console")
    console = Console(soft_wrap=True)
    look = Look(settings_at(bootstrap_servers), tuple(group or ()))
    if json_:
        raise typer.Exit(run(lambda: look.run(_json(indent=None if watch else 2), watch=watch)))
    if not (watch and console.is_terminal):
        raise typer.Exit(run(lambda: look.run(lambda f: console.print(draw(f)), watch=watch)))
    with Live(console=console, auto_refresh=False, screen=True) as live:
        code = run(lambda: look.run(lambda f: live.update(draw(f), refresh=True), watch=True))
    raise typer.Exit(code)


def _json(indent: int | None) -> Show:
    def show(found: Sequence[Status]) -> None:
        sys.stdout.write(json.dumps([each.facts() for each in found], indent=indent) + "\n")
        sys.stdout.flush()

    return show
