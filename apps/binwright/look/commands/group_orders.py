"""The commands of `binwright group`: each gives an order, or lists those in force."""

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from binwright.cli.options import Bootstrap, Json, settings_at
from binwright.cli.options import Group as GroupOption
from binwright.cli.runner import run_for_result
from binwright.cli.terminal import Console
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.commands.give_order import (
    Given,
    Signature,
    adopt_order,
    give_order,
    pin_order,
    signature,
    unadopt_order,
    unpin_order,
)
from binwright.look.follower import read_group
from binwright.look.order_text import order_text
from binwright.look.status import Status, status
from binwright.protocol.group_orders import (
    MOST_CONSUMERS,
    REASON_LENGTH,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    ScaleOrder,
    describe,
)
from binwright.protocol.model import Slot
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings import Settings

KAFKA_S = 60.0

Reason = Annotated[
    str,
    typer.Option(
        "--reason", help=f"Why, for those who look at it; {REASON_LENGTH} characters at most."
    ),
]
Until = Annotated[
    str,
    typer.Option(
        "--until", help="When it ends by itself: 30m, 2h, 1d, 18:00 (UTC) or 2026-11-26T18:00."
    ),
]
Seconds = Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for Kafka.")]
Consumer = Annotated[int, typer.Argument(help="The consumer's number.", min=0, max=2**31 - 2)]
Pinned = Annotated[
    str, typer.Argument(help="A partition, as orders-3, or a topic: all of it without an own pin.")
]


def freeze(
    *,
    reason: Reason,
    until: Until = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Move nothing but what has no living reader, until it is unfrozen or a time."""
    given = Given(group, bootstrap_servers, timeout, reason, until)
    _give(given, lambda _, who: FreezeOrder(frozen=True, **who))


def unfreeze(
    *,
    reason: Reason = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """End a freeze; frozen hours of the settings go on."""
    given = Given(group, bootstrap_servers, timeout, reason)
    _give(given, lambda _, who: FreezeOrder(frozen=False, **who))


def pin(
    pinned: Pinned,
    consumer: Consumer,
    *,
    reason: Reason,
    until: Until = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Have one consumer alone read a partition or a topic; it is started if it does not run."""
    given = Given(group, bootstrap_servers, timeout, reason, until)
    _give(given, lambda seen, who: pin_order(seen, who, pinned, consumer))


def unpin(
    pinned: Pinned,
    *,
    reason: Reason = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """End a pin; the partition may be gone by now."""
    given = Given(group, bootstrap_servers, timeout, reason)
    _give(given, lambda seen, who: unpin_order(seen, who, pinned))


def cordon(
    consumer: Consumer,
    *,
    reason: Reason,
    until: Until = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Give a consumer nothing more; it keeps what it reads."""
    given = Given(group, bootstrap_servers, timeout, reason, until)
    _give(
        given,
        lambda _, who: CordonOrder(slot=Slot(consumer), state="cordoned", **who),
    )


def drain(
    consumer: Consumer,
    *,
    reason: Reason,
    until: Until = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Move all that a consumer has elsewhere, end it, and do not use its number."""
    given = Given(group, bootstrap_servers, timeout, reason, until)
    _give(
        given,
        lambda _, who: CordonOrder(slot=Slot(consumer), state="drained", **who),
    )


def uncordon(
    consumer: Consumer,
    *,
    reason: Reason = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Use a cordoned or drained consumer again."""
    given = Given(group, bootstrap_servers, timeout, reason)
    _give(
        given,
        lambda _, who: CordonOrder(slot=Slot(consumer), state="open", **who),
    )


def scale(
    consumers: Annotated[
        int, typer.Argument(help="How many consumers are to read.", min=1, max=MOST_CONSUMERS)
    ],
    *,
    reason: Reason,
    until: Until = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Have so many consumers read, whatever the load needs."""
    given = Given(group, bootstrap_servers, timeout, reason, until)
    _give(given, lambda _, who: ScaleOrder(consumers=consumers, **who))


def unscale(
    *,
    reason: Reason = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Have the number of consumers follow the load again."""
    given = Given(group, bootstrap_servers, timeout, reason)
    _give(given, lambda _, who: ScaleOrder(consumers=None, **who))


def adopt(
    proposal: Annotated[
        int, typer.Argument(help="Its number, as `binwright status` shows it.", min=0)
    ],
    *,
    reason: Reason,
    until: Until = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Give a setting of the controller the value that `binwright savings` proposes.

    It ends when the settings give another value than the one that it replaces.
    """
    given = Given(group, bootstrap_servers, timeout, reason, until)
    _give(given, lambda seen, who: adopt_order(seen, who, proposal))


def unadopt(
    setting: Annotated[str, typer.Argument(help="packing, or replan_interval_s.")],
    *,
    reason: Reason = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> None:
    """Give a setting the value of the settings file again."""
    given = Given(group, bootstrap_servers, timeout, reason)
    _give(given, lambda _, who: unadopt_order(who, setting))


def _give(given: Given, make: Callable[[Status, Signature], GroupOrder]) -> None:
    settings = settings_at(given.servers)
    name = given.group or settings.group
    who = signature(given, wall_ms())  # first: a bad option needs no Kafka
    connect = partial(KafkaControlTopics, settings.kafka)
    order = run_for_result(
        lambda: give_order(connect, settings, name, lambda seen: make(seen, who), given.timeout_s)
    )
    text = f"{describe(order)}; `binwright status --group {name}` shows what it holds back"
    Console(soft_wrap=True, highlight=False).print(Text(text))


def orders(
    *,
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    json_: Json = False,
) -> None:
    """List the orders in force, and what the controller does not do because of them."""
    settings = settings_at(bootstrap_servers)
    seen = run_for_result(lambda: _seen(settings, group or settings.group))
    if json_:
        found = {"orders": seen.to_json()["orders"], "held": list(seen.held)}
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    console = Console(soft_wrap=True, highlight=False)
    for line in [*map(order_text, seen.orders), *(f"held: {reason}" for reason in seen.held)]:
        console.print(Text(line))
    if not seen.orders and not seen.held:
        console.print(Text("no order is in force, and nothing is held back"))


async def _seen(settings: Settings, group: str) -> Status:
    """Return the group's status; raise `ExternalError` without Kafka or without the group."""
    async with KafkaControlTopics(settings.kafka, read_only=True) as bus:
        return status(group, await read_group(bus, group), wall_ms())
