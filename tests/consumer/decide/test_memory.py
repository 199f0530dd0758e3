"""A consumer stays within the memory that it has."""

import pytest

from binwright.consumer.decide.memory import large_batch_bytes, value_bytes


@pytest.mark.parametrize(
    ("memory", "value", "batch"),
    [
        (320 << 20, 80 << 20, (320 << 20) // 24),
        (768 << 20, 192 << 20, 32_000_000),
        (24 << 30, 256_000_000, 32_000_000),
    ],
)
def test_values_and_batches_get_a_share_of_it(memory: int, value: int, batch: int) -> None:
    assert value_bytes(memory) == value
    assert large_batch_bytes(memory, 32_000_000) == batch
