"""Kafka's own file of a placement, as `kafka-reassign-partitions` reads and writes it.

`{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}`. Kafka's
tools ignore the key `binwright`, which says what was planned and why.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from binwright.balancer.ports import Replicas, Targets
from binwright.protocol.errors import PlacementError
from binwright.protocol.model import TopicPartition

VERSION = 1
KEY = "binwright"


def encode(targets: Mapping[TopicPartition, Replicas], notes: Any = None) -> str:
    """Return the file: one line for each partition, in the order in which they are to move."""
    rows = [
        {"topic": p.topic, "partition": p.partition, "replicas": list(replicas)}
        for p, replicas in targets.items()
    ]
    lines = ",\n".join(json.dumps(row) for row in rows)
    tail = "" if notes is None else f',\n"{KEY}": {json.dumps(notes)}'
    return f'{{"version": {VERSION},\n"partitions": [\n{lines}\n]{tail}}}\n'


def decode(text: bytes | str) -> dict[TopicPartition, Replicas]:
    """Read a file, in its order; raise `PlacementError` naming what is wrong with it."""
    try:
        document = orjson.loads(text)
    except ValueError as exc:
        raise PlacementError(f"not JSON: {exc}") from exc
    match document:
        case {"version": 1, "partitions": [*rows]}:
            return _targets(rows)
    raise PlacementError('expected {"version": 1, "partitions": [...]}')


def _targets(rows: Iterable[object]) -> dict[TopicPartition, Replicas]:
    targets: dict[TopicPartition, Replicas] = {}
    for number, row in enumerate(rows, 1):
        match row:
            case {"topic": str(topic), "partition": int(index), "replicas": [*brokers]} if (
                brokers and all(isinstance(broker, int) for broker in brokers)
            ):
                partition = TopicPartition(topic, index)
            case _:
                raise PlacementError(
                    f"partition {number} of the file: expected a topic, a partition and replicas"
                )
        if partition in targets:
            raise PlacementError(f"{partition} is named twice")
        targets[partition] = tuple(brokers)
    return targets


def read(path: Path) -> dict[TopicPartition, Replicas]:
    """Read a file; raise `PlacementError` naming it."""
    try:
        return decode(path.read_bytes())
    except (OSError, PlacementError) as exc:
        raise PlacementError(f"{path}: {exc}") from exc


def write(path: Path, targets: Targets, notes: Any = None) -> None:
    """Write a file; raise `PlacementError` if it cannot be written."""
    try:
        path.write_text(encode(targets, notes))
    except OSError as exc:
        raise PlacementError(str(exc)) from exc
