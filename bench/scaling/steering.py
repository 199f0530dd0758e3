"""How the bench publishes plans and has a group rebalance: as the product does."""

from dataclasses import dataclass

from binwright.kafka.client import client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.group_plans import GroupPlan
from binwright.runtime.settings import KafkaSettings
from binwright.scaler.plans_topic import PLANS_TOPIC, publish_plan
from binwright.scaler.rebalance_request import request_rebalance

PROTOCOL = "binwright"


@dataclass(frozen=True, slots=True)
class Steering:
    """Plans through one bus."""

    kafka: KafkaSettings
    bus: KafkaControlTopics

    async def publish(self, plan: GroupPlan) -> None:
        await publish_plan(self.bus, PLANS_TOPIC, plan)

    async def rebalance(self, group: str, topic: str) -> None:
        await request_rebalance(client_options(self.kafka), group, PROTOCOL, topic)
