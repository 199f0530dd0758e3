"""Whether a batch fits into an embedded Spark."""

import pytest

from binwright.local.spark_size import SparkSize
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings


@pytest.mark.parametrize(
    ("heap", "size"), [("2g", 1 << 31), ("512m", 1 << 29), ("3G", 3 << 30), ("1024k", 1 << 20)]
)
def test_a_heap_is_read_as_java_reads_it(heap: str, size: int) -> None:
    assert SparkSize(heap).heap_bytes == size


@pytest.mark.parametrize("heap", ["", "g", "2 g", "-1g", "0g", "2.5g", "2gb"])
def test_a_heap_that_java_would_refuse_is_refused(heap: str) -> None:
    with pytest.raises(SettingsError, match="--spark-memory: expected Java's notation"):
        _ = SparkSize(heap).heap_bytes


def test_the_default_batch_fits_the_default_heap() -> None:
    SparkSize().check(load_settings())


def test_a_batch_above_half_of_the_heap_is_refused_with_what_to_change() -> None:
    settings = load_settings(lake={"batch_bytes": 256_000_000})
    with pytest.raises(SettingsError) as refused:
        SparkSize("256m").check(settings)
    assert str(refused.value) == (
        "lake.batch_bytes (256,000,000) is more than half of the embedded Spark's heap "
        "(256m): give it more with --spark-memory, or set lake.batch_bytes to 134,217,728 at most"
    )
