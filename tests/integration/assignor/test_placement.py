"""The placement of the assignor in the broker, and what it makes of measurements."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from tests.fuzz.mutations import hostile
from tests.integration.assignor.test_java_rule import printed

from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond

pytestmark = pytest.mark.integration

UNREAD = -1
MOST_LONG = (1 << 63) - 1


@dataclass(frozen=True)
class Case:
    """A group: of each partition its topic, rate and reader; of each member its topics."""

    topics: Sequence[int]
    rates: Sequence[float | None]
    members: Sequence[Sequence[int]]
    current: Sequence[int]
    count: int = 3  # of topics

    def totals(self, owners: Sequence[int]) -> list[float]:
        totals = [0.0] * len(self.members)
        for owner, rate in zip(owners, self.rates, strict=True):
            totals[owner] += rate or 0.0
        return totals


def group(rates: Sequence[float | None], members: int, current: Sequence[int] = ()) -> Case:
    """Return a group of one topic to which all subscribe."""
    count = len(rates)
    return Case([0] * count, rates, [[0]] * members, current or [UNREAD] * count)


def moved(case: Case, owners: Sequence[int]) -> int:
    return sum(old not in {UNREAD, new} for old, new in zip(case.current, owners, strict=True))


async def placed(cases: Sequence[Case], directory: Path) -> list[list[int]]:
    lines = await printed("PlacementCases", orjson.dumps(list(map(asdict, cases))), directory)
    return [list(map(int, line.split())) for line in lines]


def drawn(number: int) -> Case:
    draw = random.Random(number)
    topics = [draw.randrange(3) for _ in range(draw.randint(1, 60))]
    members = [
        [topic for topic in range(3) if draw.random() < 0.8] for _ in range(draw.randint(1, 9))
    ]
    known = draw.choice([0.0, 0.7, 1.0])
    rates = [draw.paretovariate(1.2) if draw.random() < known else None for _ in topics]
    return Case(topics, rates, members, [draw.randrange(-1, len(members)) for _ in topics])


async def test_each_partition_has_a_subscriber_and_a_second_placement_moves_nothing(
    tmp_path: Path,
) -> None:
    cases = [drawn(number) for number in range(1_000)]
    results = await placed(cases, tmp_path)
    for case, owners in zip(cases, results, strict=True):
        for topic, owner in zip(case.topics, owners, strict=True):
            able = {m for m, subscribed in enumerate(case.members) if topic in subscribed}
            assert owner in (able or {UNREAD})
    again = [replace(case, current=owners) for case, owners in zip(cases, results, strict=True)]
    assert await placed(again, tmp_path) == results


async def test_the_largest_load_is_near_that_of_an_assignment_from_nothing(tmp_path: Path) -> None:
    """That is: the largest partition first, each to the least loaded member."""
    draw = random.Random(1)
    cases = []
    for _ in range(300):
        members = draw.randint(2, 8)
        rates = [draw.paretovariate(1.5) for _ in range(draw.randint(members, 80))]
        cases.append(group(rates, members, [draw.randrange(members) for _ in rates]))
    for case, owners in zip(cases, await placed(cases, tmp_path), strict=True):
        fresh = [0.0] * len(case.members)
        for rate in sorted(filter(None, case.rates), reverse=True):
            fresh[fresh.index(min(fresh))] += rate
        mean = sum(fresh) / len(fresh)
        assert max(case.totals(owners)) <= max(fresh) + 0.25 * mean
        assert moved(case, owners) < len(owners)


async def test_a_hot_partition_is_alone_and_the_rest_is_even(tmp_path: Path) -> None:
    hot = [100.0] + [1.0] * 7
    cases = [
        group(hot, 3),
        group(hot, 3, [0, 1, 2, 0, 1, 2, 0, 1]),
        group(hot, 3, [0, 1, 1, 1, 1, 1, 1, 1]),  # a third member has joined
    ]
    for case, owners in zip(cases, await placed(cases, tmp_path), strict=True):
        assert sorted(Counter(owners).values()) == [1, 3, 4]
        assert max(case.totals(owners)) == 100.0
        # A member that reads something else than the hot partition keeps it.
        assert moved(case, owners) <= 3


async def test_noise_moves_nothing(tmp_path: Path) -> None:
    draw = random.Random(2)
    current = [number % 3 for number in range(30)]
    cases = [group([draw.uniform(0.9, 1.1) for _ in current], 3, current) for _ in range(200)]
    assert await placed(cases, tmp_path) == [current] * len(cases)


async def test_without_rates_numbers_are_equal_by_the_fewest_moves(tmp_path: Path) -> None:
    draw = random.Random(3)
    cases = []
    for rate in [None, 0.0] * 100:
        members, count = draw.randint(1, 9), draw.randint(1, 60)
        cases.append(
            group([rate] * count, members, [draw.randrange(members) for _ in range(count)])
        )
    for case, owners in zip(cases, await placed(cases, tmp_path), strict=True):
        members, before = len(case.members), Counter(case.current)
        counts = [Counter(owners)[member] for member in range(members)]
        assert max(counts) - min(counts) <= 1
        share, over = divmod(len(owners), members)
        quotas = sorted((before[m] for m in range(members)), reverse=True)
        fewest = sum(max(0, n - share - (i < over)) for i, n in enumerate(quotas))
        assert moved(case, owners) == fewest


async def test_a_huge_group_is_evened_out_by_several_assignments(tmp_path: Path) -> None:
    """Each takes a tenth of a second: brokers before 4.3 answer no heartbeat meanwhile."""
    draw = random.Random(4)
    rates = [draw.paretovariate(1.1) for _ in range(50_000)]
    case = group(rates, 100, [draw.randrange(100) for _ in rates])
    (first,) = await placed([case], tmp_path)
    again = replace(case, current=first)
    (second,) = await placed([again], tmp_path)
    assert moved(case, first) > 100
    assert moved(again, second) > 100, "the first one stops with what it has"
    spread = [max(case.totals(o)) - min(case.totals(o)) for o in (case.current, first, second)]
    assert spread == sorted(spread, reverse=True)


async def test_a_huge_group_of_one_member_is_shared_out_by_two_assignments(tmp_path: Path) -> None:
    """Steps that are cheap to find do not use the time up."""
    case = group([None] * 50_000, 500, [0] * 50_000)
    (first,) = await placed([case], tmp_path)
    (second,) = await placed([replace(case, current=first)], tmp_path)
    assert set(Counter(second).values()) == {100}
    assert moved(case, second) == 49_900


def measurement(*rows: PartitionRate, topic: str = "a", at_ms: int = 2_000) -> bytes:
    message = Measurement(
        topic=topic,
        at_ms=at_ms,
        monitor="m",
        number=1,
        interval_s=1.0,
        count=2,
        partitions=rows,
    )
    return orjson.dumps(message.plain())


def row(number: int, rate: float | None, **other: Any) -> PartitionRate:
    known = None if rate is None else BytesPerSecond(rate)
    return PartitionRate(number, known, 30.0, 0, 0, None)._replace(**other)


async def test_rates_count_that_are_measured_and_not_stale(tmp_path: Path) -> None:
    texts = [
        measurement(row(0, 5.0), at_ms=999),
        measurement(row(0, 5.0), row(1, 0.5)),
        measurement(row(0, None), row(1, 7.0)),  # a rate that is not known leaves the last one
        measurement(row(0, 8.0, quality="warming"), row(1, 8.0, quality="stale")),
        measurement(row(0, 9.0, age_s=1.5), row(1, 9.0, quality="estimated")),
        measurement(row(2, 1.0)),
        measurement(row(0, -1.0)),
        b'{"kind":"measurement/3"}',
        b'{"kind":"measurement/2","topic":"b","at_ms":2000,"count":99999999,"partitions":[]}',
        measurement(row(0, 1.0), topic="b"),
        b'{"kind":"measurement/2","topic":"b","at_ms":2000,"count":%d,"partitions":[]}' % MOST_LONG,
        # By a clock that is ahead: it is of now, and grows old like any other.
        measurement(row(0, 3.0), at_ms=MOST_LONG),
        measurement(row(0, 4.0, age_s=-60.0)),
        measurement(row(1 << 32, 1.0)),
    ]
    first = ["{}", "{0=5.0, 1=0.5}", "{0=5.0, 1=7.0}", "{0=5.0, 1=7.0}", "{1=9.0}"]
    found = await printed("RateTexts", b"\n".join(texts), tmp_path)
    ahead = ["{0=3.0, 1=9.0}", "{0=4.0, 1=9.0}"]
    assert found == [*first, *["false"] * 4, "{1=9.0}", "false", *ahead, "false"]


async def test_hostile_records_are_refused_and_cost_little(tmp_path: Path) -> None:
    content: list[bytes] = []

    @settings(max_examples=2_000, database=None)
    @given(hostile([measurement(row(0, 5.0), row(1, None))]))
    def draw(payload: bytes) -> None:
        text = payload.decode(errors="replace")
        content.append(("".join(text.splitlines()) + "\n").encode(errors="replace"))

    draw()
    found = await printed("RateTexts", b"".join(content), tmp_path, "-Xmx64m")
    assert len(found) == len(content)
    assert "false" in found
