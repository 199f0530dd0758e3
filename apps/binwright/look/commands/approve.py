"""`binwright approve`: approve a waiting plan, by a message on the group's orders topic."""

import asyncio
import os
import socket
from functools import partial
from typing import Annotated

import typer

from binwright.cli.options import CONTROLLER_S, Bootstrap, ControllerSeconds, Group, settings_at
from binwright.cli.runner import run
from binwright.cli.terminal import Console
from binwright.group.fold import StateRecord
from binwright.group.people import Proposal
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.follower import Connect, followed
from binwright.look.orders_topic import publish_order
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.metadata import Accepted, Withdrawn
from binwright.protocol.orders import Approved

READ_S = 0.5


async def approve(
    connect: Connect, group: str, number: int, timeout_s: float, by: str | None = None
) -> None:
    """Approve plan `number` of `group`, and wait until a controller accepts it.

    Args:
        connect: Opens the bus.
        group: Its name.
        number: The plan's.
        timeout_s: How long Kafka and a controller may take.
        by: Who approves, for people; None: the user.

    Raises:
        UserError: Another plan waits, or none; or the plan is out of date by now.
        ExternalError: There is no such group, or neither Kafka nor a controller answers in time.
    """
    decisions: list[Accepted | Withdrawn] = []

    def note(message: StateRecord) -> None:
        if isinstance(message, Accepted | Withdrawn) and message.plan == number:
            decisions.append(message)

    async with followed(connect, group, note) as (follower, view):
        try:
            async with asyncio.timeout(timeout_s):
                await follower.catch_up()
                _check(group, number, view.proposal)
                approved = Approved(plan=number, by=by or user_name())
                await publish_order(follower.bus, group, approved)
                while not decisions:
                    await follower.read(READ_S)
        except TimeoutError as exc:
            raise ExternalError(
                f"no controller of group {group} has accepted plan {number} in {timeout_s:g} s: "
                "does one run, and does the monitor measure?"
            ) from exc
    if isinstance(decisions[0], Withdrawn):
        raise UserError(
            f"plan {number} is out of date: {decisions[0].reason}. "
            "See `binwright status` for the plan that replaces it"
        )


def user_name() -> str:
    """Return the name of the user, to be shown; in a container a user may have none."""
    return f"{os.environ.get('USER') or os.getuid()}@{socket.gethostname()}"


def _check(group: str, number: int, waiting: Proposal | None) -> None:
    if waiting is None:
        raise UserError(f"no plan of group {group} waits")
    if waiting.number != number:
        raise UserError(f"plan {number} of group {group} does not wait; plan {waiting.number} does")
    if not waiting.plan.waits:
        raise UserError(f"group {group} only observes: its controller's mode is not `approve`")


def command(
    plan: Annotated[
        int, typer.Argument(help="Number of the plan, as `binwright status` shows it.", min=0)
    ],
    *,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    timeout: ControllerSeconds = CONTROLLER_S,
) -> None:
    """Approve a plan that waits (controller.mode "approve"): exactly this one, as shown."""
    settings = settings_at(bootstrap_servers)
    name = group or settings.group
    connect = partial(KafkaControlTopics, settings.kafka)
    code = run(lambda: approve(connect, name, plan, timeout))
    if code == 0:
        Console().print(f"plan {plan} of group {name} goes ahead")
    raise typer.Exit(code)
