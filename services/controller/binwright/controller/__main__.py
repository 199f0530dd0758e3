"""The controller as a process: `python -m binwright.controller`."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.fleets.process import ProcessFleet
from binwright.controller.lead import lead
from binwright.controller.measurements import Measurements, measuring
from binwright.controller.realm import realm
from binwright.controller.steer import Controller, Realm
from binwright.core.model import Slot
from binwright.core.ports import Bus, Fleet
from binwright.shell.broker import client_options
from binwright.shell.bus import KafkaBus
from binwright.shell.health import Health, served
from binwright.shell.letters import METRICS_CONFIG
from binwright.shell.run import endless, meanwhile
from binwright.shell.serve import parse, serve
from binwright.shell.settings import Settings

GATHER_MS = 200
"""Of a controller of many groups: what it hears comes so much later, and costs it a fraction."""


def consumer_command(settings: Settings, slot: Slot) -> tuple[str, ...]:
    """Return what runs as a slot; the realm tells our processes from another group's."""
    realm = f"{settings.group}@{settings.kafka.bootstrap_servers}"
    return (sys.executable, "-m", "binwright.consumer", "--slot", str(slot), "--realm", realm)


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
            async with meanwhile(endless(fleet.run())):
                yield fleet  # its processes outlive us: data goes on while nobody leads
        case "docker":
            from binwright.controller.docker.deploy import docker_fleet  # noqa: PLC0415 - as below

            async with docker_fleet(settings) as containers:
                health.measures.append(containers.samples)
                yield containers
        case "kubernetes":
            # Its client takes a second and 45 MB: only for those who use it.
            from binwright.controller.deploy import kubernetes_fleet  # noqa: PLC0415

            async with kubernetes_fleet(settings) as deployments:
                health.measures.append(deployments.samples)
                yield deployments


@contextlib.asynccontextmanager
async def _ruler(
    settings: Settings, ruled: Realm, bus: Bus, measurements: Measurements, health: Health
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Give what leading means: a reign over the settings' group, or over all group objects."""
    if settings.kubernetes.groups:
        from binwright.controller.deploy import kubernetes_groups  # noqa: PLC0415 - as above

        async with kubernetes_groups(settings, bus, measurements) as groups:
            health.measures.append(groups.samples)
            yield groups.rule
        return
    async with _fleet(settings, health) as fleet:

        async def reign() -> None:
            try:
                await Controller(bus, fleet, ruled, measurements).reign()
            finally:
                fleet.rest()  # or we would go on repairing what our successor retires

        yield reign


async def control(settings: Settings) -> None:
    """Lead, or stand by, until cancelled.

    Raises:
        UserError: The settings name a packing that does not exist.
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    ruled = realm(settings)  # a packing that does not exist is told before anybody is asked
    async with (
        served(settings.health) as health,
        KafkaBus(settings.kafka, gather_ms=GATHER_MS * settings.kubernetes.groups) as bus,
        measuring(bus, settings.monitor.topic) as measurements,
        _ruler(settings, ruled, bus, measurements, health) as reign,
    ):
        health.ready = lambda: "" if health.began("membership") else "has not joined the others"
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        await lead(
            client_options(settings.kafka),
            settings.monitor.topic,
            f"{settings.group}.controllers",
            reign,
            health.beat,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller with the settings of the file and the environment."""
    parse("controller", __doc__, arguments)
    return serve(control)


if __name__ == "__main__":
    sys.exit(main())
