"""What is wrong with a group's metadata or commands topic, which may have been created by hand."""

from collections.abc import Iterator

from binwright.protocol.ports.kafka import TopicDescription

POLICY, UNCLEAN = "cleanup.policy", "unclean.leader.election.enable"

REPLICAS = 3
"""Replicas of topics that binwright creates, if there are as many brokers."""


def refusal(topic: str, facts: TopicDescription) -> str:
    """Return why the topic cannot be used, and what to do; "" if it can."""
    policy = facts.config.get(POLICY, "")
    if "delete" not in policy:
        return ""
    return (
        f"topic {topic} has {POLICY}={policy}: it is somebody else's, or Kafka would delete "
        "records that binwright needs. If it is binwright's, set it to compact: "
        "kafka-configs.sh --alter --entity-type topics --entity-name "
        f"{topic} --add-config {POLICY}=compact"
    )


def weaknesses(facts: TopicDescription) -> Iterator[str]:
    """Yield how a failed broker may lose records of the topic."""
    if facts.config.get(UNCLEAN) == "true":
        yield f"{UNCLEAN}=true: a failed broker may lose records"
    if facts.replicas < min(REPLICAS, facts.brokers):
        yield f"{facts.replicas} replicas on {facts.brokers} brokers: want {REPLICAS}"
