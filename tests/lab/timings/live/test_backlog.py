"""A condition of Table VI as topics and settings."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from binwright.lab.timings.live.backlog import BATCH_BYTES, BacklogTest
from binwright.lab.timings.published import CONDITIONS
from binwright.local.stack import Servers


def backlog(number: int, scale: float = 1.0) -> BacklogTest:
    servers = Servers("localhost:9092", "sc://localhost:15002", 0.0)
    return BacklogTest(CONDITIONS[number], scale, servers, Path("logs"), lambda _: None)


@pytest.mark.parametrize(("number", "counts"), [(0, [32]), (1, [24, 23, 23, 23, 23])])
def test_partitions_are_spread_evenly_over_the_tables(number: int, counts: list[int]) -> None:
    partitions = backlog(number).partitions()
    assert list(Counter(p.topic for p in partitions).values()) == counts


def test_one_consumer_reads_all_tables() -> None:
    settings = backlog(2).settings()
    assert len(settings.topics) == 5
    assert settings.controller.max_slots == 1


def test_a_small_backlog_has_small_files() -> None:
    """A table has ten files at least: from fewer no rate can be seen."""
    assert backlog(0).settings().consumer.batch_bytes == BATCH_BYTES
    assert backlog(1, 0.1).settings().consumer.batch_bytes == 200_281


def test_rows_land_meanwhile_if_that_is_wanted() -> None:
    lands = replace(backlog(0), lands=True)
    assert (backlog(0).settings().lake.freshness_s, lands.settings().lake.freshness_s) == (3600, 5)
    assert backlog(0).name != lands.name
