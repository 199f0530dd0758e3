"""What the reader of rates in a broker makes of records that are to do harm, and of failures."""

from collections.abc import Iterable
from pathlib import Path

import orjson
import pytest
from tests.integration.assignor.test_java_rule import printed
from tests.integration.assignor.test_placement import MOST_LONG, measurement, row

pytestmark = pytest.mark.integration

LARGE = 900_000
"""Partitions of a topic for which 14 MB are remembered."""


def claim(topic: str, count: int) -> str:
    """Return a short record that names a topic of so many partitions, and measures none."""
    fields = {"kind": "measurement/2", "topic": topic, "at_ms": 1, "count": count}
    return orjson.dumps({**fields, "partitions": []}).decode()


async def case(name: str, lines: Iterable[str], directory: Path) -> list[str]:
    content = "\n".join([name, *lines]).encode()
    return await printed("ReaderCases", content, directory, "-Xmx128m")


async def test_a_record_with_a_count_beyond_all_numbers_is_passed_over(tmp_path: Path) -> None:
    good = measurement(row(0, 5.0), at_ms=MOST_LONG).decode()
    lines = [claim("x", MOST_LONG), claim("a", MOST_LONG), good, claim("a", -1), "[" * 9, ""]
    rates, _ = await case("take", lines, tmp_path)
    assert rates == "{0=5.0}"


async def test_claims_of_large_topics_cost_a_copy_in_all_and_unknown_ones_nothing(
    tmp_path: Path,
) -> None:
    rates = measurement(row(0, 5.0), at_ms=MOST_LONG).decode()
    lines = [*[claim("a", LARGE)] * 1_000, *[claim(f"b{n}", LARGE) for n in range(1_000)], rates]
    known, megabytes = await case("take", lines, tmp_path)
    assert known == "{0=5.0}"
    assert int(megabytes) < 50


async def test_what_is_read_at_once_is_bounded_by_its_memory(tmp_path: Path) -> None:
    lines = ["40 1000000", "40 1048576", "100000 1", "3 10"]
    many, too_large, small, few = await case("poll", lines, tmp_path)
    assert many == "[16, 16, 8]"
    assert too_large == "[0]", "they are passed over"
    assert max(orjson.loads(small)) < 33_000, "each takes memory, however short it is"
    assert few == "[3]"


async def test_topics_that_a_look_up_does_not_find_cause_no_more_of_them(tmp_path: Path) -> None:
    looks = [
        ("1 a a", "true"),
        ("3 a,gone a", "false"),
        ("6 a,gone a", "true"),  # 5 s after the last one
        ("12 a,gone a", "false"),
        ("18 a,gone,b a,b", "true"),  # a new one is there
        ("24 gone a,b", "false"),
        ("77 a a,b", "false"),
        ("78 a a,b", "true"),  # topics may be deleted
    ]
    found = await case("names", [line for line, _ in looks], tmp_path)
    assert found == [is_due for _, is_due in looks]


async def test_the_reader_goes_on_after_an_error_with_pauses_up_to_a_minute(tmp_path: Path) -> None:
    failed, pauses = await case("failures", [], tmp_path)
    assert failed == ("[OutOfMemoryError, " + "IOException, " * 5 + "IllegalStateException]")
    assert pauses == "[5000, 10000, 20000, 40000, 60000, 60000, 5000]"


async def test_a_topic_that_is_missing_is_awaited_by_the_same_client(tmp_path: Path) -> None:
    partitions, pauses = await case("missing", [], tmp_path)
    assert partitions == "[metrics-0]"
    assert pauses == "[5000, 10000, 20000, 40000, 60000, 60000]"
