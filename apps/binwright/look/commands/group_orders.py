"""The commands of `binwright group`: each gives an order, or lists those in force."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from binwright.cli.options import Bootstrap, Json, settings_at
from binwright.cli.options import Group as GroupOption
from binwright.cli.runner import run_for_result
from binwright.cli.terminal import Console, print_json
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.commands.give_order import (
    OrderOptions,
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
from binwright.protocol.model import Slot
from binwright.protocol.orders import (
    MOST_CONSUMERS,
    REASON_LENGTH,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    ScaleOrder,
    describe,
)
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings

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


def _begin(
    *,
    reason: Reason,
    until: Until = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> OrderOptions:
    """Have the options of a command that begins something."""
    return OrderOptions(group, bootstrap_servers, timeout, reason, until)


def _end(
    *,
    reason: Reason = "",
    group: GroupOption = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Seconds = KAFKA_S,
) -> OrderOptions:
    """Have the options of a command that ends something."""
    return OrderOptions(group, bootstrap_servers, timeout, reason)


def _gives(
    options: Callable[..., OrderOptions],
) -> Callable[[Callable[..., GroupOrder]], Callable[..., None]]:
    """Return a decorator that makes a command of what makes an order, with these options.

    What makes it has the group as it is and who gives it, then the command's own arguments.
    """

    def command_of(make: Callable[..., GroupOrder]) -> Callable[..., None]:
        _, _, *own = inspect.signature(make).parameters.values()
        shared = inspect.signature(options).parameters.values()

        def command(**values: Any) -> None:
            given = options(**{one.name: values[one.name] for one in shared})
            settings = settings_at(given.servers)
            name = given.group or settings.group
            who = signature(given, wall_ms())  # first: a bad option needs no Kafka
            connect = partial(KafkaControlTopics, settings.kafka)
            wanted = partial(make, who=who, **{one.name: values[one.name] for one in own})
            order = run_for_result(
                lambda: give_order(connect, settings, name, wanted, given.timeout_s)
            )
            text = f"{describe(order)}; `binwright status --group {name}` shows what it holds back"
            Console(soft_wrap=True, highlight=False).print(Text(text))

        command.__name__, command.__doc__ = make.__name__, make.__doc__
        # Typer reads the parameters of a command from these two.
        parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in (*own, *shared)]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return command_of


@_gives(_begin)
def freeze(_: Status, who: Signature) -> GroupOrder:
    """Move nothing but what has no living reader, until it is unfrozen or a time."""
    return FreezeOrder(frozen=True, **who)


@_gives(_end)
def unfreeze(_: Status, who: Signature) -> GroupOrder:
    """End a freeze; frozen hours of the settings go on."""
    return FreezeOrder(frozen=False, **who)


@_gives(_begin)
def pin(seen: Status, who: Signature, pinned: Pinned, consumer: Consumer) -> GroupOrder:
    """Have one consumer alone read a partition or a topic; it is started if it does not run."""
    return pin_order(seen, who, pinned, consumer)


@_gives(_end)
def unpin(seen: Status, who: Signature, pinned: Pinned) -> GroupOrder:
    """End a pin; the partition may be gone by now."""
    return unpin_order(seen, who, pinned)


@_gives(_begin)
def cordon(_: Status, who: Signature, consumer: Consumer) -> GroupOrder:
    """Give a consumer nothing more; it keeps what it reads."""
    return CordonOrder(slot=Slot(consumer), state="cordoned", **who)


@_gives(_begin)
def drain(_: Status, who: Signature, consumer: Consumer) -> GroupOrder:
    """Move all that a consumer has elsewhere, end it, and do not use its number."""
    return CordonOrder(slot=Slot(consumer), state="drained", **who)


@_gives(_end)
def uncordon(_: Status, who: Signature, consumer: Consumer) -> GroupOrder:
    """Use a cordoned or drained consumer again."""
    return CordonOrder(slot=Slot(consumer), state="open", **who)


@_gives(_begin)
def scale(
    _: Status,
    who: Signature,
    consumers: Annotated[
        int, typer.Argument(help="How many consumers are to read.", min=1, max=MOST_CONSUMERS)
    ],
) -> GroupOrder:
    """Have so many consumers read, whatever the load needs."""
    return ScaleOrder(consumers=consumers, **who)


@_gives(_end)
def unscale(_: Status, who: Signature) -> GroupOrder:
    """Have the number of consumers follow the load again."""
    return ScaleOrder(consumers=None, **who)


@_gives(_begin)
def adopt(
    seen: Status,
    who: Signature,
    proposal: Annotated[
        int, typer.Argument(help="Its number, as `binwright status` shows it.", min=0)
    ],
) -> GroupOrder:
    """Give a setting of the controller the value that `binwright shadow own` proposes.

    It ends when the settings give another value than the one that it replaces.
    """
    return adopt_order(seen, who, proposal)


@_gives(_end)
def unadopt(
    _: Status,
    who: Signature,
    setting: Annotated[str, typer.Argument(help="packing, or replan_interval_s.")],
) -> GroupOrder:
    """Give a setting the value of the settings file again."""
    return unadopt_order(who, setting)


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
        listed = {"orders": seen.to_json()["orders"], "held": list(seen.held)}
        print_json(listed)
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
