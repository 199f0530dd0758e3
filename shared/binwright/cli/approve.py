"""`binwright approve`: let a plan that waits go ahead, by a word on the group's own topic."""

import asyncio
import os
import socket
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.options import Bootstrap, settings_at
from binwright.cli.work import run
from binwright.core import wire
from binwright.core.errors import TopicMissing, UserError, WorldError
from binwright.core.messages import Accepted, Approved, Withdrawn
from binwright.core.ports import Reader
from binwright.core.selection import METADATA_SUFFIX
from binwright.lab.picture import Picture, Waiting
from binwright.shell.bus import KafkaBus
from binwright.shell.history import History
from binwright.shell.letters import INBOX, Decoder, post
from binwright.shell.logs import configure
from binwright.shell.settings import Settings

READ_S = 0.5


async def approve(settings: Settings, group: str, number: int, patience_s: float) -> None:
    """Approve plan `number` of `group`, and wait until a controller has taken it up.

    Raises:
        UserError: It is not the plan that waits.
        WorldError: There is no such group, Kafka does not answer, or no controller does.
    """
    topic = f"{group}{METADATA_SUFFIX}"
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(KafkaBus(settings.kafka))
        if not await bus.partitions(topic):
            raise TopicMissing(f"there is no group {group} here: no topic {topic}")
        end = await bus.end(topic, INBOX)
        reader = History(await bus.reader(topic, INBOX, 0), end)
        stack.push_async_callback(reader.close)
        try:
            async with asyncio.timeout(patience_s):
                _judge(group, number, await _waiting(reader, end))
                said = Approved(plan=number, by=_who())
                await post(bus, topic, INBOX, said)
                await _taken_up(reader, number)
        except TimeoutError as exc:
            raise WorldError(
                f"no controller of group {group} has taken plan {number} up in {patience_s:g} s: "
                "does one run, and does the monitor measure?"
            ) from exc


def _who() -> str:
    """Return who asks, for people; in a container a user may have no name."""
    return f"{os.environ.get('USER') or os.getuid()}@{socket.gethostname()}"


async def _waiting(reader: Reader, end: int) -> Waiting | None:
    """Return what waits at the end of what was there when we came."""
    picture, decoder = Picture(), Decoder(wire.decode_inbound)
    while reader.position < end:
        for record, message in decoder.readable(await reader.read(READ_S)):
            picture.heard(record.offset, record.timestamp_ms, message)
    return picture.waiting


def _judge(group: str, number: int, waiting: Waiting | None) -> None:
    if waiting is None:
        raise UserError(f"no plan of group {group} waits")
    if waiting.number != number:
        raise UserError(f"plan {number} of group {group} does not wait; plan {waiting.number} does")
    if not waiting.plan.waits:
        raise UserError(f"group {group} only observes: its controller's mode is not `approve`")


async def _taken_up(reader: Reader, number: int) -> None:
    decoder = Decoder(wire.decode_inbound)
    while True:
        for _, message in decoder.readable(await reader.read(READ_S)):
            match message:
                case Accepted(plan=plan) if plan == number:
                    return
                case Withdrawn(plan=plan, reason=reason) if plan == number:
                    raise UserError(
                        f"plan {number} is out of date: {reason}. See `binwright status` for what "
                        "takes its place"
                    )
                case _:
                    pass


def command(
    plan: Annotated[int, typer.Argument(help="Its number, as `binwright status` shows it.", min=0)],
    *,
    group: Annotated[
        str | None, typer.Option(help="Whose plan; unset: the settings' group.")
    ] = None,
    bootstrap_servers: Bootstrap = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds to wait for a controller to take it up.")
    ] = 60.0,
) -> None:
    """Let a plan that waits (controller.mode "approve") go ahead: exactly this one, as shown."""
    configure("error", "console")
    settings = settings_at(bootstrap_servers)
    chosen = group or settings.group
    code = run(lambda: approve(settings, chosen, plan, timeout))
    if code == 0:
        Console().print(f"plan {plan} of group {chosen} goes ahead")
    raise typer.Exit(code)
