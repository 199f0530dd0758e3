"""`binwright brokers apply` and `cancel`: carry out a plan, or take back what is under way."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binwright.balancer import plan_file
from binwright.balancer.admin.client import AdminClient
from binwright.balancer.admin.probe import producer_probe
from binwright.balancer.commands.progress import ProgressLines
from binwright.balancer.decide.reassignment.machine import Limits
from binwright.balancer.executor import FETCH_BACKOFF, Executor, check, slow_followers, take_back
from binwright.cli.options import Bootstrap, settings_at
from binwright.cli.runner import run_for_result

DEFAULTS = Limits()
PAUSED_SHARE = 0.1

PlanFile = Annotated[
    Path, typer.Argument(help="Of `plan` or `drain`, or of kafka-reassign-partitions.")
]


def apply(  # noqa: PLR0913 - one parameter for each option
    file: PlanFile,
    *,
    bootstrap_servers: Bootstrap = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the plan against the cluster; move nothing.")
    ] = False,
    throttle: Annotated[
        int,
        typer.Option(
            min=0, help="Bytes/s that copies may use of each broker, in and out; 0: unlimited."
        ),
    ] = DEFAULTS.rate or 0,
    copies: Annotated[
        int, typer.Option(min=1, help="Partitions that a broker sends or receives at once.")
    ] = DEFAULTS.copies,
    leaders: Annotated[
        int, typer.Option(min=1, help="Leaders that move at once.")
    ] = DEFAULTS.leaders,
    reserve: Annotated[
        int, typer.Option(min=0, help="Bytes that copies leave free on each broker.")
    ] = DEFAULTS.reserve_bytes,
    hourly: Annotated[
        int | None,
        typer.Option("--bytes-per-hour", min=1, help="Bytes that this run may copy in any hour."),
    ] = None,
    probe: Annotated[
        bool,
        typer.Option(
            help="Write to a topic of its own to see whether producers wait, and pause if they do."
        ),
    ] = True,
    allow_replication_change: Annotated[
        bool,
        typer.Option(
            "--allow-replication-change", help="The plan may change the number of replicas."
        ),
    ] = False,
) -> None:
    """Carry out a plan in small steps; start it again to continue one that was killed.

    Ctrl-C takes back what is being copied; what is in place stays. No throttle is left.
    """
    settings, targets = settings_at(bootstrap_servers), plan_file.read(file)
    limits = Limits(
        rate=throttle or None,
        paused_rate=round(throttle * PAUSED_SHARE),
        copies=copies,
        leaders=leaders,
        reserve_bytes=reserve,
        hourly_bytes=hourly,
    )
    console = Console(soft_wrap=True)

    async def work() -> None:
        async with AdminClient(settings.kafka) as brokers:
            await check(brokers, targets, replication_may_change=allow_replication_change)
            if dry_run:
                console.print(f"{len(targets)} partitions; the plan is safe, and nothing is moved")
                return
            if slow := await slow_followers(brokers):
                console.print(
                    f"{FETCH_BACKOFF} of brokers {', '.join(map(str, slow))} is long: consumers "
                    "may pause for seconds while leaders move; 100 is better"
                )
            lines = ProgressLines(console)
            async with producer_probe(settings.kafka, targets, wanted=probe) as found:
                await Executor(brokers, targets, limits, probe=found, on_decision=lines.show).run()
            console.print(f"{len(targets)} partitions are in place; no throttle is left")

    run_for_result(work)  # stopped by a signal it is no success


def cancel(
    file: Annotated[
        Path | None, typer.Argument(help="The plan, if it ran with other tools or older ones.")
    ] = None,
    *,
    bootstrap_servers: Bootstrap = None,
) -> None:
    """Take back what an `apply` has under way, and remove its throttles; also of a killed one.

    What is under way is known by the throttles that `apply` leaves on topics. End a running `apply`
    first: it would go on.
    """
    settings = settings_at(bootstrap_servers)
    targets = None if file is None else plan_file.read(file)
    console = Console(soft_wrap=True)

    async def work() -> None:
        async with AdminClient(settings.kafka) as brokers:
            count = await take_back(brokers, targets)
        console.print(f"{count} reassignments taken back; no throttle is left")

    run_for_result(work)  # stopped by a signal it is no success
