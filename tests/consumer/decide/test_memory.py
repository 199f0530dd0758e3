"""A consumer stays within the memory that it has, whatever it does at the same time."""

from dataclasses import astuple

import pytest

from binwright.consumer.decide.memory import MOST_VALUE_BYTES, memory_shares
from binwright.kafka.batches import LARGE_BYTES
from binwright.runtime.settings.consumer import ConsumerSettings

MIB = 1 << 20


@pytest.mark.parametrize("values", [None, 1_000_000, 40_000_000])
@pytest.mark.parametrize("memory", [n * MIB for n in (320, 384, 512, 768, 1024, 2048, 24 << 10)])
def test_all_shares_together_fit_into_it(memory: int, values: int | None) -> None:
    shares = memory_shares(memory, values)
    assert shares.needed <= memory
    assert values in {None, shares.values}


def test_a_pod_decodes_as_much_as_a_large_machine() -> None:
    """That of `deploy/consumers` has 768 MiB."""
    shares, settings = memory_shares(768 * MIB), ConsumerSettings()
    assert shares.buffered >= 4 * settings.batch_bytes
    assert shares.part >= settings.batch_bytes
    assert shares.large >= LARGE_BYTES
    assert shares.values == pytest.approx(173_000_000, rel=0.01)


def test_a_file_of_a_backlog_is_encoded_within_its_share() -> None:
    """It takes half of what is buffered."""
    shares = memory_shares(1536 * MIB)
    assert shares.buffered >= ConsumerSettings().batch_cap_bytes
    assert shares.encoded >= shares.buffered // 2


def test_more_memory_is_of_no_use_for_values() -> None:
    assert memory_shares(24 << 30).values == MOST_VALUE_BYTES


def test_what_the_settings_give_to_values_the_others_lack() -> None:
    usual, wide = memory_shares(768 * MIB), memory_shares(768 * MIB, 400_000_000)
    assert wide.values == 400_000_000
    assert wide.buffered < usual.buffered
    assert wide.needed <= 768 * MIB


@pytest.mark.parametrize("values", [None, 1 << 30])
def test_with_too_little_memory_each_has_a_little(values: int | None) -> None:
    shares = memory_shares(200 * MIB, values)
    assert min(astuple(shares)) > 0
