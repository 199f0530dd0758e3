"""The leader's watch over Kafka's brokers, as the settings have it."""

from collections.abc import Awaitable, Callable

from binwright.balancer import description
from binwright.balancer.acting import Acting
from binwright.balancer.admin.client import AdminClient
from binwright.balancer.admin.probe import producer_probe
from binwright.balancer.decide.lines import Lines
from binwright.balancer.decide.reassignment.machine import Limits
from binwright.balancer.exact.planner import plan
from binwright.balancer.live import read_cluster
from binwright.balancer.observing import Observing
from binwright.balancer.plan_topic import PlanTopic
from binwright.balancer.snapshot import MEASURE_S
from binwright.balancer.watch import BrokerWatch, Reaction
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.run import background_tasks, must_not_end, root_cause
from binwright.runtime.settings import Settings

FIRST_S = 60.0
"""Before a new leader that only observes looks: a plan costs a core, and it has a group to take."""


def broker_watch(settings: Settings, bus: ControlTopics) -> BrokerWatch:
    """Return the watch; `bus` has the topic of plans.

    Raises:
        SettingsError: `brokers.describe` names no file, or one with faults.
    """
    wanted = settings.brokers
    return BrokerWatch(
        read=lambda: read_cluster(settings, None, MEASURE_S),
        plan=plan,
        wanted=description.read(wanted.describe),
        lines=Lines(
            imbalance=wanted.imbalance,
            within_days=wanted.within_days,
            least_network=wanted.least_network_bytes_per_s,
        ),
        interval_s=wanted.interval_s,
        reaction=_reaction(settings, bus),
        first_s=min(FIRST_S, wanted.interval_s) if wanted.mode == "observe" else 0.0,
    )


def _reaction(settings: Settings, bus: ControlTopics) -> Reaction:
    wanted = settings.brokers
    if wanted.mode in ("off", "observe"):
        return Observing()
    return Acting(
        PlanTopic(bus, wanted.topic),
        lambda: AdminClient(settings.kafka),
        group=settings.group,
        mode="approve" if wanted.mode == "approve" else "act",
        limits=Limits(
            rate=wanted.throttle_bytes_per_s,
            paused_rate=wanted.throttle_bytes_per_s // 10,
            hourly_bytes=wanted.bytes_per_hour,
        ),
        probe=lambda targets: producer_probe(settings.kafka, targets, wanted=wanted.probe),
    )


async def run_watched(watch: BrokerWatch, lead: Callable[[], Awaitable[None]]) -> None:
    """Lead, and watch meanwhile; raises what `lead` raises, not a group of it."""
    try:
        async with background_tasks(must_not_end(watch.run())):
            await lead()
    except BaseExceptionGroup as errors:
        raise root_cause(errors) from None
