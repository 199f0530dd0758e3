"""Records that are produced, and what of them has landed."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from deltalake import DeltaTable

from binwright.protocol.ports.kafka import Headers

LANDED_S = 300.0

Row = dict[str, Any]


Value = bytes | None | tuple[bytes | None, Headers]
"""A record's value, or that and its headers."""


async def produce(
    broker: str, topic: str, values: Sequence[Value], timestamp_ms: int | None = None
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for each in values:
            value, headers = each if isinstance(each, tuple) else (each, ())
            await producer.send_and_wait(
                topic, value, key=b"k", partition=0, headers=[*headers], timestamp_ms=timestamp_ms
            )


def rows(lake: Path, name: str) -> list[Row]:
    """Return a table's rows; none if there is no table yet."""
    if not any((lake / name / "_delta_log").glob("*.json")):
        return []
    return DeltaTable(str(lake / name)).to_pyarrow_table().to_pylist()


def in_order(found: list[Row]) -> list[Row]:
    return sorted(found, key=lambda row: row["_kafka"]["offset"])


def has_landed(lake: Path, name: str, count: int) -> bool:
    """Tell whether a table has so many rows."""
    return len(rows(lake, name)) == count


async def until(condition: Callable[[], bool], limit_s: float = LANDED_S) -> None:
    async with asyncio.timeout(limit_s):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - other processes work
            await asyncio.sleep(0.2)


def texts(logs: Path) -> list[str]:
    """Return what the logs in a directory hold."""
    return [file.read_text() for file in logs.glob("*.log")]
