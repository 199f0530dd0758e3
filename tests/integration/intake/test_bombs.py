"""Batches that inflate to much memory, or are damaged, as a broker returns them."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import NewTopic
from tests.integration.intake.data_topic import DataTopic, new_data_topic
from tests.integration.intake.reading_process import DEADLINE_S
from tests.kafka.batches import GZIP, LZ4, SNAPPY, ZSTD, produce
from tests.kafka.bombs import bomb, gzip, lz4, snappy, zstd

from binwright.local.kafka import run_broker
from binwright.protocol.model import TopicPartition

pytestmark = pytest.mark.integration

MOST_STORED = 40_000_000
"""Snappy packs zeros to a twentieth only, so this topic takes large batches."""
LIMIT_BYTES = 128_000_000

BOMBS: dict[int, tuple[int, Callable[[int], bytes], int]] = {
    0: (GZIP, gzip, 900_000_000),
    1: (SNAPPY, snappy, 600_000_000),
    2: (LZ4, lz4, 1_500_000_000),
    3: (ZSTD, zstd, 2_000_000_000),
}
"""Partition -> codec, how to compress, and the size of the record."""
FINE = 4


async def read_by_a_process(topic: DataTopic, partitions: int, records: int) -> dict[str, Any]:
    module = "tests.integration.intake.reading_process"
    arguments = (topic.address, topic.topic, str(partitions), str(records))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(2 * DEADLINE_S):
        out, _ = await process.communicate()
    assert process.returncode == 0
    results: dict[str, Any] = json.loads(out.splitlines()[-1])
    return results


@pytest.mark.nightly
async def test_a_bomb_of_any_codec_costs_bounded_memory_and_delays_no_other_partition(
    broker: str,
) -> None:
    """Without a limit each consumer that got such a partition would be killed."""
    async with new_data_topic(broker, "unused") as topic:
        topic.topic = "bombs"
        config = {"max.message.bytes": str(MOST_STORED)}
        new = NewTopic("bombs", len(BOMBS) + 1, 1, topic_configs=config)
        await topic.admin.create_topics([new])
        await topic.produce(FINE, b"fine")
        for partition, (codec, compress, size) in BOMBS.items():
            batch = bomb(codec, compress(size))
            await produce(topic.producer, TopicPartition(topic.topic, partition), batch)
            await topic.produce(partition, b"behind")
        results = await read_by_a_process(topic, len(BOMBS) + 1, len(BOMBS) + 1)

    assert results["sizes"] == {str(FINE): [[0, 4]], **{str(p): [[1, 6]] for p in BOMBS}}
    for partition in BOMBS:
        first, behind, reason, stored = results["given_up"][str(partition)]
        assert (first, behind) == (0, 1)
        assert "inflates to more than 128,000,000 bytes" in reason
        assert 0 < stored < MOST_STORED
    assert results["taken_bytes"] < 2 * LIMIT_BYTES


async def test_a_batch_damaged_on_disk_is_given_up_and_its_partition_goes_on(
    tmp_path: Path,
) -> None:
    async with (
        run_broker(tmp_path) as server,
        new_data_topic(server.bootstrap_servers, "orders") as topic,
    ):
        for value in (b"first", b"damaged", b"last"):
            await topic.produce(0, value)
        await topic.produce(1, b"fine")
        await server.stop()
        (log,) = tmp_path.rglob("orders-0/*.log")  # noqa: ASYNC240 - nothing else runs meanwhile
        content = log.read_bytes()
        assert content.count(b"damaged") == 1
        log.write_bytes(content.replace(b"damaged", b"dAmaged"))
        await server.start()
        results = await read_by_a_process(topic, 2, 3)

    assert results["sizes"] == {"0": [[0, 5], [2, 4]], "1": [[0, 4]]}
    first, behind, reason, _ = results["given_up"]["0"]
    assert (first, behind) == (1, 2)
    assert "Invalid CRC" in reason
