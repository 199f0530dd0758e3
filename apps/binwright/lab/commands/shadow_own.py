"""`binwright shadow own`: what the load of one of binwright's groups would have cost otherwise."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from binwright.cli.options import Bootstrap, Group, Json, settings_at
from binwright.cli.runner import progress_console, run_for_result
from binwright.cli.terminal import Console
from binwright.kafka.control_records import METRICS_PARTITION, Decoder
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.commands import options
from binwright.lab.commands.options import progress_bar
from binwright.lab.shadow.own import GroupLoad, runs, savings
from binwright.lab.simulation.run import run_all
from binwright.lab.simulation.scenario import Timing
from binwright.lab.simulation.sources import Passes
from binwright.look.follower import read_group
from binwright.look.group_view import GroupView
from binwright.look.orders_topic import publish_order
from binwright.look.savings_text import savings_text, share_text
from binwright.protocol import wire
from binwright.protocol.errors import ExternalError, StreamError
from binwright.protocol.metrics import decode_measurement
from binwright.protocol.model import PerSlot
from binwright.protocol.orders import Savings, SimulatedCost
from binwright.protocol.selection import Selection
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings

HOUR_MS = 3_600_000
READ_S, READ_ALL_S = 1.0, 1_200.0
RULES = {"binwright": "binwright, as it is set", "peak": "peak", "lag": "KEDA's rule"}
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PastLoad:
    """Reads what a group's monitor measured.

    Attributes:
        settings: Of the group, or of another one.
        group: Its name.
        hours: How long ago it begins.
        interval_s: The least time between two measurements that are taken.
        log: Is given the progress.
    """

    settings: Settings
    group: str
    hours: float
    interval_s: float
    log: Log

    async def read(self, bus: KafkaControlTopics) -> GroupLoad:
        """Return it, with what the group's consumers sustain.

        Raises:
            ExternalError: Nothing was measured, or Kafka does not answer.
        """
        view = await read_group(bus, self.group)
        topics, limits = self._topics(view), self._limits(view)
        from_ms = wall_ms() - round(self.hours * HOUR_MS)
        topic, passes = self.settings.monitor.topic, Passes(self.interval_s)
        first = await bus.offset_at(topic, METRICS_PARTITION, from_ms)
        end = await bus.end(topic, METRICS_PARTITION)
        self.log(f"reading {end - first:,} measurements from {topic}")
        reader = await bus.reader(topic, METRICS_PARTITION, first)
        decoder = Decoder(decode_measurement)
        measured: list[int] = []
        try:
            async with asyncio.timeout(READ_ALL_S):
                while reader.position < end:
                    for _, measurement in decoder.decode(await reader.read(READ_S)):
                        if topics.includes(measurement.topic):
                            passes.add(measurement)
                            measured = [*measured[:1], measurement.at_ms]
        except TimeoutError as exc:
            raise ExternalError(f"{topic} could not be read in {READ_ALL_S:g} s") from exc
        finally:
            await reader.close()
        try:
            recorded = passes.finish()
        except StreamError as exc:
            raise ExternalError(
                f"{topic} has no measurements of the topics of group {self.group} in the last "
                f"{self.hours:g} hours"
            ) from exc
        orders = view.orders.in_force(wall_ms())
        return GroupLoad(recorded, limits, measured[0], measured[-1], orders)

    @property
    def _is_own(self) -> bool:
        return self.group == self.settings.group

    def _limits(self, view: GroupView) -> PerSlot | None:
        """Return what the controller takes consumers to sustain, unless the settings give it."""
        return view.limits if view.limits_measured or not self._is_own else None

    def _topics(self, view: GroupView) -> Selection:
        """Return the topics by the settings, or those of the last plan of another group."""
        own = self.settings.landed_topics if self._is_own else None
        planned = {p.topic for p in view.plan.targets} if view.plan else set()
        return own or Selection(frozenset(planned))


def own(
    *,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    hours: Annotated[
        float, typer.Option(min=0.01, max=168, help="How much of the past is simulated.")
    ] = 24.0,
    interval: Annotated[
        float, typer.Option(min=0, help="Seconds between the measurements that are taken.")
    ] = 5.0,
    sla: options.Sla = 5.0,
    start_up: options.StartUp = options.TIMING.start_up_s,
    hand_over: options.HandOver = options.TIMING.hand_over_s,
    publish: Annotated[
        bool, typer.Option("--publish", help="Let status, explain and page show it.")
    ] = False,
    jobs: options.Jobs = options.CORES,
    json_: Json = False,
) -> None:
    """Simulate the last day of one of binwright's groups: what its settings save, and what would.

    Beside them: consumers for the highest load all the time, KEDA's rule on lag, and settings that
    differ in one value.
    """
    settings = settings_at(bootstrap_servers)
    console, name = progress_console(json_=json_), group or settings.group
    timing = Timing(start_up_s=start_up, hand_over_s=hand_over)

    async def work() -> Savings:
        async with KafkaControlTopics(settings.kafka, read_only=not publish) as bus:
            load = await PastLoad(settings, name, hours, interval, console.log).read(bus)
            planned = runs(load, settings, timing, sla)
            with progress_bar(console) as progress:
                task = progress.add_task("simulations", total=len(planned))
                outcomes = await asyncio.to_thread(
                    run_all, planned, lambda _: progress.advance(task), jobs
                )
            costs = savings(load, settings, outcomes, sla)
            if publish:
                await publish_order(bus, name, costs)
            return costs

    costs = run_for_result(work)
    if json_:
        sys.stdout.write(wire.encode(costs).decode() + "\n")
    else:
        _print(name, costs)


def _print(group: str, costs: Savings) -> None:
    console = Console(highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"group {group}", title_justify="left")
    table.add_column("rule", no_wrap=True)
    for head in ("replica-minutes", f"within {costs.sla_s:g} s, %", "saved"):
        table.add_column(head, justify="right", no_wrap=True)
    for cost in (costs.own, *costs.others):
        table.add_row(RULES.get(cost.rule, cost.rule), *_figures(cost), _saved(costs.own, cost))
    console.print(table)
    for line in savings_text(costs, wall_ms()):
        console.print(line)


def _figures(cost: SimulatedCost) -> tuple[str, str]:
    return f"{cost.replica_minutes:,.1f}", f"{100 * cost.within_sla:.2f}"


def _saved(own: SimulatedCost, other: SimulatedCost) -> str:
    return "" if other is own else share_text(own, other).partition(" replica")[0]
