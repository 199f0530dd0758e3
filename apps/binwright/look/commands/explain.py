"""`binwright explain`: why the group is as it is, what holds it, and what would change it."""

import re
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from binwright.cli.moments import is_of_today, parse_moment
from binwright.cli.options import Bootstrap, Group, Json, settings_at
from binwright.cli.runner import run
from binwright.cli.terminal import Console, print_json
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.stable_ends import stable_ends
from binwright.look.explain.answers import Explanation, FreshnessFacts, clock
from binwright.look.explain.answers import GroupFacts as SeenGroup
from binwright.look.explain.questions import answer
from binwright.look.follower import RECENT, read_group
from binwright.look.status import status
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.group_config import group_config

PAST_MEASUREMENTS = 20_000
"""Read for a moment in the past: hours of a few topics."""
HEADS = {
    "is": "is",
    "why": "why",
    "otherwise": "otherwise",
    "held": "held back by",
    "change": "would change it",
}
AGO = re.compile(r"(\d+)(s|m|h)")
DASHES = 2  # in a date alone


def command(
    what: Annotated[
        str,
        typer.Argument(
            help="A partition as orders-3, a consumer as 2, a table by its name, `plan` or "
            "`plan-NUMBER`; left out: the number of consumers."
        ),
    ] = "",
    *,
    group: Group = None,
    at: Annotated[
        str,
        typer.Option(
            help="At that time instead of now: 2026-11-26T14:02, 14:02:30 (today, UTC), or 10m for "
            "ten minutes ago. The topic keeps plans of ten minutes at least."
        ),
    ] = "",
    bootstrap_servers: Bootstrap = None,
    json_: Json = False,
) -> None:
    """Say why: why so many consumers, why a partition is there, why a table is late."""
    settings = settings_at(bootstrap_servers)
    now_ms = wall_ms()
    at_ms = moment(at, now_ms) if at else None

    async def work() -> None:
        seen = await _seen(settings, group or settings.group, at_ms)
        explanation = answer(seen, what)
        if json_:
            print_json(explanation.to_json())
        else:
            _print(explanation)

    raise typer.Exit(run(work))


def moment(text: str, now_ms: int) -> int:
    """Return a time as ms since 1970.

    Raises:
        UserError: It is no time, or in the future.
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    try:
        is_date = is_of_today(text) and text.count("-") == DASHES
        parsed = parse_moment(f"{text}T00" if is_date else text, now, AGO, sign=-1)
    except (ValueError, OverflowError) as exc:
        raise SettingsError(
            f"--at: {text!r} is no time: expected 2026-11-26T14:02, 14:02:30, or 10m"
        ) from exc
    if parsed > now:
        raise SettingsError(f"--at: {clock(int(parsed.timestamp() * 1000))} is to come")
    return int(parsed.timestamp() * 1000)


async def _seen(settings: Settings, name: str, at_ms: int | None) -> SeenGroup:
    """Return the group as its topics have it, now or at a time.

    Raises:
        ExternalError: Kafka does not answer, or there is no such group.
    """
    own = name == settings.group
    async with KafkaControlTopics(settings.kafka, read_only=True) as bus:
        view = await read_group(
            bus,
            name,
            settings.monitor.topic,
            until_ms=at_ms,
            measurements=RECENT if at_ms is None else PAST_MEASUREMENTS,
            config=group_config(settings) if own else None,
        )
    now_ms = wall_ms() if at_ms is None else at_ms
    shown = status(name, view, now_ms, settings.landed_topics if own else None)
    committed_only = not own or settings.consumer.isolation == "read_committed"
    behind = {
        TopicPartition(part.topic, part.partition)
        for table in shown.tables
        for part in table.partitions
        if part.lag and at_ms is None and committed_only
    }
    stable = await stable_ends(settings.kafka, behind)
    freshness = FreshnessFacts.of(settings) if own else FreshnessFacts()
    return SeenGroup(view, shown, now_ms, freshness, stable)


def _print(explanation: Explanation) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(Text(explanation.about, style="bold"))
    shown = ""
    for line in explanation.lines:
        head = HEADS[line.kind] if line.kind != shown else ""
        shown = line.kind
        console.print(Text(f"  {head:<17}", style="cyan") + Text(line.text))
