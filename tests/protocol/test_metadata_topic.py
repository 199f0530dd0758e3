"""A metadata topic that loses records is refused, or warned about."""

from binwright.protocol.metadata_topic import refusal, weaknesses
from binwright.protocol.ports.kafka import TopicDescription


def described(replicas: int = 3, brokers: int = 3, **config: str) -> TopicDescription:
    named = {name.replace("_", "."): value for name, value in config.items()}
    return TopicDescription(named, replicas, brokers)


def test_a_topic_that_deletes_by_age_is_refused() -> None:
    assert refusal("g.metadata", described(cleanup_policy="compact")) == ""
    assert refusal("g.metadata", described()) == ""
    refused = refusal("g.metadata", described(cleanup_policy="compact,delete"))
    assert refused.startswith("topic g.metadata has cleanup.policy=compact,delete")


def test_few_replicas_and_unclean_elections_are_weaknesses() -> None:
    assert list(weaknesses(described(unclean_leader_election_enable="false"))) == []
    assert list(weaknesses(described(replicas=1, brokers=1))) == []
    (unclean, replicas) = weaknesses(
        described(replicas=1, brokers=2, unclean_leader_election_enable="true")
    )
    assert unclean.startswith("unclean.leader.election.enable=true")
    assert replicas == "1 replicas on 2 brokers: want 3"
