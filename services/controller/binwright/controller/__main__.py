"""The controller as a process: `python -m binwright.controller`."""

import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.group_context import GroupContext, group_context
from binwright.controller.leadership import Leadership
from binwright.controller.settings import ControllerProgramSettings
from binwright.fleets.process import process_fleet
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import lead_in_turn
from binwright.kafka.metrics_topic import Measurements, run_measurements
from binwright.kafka.own_topics import check_own, ensure_own
from binwright.protocol.ports.fleet import Fleet
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.selection import CONTROLLERS_SUFFIX
from binwright.runtime.health import Health, serve_health
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.serve import run_service
from binwright.runtime.traces import open_traces

GATHER_MS = 200
"""How long brokers gather records for a controller of many groups: fewer, larger fetches."""


@contextlib.asynccontextmanager
async def configured_fleet(
    settings: ControllerProgramSettings, health: Health
) -> AsyncIterator[Fleet]:
    """Give the fleet that the settings name; it is maintained meanwhile."""
    match settings.controller.fleet:
        case "fixed":
            yield FixedFleet(settings.controller.max_slots)
        case "process":
            fleet = process_fleet(settings)
            try:
                async with background_tasks(must_not_end(fleet.run())):
                    yield fleet  # its processes outlive us: data flows on while there is no leader
            finally:
                if settings.controller.processes_end_with_controller:
                    await fleet.close()
        case "kubernetes":
            # Importing its client takes a second and 45 MB.
            from binwright.controller.fleets.kubernetes.fleet import kubernetes_fleet  # noqa: PLC0415

            async with kubernetes_fleet(settings) as deployments:
                health.collectors.append(deployments.samples)
                yield deployments


@contextlib.asynccontextmanager
async def _leader(
    settings: ControllerProgramSettings,
    context: GroupContext,
    bus: ControlTopics,
    measurements: Measurements,
    health: Health,
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Give what a leader runs: one controller for the settings' group, or one per group object."""
    if settings.kubernetes.groups:
        from binwright.controller.group_objects.groups import kubernetes_groups  # noqa: PLC0415 - as above

        trace = context.trace
        async with kubernetes_groups(settings, bus, measurements, health, trace) as groups:
            health.collectors.append(groups.samples)
            yield groups.lead
        return
    async with configured_fleet(settings, health) as fleet:

        async def lead() -> None:
            try:
                await Leadership(bus, fleet, context, measurements, health=health).lead()
            finally:
                fleet.detach()  # or it would go on restarting what the next leader retires

        yield lead


async def control(settings: ControllerProgramSettings) -> None:
    """Lead, or stand by, until cancelled.

    Raises:
        UserError: The settings name a packing that does not exist, or topics that are others'.
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    context = group_context(settings)  # first: an unknown packing is reported before connecting
    async with (
        open_traces(settings.traces, "binwright-controller") as trace,
        serve_health(settings.health, settings.kafka.ssl_certificate_file) as health,
        KafkaControlTopics(
            settings.kafka, fetch_wait_ms=GATHER_MS * settings.kubernetes.groups
        ) as bus,
        run_measurements(bus, settings.monitor.topic) as measurements,
        _leader(settings, replace(context, trace=trace), bus, measurements, health) as lead,
    ):
        topic = settings.monitor.topic
        await ensure_own(bus, topic, 1, METRICS_CONFIG)
        await check_own(bus, settings.needs_topic)
        elected = settings.group + CONTROLLERS_SUFFIX
        await lead_in_turn(settings.kafka, health, topic, elected, lead)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller with the settings of the file and the environment."""
    return run_service("controller", __doc__, control, ControllerProgramSettings, arguments)


if __name__ == "__main__":
    sys.exit(main())
