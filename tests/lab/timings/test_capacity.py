"""Rates of a consumer from what it announced."""

import pytest

from binwright.lab.timings.capacity import StagedBytes, capacity


def files(
    *topics: str, count: int = 40, every_s: float = 0.25, size: int = 500
) -> list[StagedBytes]:
    """Return files of each topic at the same distance, one topic after the other."""
    return [
        StagedBytes(100 + number * every_s + 0.01 * place, topic, size)
        for number in range(count)
        for place, topic in enumerate(topics)
    ]


def test_a_steady_reader_has_the_same_rate_in_each_cycle() -> None:
    found = capacity("test 1", 32, files("a"))
    assert found is not None
    assert found.cycles.samples == pytest.approx([2_000.0] * len(found.cycles.samples))


def test_rates_of_several_tables_add_up() -> None:
    found = capacity("test 2", 116, files("a", "b", "c"))
    assert found is not None
    assert found.tables == 3
    assert found.cycles.samples == pytest.approx([6_000.0] * len(found.cycles.samples))


def test_files_of_one_time_count_together() -> None:
    """Two announcements within a millisecond are no infinite rate."""
    found = capacity("test 1", 32, [*files("a", size=250), *files("a", size=250)])
    assert found is not None
    assert found.cycles.samples == pytest.approx([2_000.0] * len(found.cycles.samples))


def test_the_last_tenth_of_a_backlog_is_no_cycle() -> None:
    slow = [StagedBytes(110 + number, "a", 1) for number in range(30)]
    found = capacity("test 1", 32, [*files("a"), *slow])
    assert found is not None
    assert found.cycles.quantile(0.0) == pytest.approx(2_000.0)
    assert found.bytes == 40 * 500 + 30


def test_a_short_backlog_has_short_cycles() -> None:
    found = capacity("test 1", 32, files("a", count=4))
    assert found is not None
    assert found.cycles.samples == pytest.approx([2_000.0] * 4)


@pytest.mark.parametrize("found", [[], files("a", count=1)])
def test_a_backlog_of_one_file_has_no_rate(found: list[StagedBytes]) -> None:
    assert capacity("test 1", 32, found) is None
