"""How the bench publishes plans and has a group rebalance: as the product does."""

from dataclasses import dataclass

from binwright.core.protocol.group_plans import GroupPlan
from binwright.kafka.bus import KafkaBus
from binwright.kafka.client import client_options
from binwright.kafka.groups.plans import PLANS_TOPIC, publish_plan
from binwright.kafka.groups.rebalance_request import request_rebalance
from binwright.runtime.settings import KafkaSettings

PROTOCOL = "binwright"


@dataclass(frozen=True, slots=True)
class Steering:
    """Plans through one bus."""

    kafka: KafkaSettings
    bus: KafkaBus

    async def publish(self, plan: GroupPlan) -> None:
        await publish_plan(self.bus, PLANS_TOPIC, plan)

    async def rebalance(self, group: str, topic: str) -> None:
        await request_rebalance(client_options(self.kafka), group, PROTOCOL, topic)
