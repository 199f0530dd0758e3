"""Sizes and rates of topics come from two looks at the leaders."""

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from binwright.kafka.client import EARLIEST, NO_LEADER, UnsupportedVersion
from binwright.kafka.topic_figures import TopicFigures, topic_figures

LEADERS = {"orders": {0: 1, 1: 2}, "clicks": {0: 1}}
DENIED = 31


class GrowingCluster:
    """Brokers whose partitions have grown at each look; offsets by 10, bytes by 1,000."""

    def __init__(self, *, refuses: bool = False, is_old: bool = False, cuts: bool = False) -> None:
        self.refuses, self.is_old, self.cuts = refuses, is_old, cuts
        self.looks: dict[int, int] = {}

    async def offsets(
        self, broker: int, partitions: Mapping[str, Collection[int]], when: int
    ) -> dict[tuple[str, int], int]:
        places = [(topic, p) for topic, numbers in partitions.items() for p in numbers]
        if when == EARLIEST:
            self.looks[broker] = self.looks.get(broker, 0) + 1
            return dict.fromkeys(places, 5)
        return dict.fromkeys(places, 10 * self.looks[broker])

    async def send_request(self, broker: int, request: Any) -> Any:
        if self.is_old:
            raise UnsupportedVersion("old")
        look = self.looks.get(broker, 1)
        size = 5_000 - look if self.cuts else 1_000 * look
        topics = [(t, [(p, size, 0, False) for p in ps]) for t, ps in request._partitions.items()]
        code = DENIED if self.refuses else 0
        return SimpleNamespace(API_VERSION=3, error_code=code, log_dirs=[(0, "", topics)])


async def figures(cluster: GrowingCluster, measure_s: float = 0.0) -> dict[str, TopicFigures]:
    made: Any = cluster
    return await topic_figures(made, LEADERS, measure_s)


async def test_without_a_measured_time_there_are_no_rates() -> None:
    found = await figures(GrowingCluster())
    assert found["orders"] == TopicFigures(2, {0: (5, 10), 1: (5, 10)}, 2_000)
    assert found["orders"].offsets == 10


@pytest.mark.looptime
async def test_rates_are_the_growth_of_all_partitions_over_the_measured_time() -> None:
    found = await figures(GrowingCluster(), 4)
    assert (found["orders"].records_per_s, found["orders"].bytes_per_s) == (5.0, 500.0)
    assert (found["clicks"].records_per_s, found["clicks"].bytes_per_s) == (2.5, 250.0)
    assert found["orders"].bounds == {0: (5, 20), 1: (5, 20)}


@pytest.mark.looptime
async def test_a_partition_that_retention_has_cut_has_not_grown() -> None:
    found = await figures(GrowingCluster(cuts=True), 4)
    assert (found["orders"].records_per_s, found["orders"].bytes_per_s) == (5.0, 0.0)


@pytest.mark.looptime
@pytest.mark.parametrize("cluster", [GrowingCluster(refuses=True), GrowingCluster(is_old=True)])
async def test_without_sizes_there_are_offsets_alone(cluster: GrowingCluster) -> None:
    found = (await figures(cluster, 4))["orders"]
    assert (found.size, found.records_per_s, found.bytes_per_s) == (None, 5.0, None)


async def test_a_partition_without_a_leader_leaves_the_size_open() -> None:
    made: Any = GrowingCluster()
    found = await topic_figures(made, {"orders": {0: 1, 1: NO_LEADER}, "none": {}}, 0)
    assert found["orders"] == TopicFigures(2, {0: (5, 10)}, None)
    assert found["none"] == TopicFigures(0, {}, None)
