"""Checks that a group's metadata topic is configured so that it loses no record."""

import structlog

from binwright.kafka.topics import REPLICAS
from binwright.protocol.errors import UserError
from binwright.protocol.ports.kafka import ControlTopics

log = structlog.get_logger()

POLICY, UNCLEAN = "cleanup.policy", "unclean.leader.election.enable"


async def check_metadata_topic(bus: ControlTopics, topic: str) -> None:
    """Refuse a topic whose records are deleted by age; warn where a failed broker may lose some.

    The topic may have been created by hand, with Kafka's defaults.

    Raises:
        UserError: Kafka would delete the Hello of a consumer that has run for long.
        BrokerUnavailable: No broker replies.
    """
    facts = await bus.describe(topic, [POLICY, UNCLEAN])
    policy = facts.config.get(POLICY, "")
    if "delete" in policy:
        raise UserError(
            f"topic {topic} has {POLICY}={policy}: Kafka would delete records that tell which "
            f"consumers run. Set it to compact: kafka-configs.sh --alter --entity-type topics "
            f"--entity-name {topic} --add-config {POLICY}=compact"
        )
    if facts.config.get(UNCLEAN) == "true":
        log.warning(
            "topic.unsafe", topic=topic, reason=f"{UNCLEAN}=true: a failed broker may lose records"
        )
    if facts.replicas < min(REPLICAS, facts.brokers):
        log.warning(
            "topic.unsafe",
            topic=topic,
            reason=f"{facts.replicas} replicas on {facts.brokers} brokers: want {REPLICAS}",
        )
