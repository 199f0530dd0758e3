"""`make bench NAME=scaling`: an SLA workload played to ordinary groups of consumers, as JSON.

Groups of Java consumers read one topic at the same time, each record takes them 5 ms. binwright
and KEDA's lag rule each scale two of them, in pairs of about equal SLA (see `foreseen`), and one
has a fixed size. A workload that is played faster has its own rates and quicker changes. Starting
a process and a rebalance take what they take, so all that scale have it harder than at the
workload's own pace, `--speed 1`.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from tests.integration.assignor.java_members import ASSIGNOR, build_programs, consumer_settings
from tests.integration.topics import create_topic

from bench import figures
from bench.scaling.foreseen import Foreseen, assigned_beside, chosen
from bench.scaling.live_group import LiveGroup
from bench.scaling.load import Load, faster
from bench.scaling.policies import CAPACITY, SERVICE_US, SLA_S, USUAL, LivePolicy, fixed
from bench.scaling.skew import skew
from binwright.kafka.client import ClusterClient
from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.lab.slo import workloads
from binwright.lab.slo.bounds import least_minutes
from binwright.local.kafka import run_broker
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import configure_logging
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.kafka_plans import KafkaPlans
from binwright.scaler.settings import ScalerSettings

log = structlog.get_logger()

Facts = dict[str, Any]
MINUTES, IN_TIME = "replica-minutes", "within the SLA, %"
READY_S = 60.0
DRAIN_S = 15.0
WORKLOADS = {
    "w1": (workloads.first, 2.5),
    "w1-skew": (lambda: workloads.skewed(workloads.first()), 2.5),
    "w2-skew": (lambda: workloads.skewed(workloads.second()), 20.0),
    "w2": (workloads.second, 20.0),
}
"""Each workload, and how many times as fast it is played."""


async def measure(name: str, speed: float, options: argparse.Namespace) -> Facts:
    """Play one workload to all groups at once; of its first `--seconds` if given."""
    found = WORKLOADS[name][0]()
    seconds = faster(found, speed)[: options.seconds]
    played = replace(found, events=tuple(map(round, seconds)))
    if options.assigned:
        foreseen = await asyncio.to_thread(
            assigned_beside, played, speed, options.share, options.lag
        )
    else:
        foreseen = await asyncio.to_thread(chosen, played, speed, USUAL, options.share)
    for each in foreseen:
        log.info("group.foreseen", group=each.setup.name, sla=each.sla, minutes=each.minutes)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="binwright-")))
        broker = await stack.enter_async_context(run_broker(directory / "broker"))
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        await create_topic(kafka, name, len(found.shares))
        programs = await build_programs(directory)
        cluster = await stack.enter_async_context(ClusterClient(kafka))
        plans = await stack.enter_async_context(KafkaPlans(kafka, ScalerSettings()))

        def group(one: LivePolicy) -> LiveGroup:
            settings = consumer_settings(kafka.bootstrap_servers, one.name)
            return LiveGroup(
                name=one.name,
                topic=name,
                partitions=len(found.shares),
                programs=programs,
                settings={**settings, "partition.assignment.strategy": one.assignor},
                cluster=cluster,
                policy=one.policy,
                interval_s=one.interval_s,
                service_us=SERVICE_US,
                sla_ms=round(1000 * SLA_S),
                plans=plans if one.assignor == ASSIGNOR else None,
            )

        contending = [one.setup for one in foreseen]
        if not options.assigned:
            contending.append(fixed(found.shares, max(seconds)))
        groups = [group(one) for one in contending]
        for one, live in zip(contending, groups, strict=True):
            await live.scale(one.first)
            live.steps = [0, 0]
        await _until_assigned(groups, len(found.shares))
        for live in groups:
            for replica in live.replicas:
                replica.began_s = loop_s()
        load = Load(found, seconds)
        await _played(groups, load, kafka.bootstrap_servers, name)
    return {
        "workload": found.name,
        "stand_in": found.is_stand_in,
        "speed": speed,
        "seconds": len(seconds),
        "sent": load.sent,
        "peak": round(max(seconds), 1),
        "groups": compared([live.result(load.sent) for live in groups], foreseen, played),
    }


def compared(results: list[Facts], foreseen: Sequence[Foreseen], played: RecordLoad) -> list[Facts]:
    """Return the results beside what was foreseen, the least minutes, and those of lag rules."""
    expected = {one.setup.name: one for one in foreseen}
    lag = {one["group"]: one[MINUTES] for one in results if one["group"].startswith("lag-")}
    for one in results:
        if known := expected.get(one["group"]):
            one["foreseen, %"], one["foreseen minutes"] = (
                round(known.sla, 1),
                round(known.minutes, 2),
            )
        else:
            one["foreseen, %"] = one["foreseen minutes"] = None
        one["least minutes"] = round(least_minutes(played, CAPACITY.rate * SLA_S, one[IN_TIME]), 2)
        for name, minutes in lag.items():
            one[f"minutes / {name}"] = round(one[MINUTES] / minutes, 2)
    return results


async def _until_assigned(groups: list[LiveGroup], partitions: int) -> None:
    async with asyncio.timeout(READY_S):
        while any(_read(live) < partitions for live in groups):  # noqa: ASYNC110 - processes
            await asyncio.sleep(0.1)


def _read(live: LiveGroup) -> int:
    return sum(len(one.member.owned) for one in live.replicas)


async def _played(groups: list[LiveGroup], load: Load, servers: str, topic: str) -> None:
    running = [asyncio.create_task(live.run()) for live in groups]
    playing = asyncio.create_task(load.play(servers, topic))
    try:
        done, _ = await asyncio.wait([playing, *running], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()  # a loop that ended has failed
        await _until_served(groups, load)
    finally:
        for task in (playing, *running):
            task.cancel()
        await asyncio.gather(playing, *running, return_exceptions=True)
        await asyncio.gather(*(live.stop() for live in groups))


async def _until_served(groups: list[LiveGroup], load: Load) -> None:
    """Wait until every group has served what was sent, for `DRAIN_S` at most."""

    def served(live: LiveGroup) -> int:
        return sum(one.member.served for one in [*live.replicas, *live.gone])

    end_s = loop_s() + DRAIN_S
    while loop_s() < end_s and any(served(g) < load.sent for g in groups):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*WORKLOADS, "skew"], nargs="*", default=["w1", "skew"])
    parser.add_argument("--speed", type=float, help="instead of the workload's own")
    parser.add_argument("--seconds", type=int, help="real seconds to play, from the beginning")
    parser.add_argument(
        "--share", type=float, default=0.95, help="of the records that binwright keeps in time"
    )
    parser.add_argument(
        "--assigned",
        action="store_true",
        help="a group that the scaler assigns, beside the lag rule at about as many minutes",
    )
    parser.add_argument(
        "--lag", type=float, nargs="+", default=(), help="thresholds of the lag rule beside it"
    )
    parser.add_argument("--log", default="warning")
    figures.add_option(parser)
    options = parser.parse_args()
    configure_logging(options.log, "console")
    facts: Facts = {}
    for name in options.only:
        if name == "skew":
            facts[name] = await skew()
        else:
            facts[name] = await measure(name, options.speed or WORKLOADS[name][1], options)
    figures.progress("scaling", facts, options.figures)


if __name__ == "__main__":
    asyncio.run(main())
