"""Plans of scaled groups, published through a connection that is opened for the first of them."""

import asyncio
from contextlib import AsyncExitStack
from typing import Self

from binwright.kafka.client import ClusterClient, client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.own_topics import ensure_own
from binwright.protocol.group_plans import GroupPlan
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.plans_topic import PLANS_CONFIG, PLANS_PARTITIONS, last_plans, publish_plan
from binwright.scaler.rebalance_request import request_assignment, request_rebalance
from binwright.scaler.settings import ScalerSettings


class KafkaPlans:
    """Fits `assigning.Plans`. An async context manager.

    To publish takes rights that the scaler of groups that others assign has no use for.
    """

    def __init__(self, kafka: KafkaSettings, scaler: ScalerSettings) -> None:
        """Publish to the topic that these settings name."""
        self.valid_s = scaler.plans_valid_s
        self._kafka, self._topic = kafka, scaler.plans_topic
        self._stack = AsyncExitStack()
        self._bus: KafkaControlTopics | None = None
        self._opening = asyncio.Lock()
        self._is_ensured = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _opened(self) -> KafkaControlTopics:
        """Return the connection, with the topic there.

        Raises:
            BrokerUnavailable: Kafka does not answer, or refuses.
            ForeignTopic: There is a topic of this name that binwright did not make.
        """
        async with self._opening:
            if self._bus is None:
                bus = KafkaControlTopics(self._kafka)
                self._bus = await self._stack.enter_async_context(bus)
            if not self._is_ensured:
                await ensure_own(self._bus, self._topic, PLANS_PARTITIONS, PLANS_CONFIG)
                self._is_ensured = True
            return self._bus

    async def publish(self, plan: GroupPlan) -> None:
        """Fit `Plans.publish`.

        Raises:
            BrokerUnavailable: Not confirmed in time.
            RecordTooLarge: The group has too many partitions for one record.
        """
        await publish_plan(await self._opened(), self._topic, plan)

    async def last(self, group: str) -> GroupPlan | None:
        """Fit `Plans.last`; raise `BrokerUnavailable`."""
        return (await last_plans(await self._opened(), self._topic, [group])).get(group)

    async def rebalance(self, group: str, protocol: str, topic: str) -> None:
        """Fit `Plans.rebalance`; raise `BrokerUnavailable`."""
        await request_rebalance(client_options(self._kafka), group, protocol, topic)

    async def request_assignment(self, group: str) -> None:
        """Fit `Plans.request_assignment`; raise `BrokerUnavailable`."""
        async with ClusterClient(self._kafka) as cluster:
            await request_assignment(cluster, group)
