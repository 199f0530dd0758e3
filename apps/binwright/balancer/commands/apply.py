"""`binwright brokers apply` and `cancel`: carry out a plan, or take back what is under way."""

from pathlib import Path
from typing import Annotated

import typer

from binwright.balancer import plan_file
from binwright.balancer.admin_client import AdminClient
from binwright.balancer.decide.reassignment import ClusterObservation, CopyLimits, NextActions
from binwright.balancer.decide.throttles import Copy
from binwright.balancer.executor import (
    FETCH_BACKOFF,
    Executor,
    check,
    read_throttles,
    slow_followers,
    take_back,
)
from binwright.balancer.probe import producer_probe
from binwright.balancer.settings import BalancerProgramSettings
from binwright.cli.options import Bootstrap, program_settings_at
from binwright.cli.runner import run_for_result
from binwright.cli.terminal import Console
from binwright.protocol.model import TopicPartition

DEFAULTS = CopyLimits()
PAUSED_SHARE = 0.1

PlanFile = Annotated[
    Path, typer.Argument(help="Plan of `plan`, `drain` or kafka-reassign-partitions.")
]


SHOWN = 4
"""Copies that a line names."""


def apply(
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

    Ctrl-C takes back what is being copied; what is in place stays. No throttle of ours is left.
    """
    settings, targets = (
        program_settings_at(BalancerProgramSettings, bootstrap_servers),
        plan_file.read(file),
    )
    limits = CopyLimits(
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
            throttles = await check(
                brokers, targets, replication_may_change=allow_replication_change
            )
            for text in throttles.foreign_limits():
                console.print(f"a limit that is not ours counts as well: {text}", highlight=False)
            if dry_run:
                console.print(f"{len(targets)} partitions; the plan is safe, and nothing is moved")
                return
            if slow := await slow_followers(brokers):
                console.print(
                    f"{FETCH_BACKOFF} of brokers {', '.join(map(str, slow))} is long: consumers "
                    "may pause for seconds while leaders move; 100 is better"
                )
            lines = ProgressLines(console)
            async with producer_probe(settings.kafka, targets, wanted=probe) as measured:
                run = Executor(brokers, targets, limits, probe=measured, on_decision=lines.show)
                await run.run()
            console.print(f"{lines.in_place(len(targets))}; no throttle of ours is left")

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
    settings = program_settings_at(BalancerProgramSettings, bootstrap_servers)
    targets = None if file is None else plan_file.read(file)
    console = Console(soft_wrap=True)

    async def work() -> None:
        async with AdminClient(settings.kafka) as brokers:
            count = await take_back(brokers, targets)
            left = await read_throttles(brokers, await brokers.state())
        console.print(f"{count} reassignments taken back; no throttle of ours is left")
        for text in left.foreign_limits():
            console.print(f"a limit that is not ours stays: {text}", highlight=False)

    run_for_result(work)  # stopped by a signal it is no success


class ProgressLines:
    """Prints how far a run is, when that changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""
        self._done = 0

    def in_place(self, planned: int) -> str:
        """Return how many partitions of a plan are in place at the end, and how many are gone."""
        gone = planned - self._done
        deleted = f", {gone} were deleted meanwhile" if gone else ""
        return f"{self._done} partitions are in place{deleted}"

    def show(self, decided: NextActions, seen: ClusterObservation) -> None:
        """Print a line, unless it is the last one again."""
        self._done = decided.progress.done
        text = line(decided, seen)
        if text != self._last:
            self._console.print(text, markup=False, highlight=False)
            self._last = text


def line(decided: NextActions, seen: ClusterObservation) -> str:
    """Return how far a run is: in place, copying, waiting."""
    progress = decided.progress
    parts = [f"{progress.done} of {progress.total} partitions in place"]
    if progress.copying:
        first = ", ".join(_copied(copy, seen) for copy in progress.copying[:SHOWN])
        parts.append(f"{len(progress.copying)} being copied: {first}")
    if decided.elect:
        parts.append(f"{len(decided.elect)} leaders move")
    if seen.stripped:
        parts.append(
            "another operator took our throttles off "
            f"{', '.join(seen.stripped)}: what is copied is limited again"
        )
    if decided.pauses:
        parts.append(f"paused: {'; '.join(decided.pauses)}")
    return "; ".join(parts)


def _copied(copy: Copy, seen: ClusterObservation) -> str:
    """Return which partition goes where, and the share that is there."""
    whole = max((_held(seen, broker, copy.partition) for broker in copy.sources), default=0)
    there = min((_held(seen, broker, copy.partition) for broker in copy.added), default=0)
    share = f" {100 * there / whole:.0f} %" if whole else ""
    return f"{copy.partition} → {', '.join(map(str, copy.added))}{share}"


def _held(seen: ClusterObservation, broker: int, partition: TopicPartition) -> int:
    disk = seen.disks.get(broker)
    return 0 if disk is None else disk.sizes.get(partition, 0)
