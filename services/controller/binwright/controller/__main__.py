"""The controller as a process: `python -m binwright.controller`."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator

from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.fleets.process import ProcessFleet
from binwright.controller.lead import lead
from binwright.controller.steer import Controller, Realm
from binwright.core.group import Rules
from binwright.core.model import BytesPerSecond, Slot
from binwright.core.ports import Bus, Fleet
from binwright.lab.packings import packing
from binwright.shell.broker import client_options
from binwright.shell.bus import KafkaBus
from binwright.shell.letters import METRICS_CONFIG
from binwright.shell.run import meanwhile
from binwright.shell.serve import serve
from binwright.shell.settings import Settings

STALE_WINDOWS = 3


def rules(settings: Settings) -> Rules:
    """Return the machine's rules as the settings say them."""
    chosen = settings.controller
    return Rules(
        limit=BytesPerSecond(chosen.limit_bytes_per_s),
        capacity=BytesPerSecond(chosen.capacity),
        look_again_s=chosen.look_again_s,
        consumer_timeout_s=chosen.consumer_timeout_s,
        plan_timeout_s=chosen.plan_timeout_s,
        repeat_s=chosen.repeat_s,
        stale_s=STALE_WINDOWS * settings.monitor.window_s,
        max_slots=chosen.max_slots,
    )


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
async def _fleet(settings: Settings) -> AsyncIterator[Fleet]:
    match settings.controller.fleet:
        case "fixed":
            yield FixedFleet(settings.controller.max_slots)
        case "process":
            fleet = process_fleet(settings)
            async with meanwhile(fleet.run()):
                yield fleet  # its processes outlive us: data goes on while nobody leads
        case "kubernetes":
            # Its client takes a second and 45 MB: only for those who use it.
            from binwright.controller.deploy import kubernetes_fleet  # noqa: PLC0415

            async with kubernetes_fleet(settings) as deployments:
                yield deployments


async def _reign(bus: Bus, fleet: Fleet, realm: Realm) -> None:
    try:
        await Controller(bus, fleet, realm).reign()
    finally:
        fleet.rest()  # or we would go on repairing what our successor retires


async def control(settings: Settings) -> None:
    """Lead, or stand by, until cancelled.

    Raises:
        UserError: The settings name a packing that does not exist.
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    realm = Realm(
        metadata_topic=settings.metadata_topic,
        metrics_topic=settings.monitor.topic,
        rules=rules(settings),
        packing=packing(settings.controller.packing),
        topics=frozenset(settings.topics) or None,
    )
    async with KafkaBus(settings.kafka) as bus, _fleet(settings) as fleet:
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        await lead(
            client_options(settings.kafka),
            settings.monitor.topic,
            f"{settings.group}.controllers",
            lambda: _reign(bus, fleet, realm),
        )


def main() -> int:
    """Run the controller with the settings of the file and the environment."""
    return serve(control)


if __name__ == "__main__":
    sys.exit(main())
