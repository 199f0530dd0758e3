"""`binwright approve`: approve a waiting plan, by a message on the group's metadata topic."""

import asyncio
import os
import socket
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.options import CONTROLLER_S, Bootstrap, ControllerSeconds, settings_at
from binwright.cli.runner import run
from binwright.kafka.control_records import CONTROLLER_PARTITION, Decoder
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.protocol import wire
from binwright.protocol.errors import ExternalError, TopicMissing, UserError
from binwright.protocol.messages import Accepted, Approved, Withdrawn
from binwright.protocol.ports.kafka import Reader
from binwright.protocol.selection import METADATA_SUFFIX
from binwright.runtime.settings import Settings
from binwright.views.group_view import GroupView, Proposal
from binwright.views.topic_readers import read_history

READ_S = 0.5


async def approve(settings: Settings, group: str, number: int, timeout_s: float) -> None:
    """Approve plan `number` of `group`, and wait until a controller accepts it.

    Raises:
        UserError: Another plan waits, or none; or the plan is out of date by now.
        ExternalError: There is no such group, or neither Kafka nor a controller answers in time.
    """
    topic = f"{group}{METADATA_SUFFIX}"
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(KafkaControlTopics(settings.kafka))
        if not await bus.partitions(topic):
            raise TopicMissing(f"there is no group {group} here: no topic {topic}")
        reader, end = await read_history(bus, topic)
        stack.push_async_callback(reader.close)
        try:
            async with asyncio.timeout(timeout_s):
                _check(group, number, await _proposal(reader, end))
                message = Approved(plan=number, by=user_name())
                await publish_message(bus, topic, CONTROLLER_PARTITION, message)
                await _wait_until_accepted(reader, number)
        except TimeoutError as exc:
            raise ExternalError(
                f"no controller of group {group} has accepted plan {number} in {timeout_s:g} s: "
                "does one run, and does the monitor measure?"
            ) from exc


def user_name() -> str:
    """Return the name of the user, to be shown; in a container a user may have none."""
    return f"{os.environ.get('USER') or os.getuid()}@{socket.gethostname()}"


async def _proposal(reader: Reader, end: int) -> Proposal | None:
    """Return the plan that waits as of offset `end`."""
    view, decoder = GroupView(), Decoder(wire.decode_inbound, history_end=end)
    while reader.position < end:
        for record, message in decoder.decode(await reader.read(READ_S)):
            view.apply(record.offset, record.timestamp_ms, message)
    return view.proposal


def _check(group: str, number: int, waiting: Proposal | None) -> None:
    if waiting is None:
        raise UserError(f"no plan of group {group} waits")
    if waiting.number != number:
        raise UserError(f"plan {number} of group {group} does not wait; plan {waiting.number} does")
    if not waiting.plan.waits:
        raise UserError(f"group {group} only observes: its controller's mode is not `approve`")


async def _wait_until_accepted(reader: Reader, number: int) -> None:
    decoder = Decoder(wire.decode_inbound)
    while True:
        for _, message in decoder.decode(await reader.read(READ_S)):
            match message:
                case Accepted(plan=plan) if plan == number:
                    return
                case Withdrawn(plan=plan, reason=reason) if plan == number:
                    raise UserError(
                        f"plan {number} is out of date: {reason}. "
                        "See `binwright status` for the plan that replaces it"
                    )
                case _:
                    pass


def command(
    plan: Annotated[int, typer.Argument(help="Its number, as `binwright status` shows it.", min=0)],
    *,
    group: Annotated[
        str | None, typer.Option(help="Group of the plan; unset: the settings' group.")
    ] = None,
    bootstrap_servers: Bootstrap = None,
    timeout: ControllerSeconds = CONTROLLER_S,
) -> None:
    """Approve a plan that waits (controller.mode "approve"): exactly this one, as shown."""
    settings = settings_at(bootstrap_servers)
    chosen = group or settings.group
    code = run(lambda: approve(settings, chosen, plan, timeout))
    if code == 0:
        Console().print(f"plan {plan} of group {chosen} goes ahead")
    raise typer.Exit(code)
