"""The balancer as a process: `python -m binwright.balancer`. Its leader watches the brokers."""

import sys
from collections.abc import Sequence

from binwright.balancer import description
from binwright.balancer.acting import Acting
from binwright.balancer.admin_client import AdminClient
from binwright.balancer.decide.reassignment import CopyLimits
from binwright.balancer.decide.thresholds import Thresholds
from binwright.balancer.plan_topic import PlanTopic
from binwright.balancer.planning import plan
from binwright.balancer.probe import producer_probe
from binwright.balancer.settings import BalancerProgramSettings
from binwright.balancer.snapshot import ClusterReader
from binwright.balancer.watch import BrokerWatch, Observing, Reaction
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import lead_in_turn
from binwright.kafka.own_topics import ensure_own
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.selection import BALANCERS_SUFFIX
from binwright.runtime.health import serve_health
from binwright.runtime.serve import run_service


def broker_watch(settings: BalancerProgramSettings, bus: ControlTopics) -> BrokerWatch:
    """Return the watch; `bus` has the topic of plans.

    Raises:
        SettingsError: `brokers.describe` names no file, or one with faults.
    """
    wanted = settings.brokers
    return BrokerWatch(
        read=ClusterReader(settings).read,
        plan=plan,
        wanted=description.read(wanted.describe),
        thresholds=Thresholds(
            imbalance=wanted.imbalance,
            within_days=wanted.within_days,
            least_network=wanted.least_network_bytes_per_s,
        ),
        interval_s=wanted.interval_s,
        reaction=_reaction(settings, bus),
    )


def _reaction(settings: BalancerProgramSettings, bus: ControlTopics) -> Reaction:
    wanted = settings.brokers
    if wanted.mode == "observe":
        return Observing()
    return Acting(
        PlanTopic(bus, wanted.topic),
        lambda: AdminClient(settings.kafka),
        group=settings.group,
        mode=wanted.mode,
        limits=CopyLimits(
            rate=wanted.throttle_bytes_per_s,
            paused_rate=wanted.throttle_bytes_per_s // 10,
            hourly_bytes=wanted.bytes_per_hour,
        ),
        probe=lambda targets: producer_probe(settings.kafka, targets, wanted=wanted.probe),
    )


async def balance(settings: BalancerProgramSettings) -> None:
    """Watch the brokers, or stand by, until cancelled.

    Raises:
        SettingsError: `brokers.describe` names no file, or one with faults.
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    async with (
        serve_health(settings.health, settings.kafka.ssl_certificate_file) as health,
        KafkaControlTopics(settings.kafka) as bus,
    ):
        watch = broker_watch(settings, bus)
        health.collectors.append(watch.samples)
        topic = settings.monitor.topic
        await ensure_own(bus, topic, 1, METRICS_CONFIG)
        await lead_in_turn(
            settings.kafka, health, topic, settings.group + BALANCERS_SUFFIX, watch.run
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the balancer with the settings of the file and the environment."""
    return run_service("balancer", __doc__, balance, BalancerProgramSettings, arguments)


if __name__ == "__main__":
    sys.exit(main())
