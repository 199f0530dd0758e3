"""Kafka's own file of a placement."""

import json
from pathlib import Path

import pytest

from binwright.balancer import plan_file
from binwright.protocol.errors import PlacementError
from binwright.protocol.model import TopicPartition

TARGETS = {TopicPartition("orders", 1): (2, 3), TopicPartition("bills", 0): (1,)}


def test_a_file_holds_what_kafkas_tool_reads() -> None:
    assert json.loads(plan_file.encode(TARGETS)) == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 1, "replicas": [2, 3]},
            {"topic": "bills", "partition": 0, "replicas": [1]},
        ],
    }


def test_it_is_read_back_in_its_order() -> None:
    assert list(plan_file.decode(plan_file.encode(TARGETS, {"why": "x"})).items()) == [
        *TARGETS.items()
    ]


def test_directories_of_kafkas_tool_are_passed_over() -> None:
    text = (
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["any"]}]}'
    )
    assert plan_file.decode(text) == {TopicPartition("a", 0): (1,)}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "not JSON"),
        ("[]", 'expected {"version": 1'),
        ('{"version": 2, "partitions": []}', 'expected {"version": 1'),
        ('{"version": 1, "partitions": [{"topic": "a"}]}', "partition 1 of the file"),
        (
            '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": []}]}',
            "partition 1 of the file",
        ),
        (
            plan_file.encode(TARGETS).replace(
                '"bills", "partition": 0', '"orders", "partition": 1'
            ),
            "orders-1 is named twice",
        ),
    ],
)
def test_another_file_is_refused(text: str, fault: str) -> None:
    with pytest.raises(PlacementError, match=fault):
        plan_file.decode(text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlacementError, match="none"):
        plan_file.read(tmp_path / "none.json")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlacementError, match="missing"):
        plan_file.write(tmp_path / "missing" / "plan.json", TARGETS)
