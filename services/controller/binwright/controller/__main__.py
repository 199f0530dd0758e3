"""The controller as a process: `python -m binwright.controller`."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.group_context import group_context
from binwright.controller.leader import Controller, GroupContext
from binwright.fleets.process import ProcessFleet
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import lead_in_turn
from binwright.kafka.metrics_topic import Measurements, run_measurements
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Fleet
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.health import Health, serve_health
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.serve import run_service
from binwright.runtime.settings import Settings

GATHER_MS = 200
"""How long brokers gather records for a controller of many groups: fewer, larger fetches."""

Lead = Callable[[], Awaitable[None]]


def consumer_command(settings: Settings, slot: Slot) -> tuple[str, ...]:
    """Return a consumer's command line; its instance tells its group from others."""
    instance = f"{settings.group}@{settings.kafka.bootstrap_servers}"
    module = "binwright.consumer"
    return (sys.executable, "-m", module, "--slot", str(slot), "--instance", instance)


def process_fleet(settings: Settings) -> ProcessFleet:
    """Return the fleet of child processes that these settings describe."""
    return ProcessFleet(
        command=lambda slot: consumer_command(settings, slot),
        max_slots=settings.controller.max_slots,
        environment=os.environ,
        logs=settings.controller.process_logs,
        grace_s=settings.consumer.drain_timeout_s + 10,
    )


@contextlib.asynccontextmanager
async def _fleet(settings: Settings, health: Health) -> AsyncIterator[Fleet]:
    match settings.controller.fleet:
        case "fixed":
            yield FixedFleet(settings.controller.max_slots)
        case "process":
            fleet = process_fleet(settings)
            async with background_tasks(must_not_end(fleet.run())):
                yield fleet  # its processes outlive us: data flows on while there is no leader
        case "docker":
            from binwright.controller.fleets.docker.setup import docker_fleet  # noqa: PLC0415 - as below

            async with docker_fleet(settings) as containers:
                health.collectors.append(containers.samples)
                yield containers
        case "kubernetes":
            # Importing its client takes a second and 45 MB.
            from binwright.controller.on_kubernetes import kubernetes_fleet  # noqa: PLC0415

            async with kubernetes_fleet(settings) as deployments:
                health.collectors.append(deployments.samples)
                yield deployments


def _watched(
    settings: Settings, bus: ControlTopics, health: Health
) -> Callable[[Lead], Awaitable[None]]:
    """Return what runs a leader's work: beside it the watch over the brokers, if that is on."""
    if settings.brokers.mode == "off":
        return lambda lead: lead()
    # Importing the planner takes a fifth of a second.
    from binwright.balancer.__main__ import broker_watch, run_watched  # noqa: PLC0415

    watch = broker_watch(settings, bus)
    health.collectors.append(watch.samples)
    return lambda lead: run_watched(watch, lead)


@contextlib.asynccontextmanager
async def _leader(
    settings: Settings,
    context: GroupContext,
    bus: ControlTopics,
    measurements: Measurements,
    health: Health,
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Give what a leader runs: one controller for the settings' group, or one per group object."""
    watched = _watched(settings, bus, health)
    if settings.kubernetes.groups:
        from binwright.controller.on_kubernetes import kubernetes_groups  # noqa: PLC0415 - as above

        async with kubernetes_groups(settings, bus, measurements) as groups:
            health.collectors.append(groups.samples)
            yield lambda: watched(groups.lead)
        return
    async with _fleet(settings, health) as fleet:

        async def lead() -> None:
            try:
                await watched(Controller(bus, fleet, context, measurements).lead)
            finally:
                fleet.detach()  # or it would go on restarting what the next leader retires

        yield lead


async def control(settings: Settings) -> None:
    """Lead, or stand by, until cancelled.

    Raises:
        UserError: The settings name a packing that does not exist.
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    context = group_context(settings)  # first: an unknown packing is reported before connecting
    async with (
        serve_health(settings.health) as health,
        KafkaControlTopics(
            settings.kafka, fetch_wait_ms=GATHER_MS * settings.kubernetes.groups
        ) as bus,
        run_measurements(bus, settings.monitor.topic) as measurements,
        _leader(settings, context, bus, measurements, health) as lead,
    ):
        topic = settings.monitor.topic
        await bus.ensure(topic, 1, METRICS_CONFIG)
        await lead_in_turn(settings.kafka, health, topic, f"{settings.group}.controllers", lead)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller with the settings of the file and the environment."""
    return run_service("controller", __doc__, control, arguments)


if __name__ == "__main__":
    sys.exit(main())
