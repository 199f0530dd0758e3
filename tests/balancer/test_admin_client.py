"""Requests to brokers, and what their replies are."""

import pytest

from binwright.balancer.admin_client import (
    BATCH,
    ElectLeaders,
    IncrementalAlterConfigs,
    _batches,
    _by_topic,
    _check,
    _partitions,
    _values,
)
from binwright.balancer.ports import ConfigResource, PartitionState
from binwright.protocol.errors import BrokerUnavailable, ReassignmentRefused
from binwright.protocol.model import TopicPartition

NO_ERROR, NOT_CONTROLLER, INVALID_REPLICA_ASSIGNMENT, UNKNOWN_TOPIC = 0, 41, 39, 3
STATE = PartitionState(2, (1, 2, 3), frozenset({2, 3}))


@pytest.mark.parametrize(
    "row",
    [
        (0, 7, 2, 3, 1, 2, 3, 2, 2, 3),  # decoded at once: a number of brokers, then the brokers
        (0, 7, 2, [1, 2, 3], [2, 3]),
    ],
)
def test_both_forms_of_a_row_are_read(row: tuple[object, ...]) -> None:
    found = dict(_partitions([(NO_ERROR, "orders", False, [row])]))
    assert found == {TopicPartition("orders", 7): STATE}


def test_a_partition_without_a_leader_has_none() -> None:
    ((_, state),) = _partitions([(NO_ERROR, "orders", False, [(0, 0, -1, [1], [])])])
    assert state.leader is None


def test_a_topic_that_is_being_deleted_is_left_out() -> None:
    assert not dict(_partitions([(UNKNOWN_TOPIC, "orders", False, [])]))


def test_values_of_a_broker_are_distinguished_by_their_source() -> None:
    """A value of the default of all brokers is listed there, once."""
    broker = ConfigResource("broker", "1")
    entries = [
        ("inherited", "3", False, 3, False, [("inherited", "3", 3), ("inherited", "4", 4)]),
        ("own", "2", False, 2, False, [("own", "2", 2), ("own", "5", 5)]),
        ("file", "4", True, 4, False, [("other.name", "9", 4), ("file", "4", 4)]),
        ("usual", "5", False, 5, False, None),
        ("empty", "", False, 2, False, []),
    ]
    assert _values(broker, entries) == {
        broker: {"own": "2", "usual": "5"},
        ConfigResource("broker", "1", is_static=True): {"inherited": "4", "file": "4"},
    }
    assert _values(broker, entries[:0]) == {broker: {}}
    default = ConfigResource("broker", "")
    assert _values(default, entries[:1]) == {default: {"inherited": "3"}}


def test_an_error_that_passes_is_tried_again() -> None:
    with pytest.raises(BrokerUnavailable, match="Kafka does not elect: NotController"):
        _check("elect", NOT_CONTROLLER, None)


def test_another_error_is_a_refusal_with_the_brokers_reason() -> None:
    with pytest.raises(ReassignmentRefused, match="broker 9 is unknown"):
        _check("reassign", INVALID_REPLICA_ASSIGNMENT, "broker 9 is unknown")


def test_no_error_is_none() -> None:
    _check("elect", NO_ERROR, None)


def test_partitions_are_sent_by_topic_and_in_batches() -> None:
    partitions = [TopicPartition("a", 1), TopicPartition("a", 0), TopicPartition("b", 2)]
    assert _by_topic(partitions) == {"a": [1, 0], "b": [2]}
    assert [len(batch) for batch in _batches(range(2 * BATCH + 1))] == [BATCH, BATCH, 1]


TEXT_A, TEXT_N, TEXT_V = "000161", "00016e", "000176"


def test_a_value_is_set() -> None:
    request = IncrementalAlterConfigs({(2, "a"): {"n": "v"}}).prepare({44: (0, 1)})
    assert request.encode().hex() == (
        "00000001" + "02" + TEXT_A + "00000001" + TEXT_N + "00" + TEXT_V + "00"
    )


def test_a_value_is_removed() -> None:
    request = IncrementalAlterConfigs({(4, ""): {"n": None}}).prepare({44: (0, 1)})
    assert request.encode().hex() == (
        "00000001" + "04" + "0000" + "00000001" + TEXT_N + "01" + "ffff" + "00"
    )


def test_first_replicas_are_elected() -> None:
    request = ElectLeaders({"a": [0, 7]}, 5).prepare({43: (0, 2)})
    assert request.encode().hex() == (
        "00" + "00000001" + TEXT_A + "00000002" + "00000000" + "00000007" + "00000005"
    )
