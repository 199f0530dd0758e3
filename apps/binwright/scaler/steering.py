"""Steering as a process: `binwright steer`, or `python -m binwright.scaler.steering`."""

import asyncio
import sys
from collections.abc import Sequence

from binwright.kafka.client import ClusterClient, client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import lead_in_turn
from binwright.kafka.own_topics import ensure_own
from binwright.protocol.errors import SettingsError
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.selection import CONTROLLERS_SUFFIX
from binwright.runtime.health import Health, serve_health
from binwright.runtime.serve import run_service
from binwright.scaler.decide.bin_pack import Algorithm1, Algorithm2
from binwright.scaler.decide.policy import ReplicaCapacity
from binwright.scaler.decide.publication import PlanPublisher, Rebalance
from binwright.scaler.decide.steering_policies import LeastLoaded, SteeringPolicy, StickyEven
from binwright.scaler.ends import TopicEnds
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.plans_topic import PLANS_CONFIG, PLANS_PARTITIONS, last_plans
from binwright.scaler.rebalance_request import request_rebalance
from binwright.scaler.settings import ScalerProgramSettings, SteeredGroupSettings
from binwright.scaler.steered_group import SteeredGroup


def steering_policy(group: SteeredGroupSettings) -> SteeringPolicy:
    """Return the policy that these settings name."""
    capacity = ReplicaCapacity(rate=group.records_per_s, sla_s=group.sla_s)
    match group.policy:
        case "sticky":
            return StickyEven()
        case "least-loaded":
            return LeastLoaded(algorithm=Algorithm1(capacity=capacity))
        case "least-loaded-lag":
            return LeastLoaded(algorithm=Algorithm2(capacity=capacity, rebalance_s=group.pause_s))


def publisher(group: SteeredGroupSettings, valid_s: float, last: GroupPlan | None) -> PlanPublisher:
    """Return what decides on the plans of a group with these settings.

    Args:
        group: Its settings.
        valid_s: How long a plan is in force.
        last: The plan that was published last.
    """
    return PlanPublisher(
        capacity=ReplicaCapacity(rate=group.records_per_s, sla_s=group.sla_s),
        rebalance=Rebalance(
            pause_s=group.pause_s, payback_s=group.payback_s, cooldown_s=group.cooldown_s
        ),
        valid_s=valid_s,
        plan=last,
    )


async def _lead(
    settings: ScalerProgramSettings, bus: KafkaControlTopics, cluster: ClusterClient, health: Health
) -> None:
    """Steer all groups of the settings, until cancelled."""
    steering, options = settings.steering, client_options(settings.kafka)

    async def rebalance(group: str, protocol: str, topic: str) -> None:
        await request_rebalance(options, group, protocol, topic)

    published = await last_plans(bus, steering.topic, steering.groups)
    steered = [
        SteeredGroup(
            name=name,
            policy=steering_policy(group),
            publisher=publisher(group, steering.valid_s, published.get(name)),
            bus=bus,
            topic=steering.topic,
            groups=ConsumerGroups(cluster),  # each group its own: a late one delays no other
            ends=TopicEnds(cluster, None),
            request_rebalance=rebalance,
            commit_interval_s=group.commit_interval_s,
        )
        for name, group in steering.groups.items()
    ]

    async def steer_one(group: SteeredGroup) -> None:
        with health.progress(f"steering {group.name}") as beat:
            await group.run(steering.interval_s, beat)

    with health.collecting(lambda: [s for each in steered for s in each.metrics.samples()]):
        async with asyncio.TaskGroup() as tasks:
            for each in steered:
                tasks.create_task(steer_one(each))


async def steer(settings: ScalerProgramSettings) -> None:
    """Steer the groups of `steering.groups`, or stand by, until cancelled.

    Raises:
        SettingsError: No group is named.
        BrokerUnavailable: Kafka cannot be reached at the start.
    """
    if not settings.steering.groups:
        raise SettingsError("steering.groups: name a consumer group in a table of this section")
    async with (
        serve_health(settings.health, settings.kafka.ssl_certificate_file) as health,
        KafkaControlTopics(settings.kafka) as bus,
        ClusterClient(settings.kafka) as cluster,
    ):
        topic = settings.steering.topic
        await ensure_own(bus, topic, PLANS_PARTITIONS, PLANS_CONFIG)

        async def lead() -> None:
            await _lead(settings, bus, cluster, health)

        await lead_in_turn(settings.kafka, health, topic, topic + CONTROLLERS_SUFFIX, lead)


def main(arguments: Sequence[str] | None = None) -> int:
    """Steer with the settings of the file and the environment."""
    return run_service("scaler.steering", __doc__, steer, ScalerProgramSettings, arguments)


if __name__ == "__main__":
    sys.exit(main())
