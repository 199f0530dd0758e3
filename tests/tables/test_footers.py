"""What is announced of a staged file is compared with what the file says of itself."""

from dataclasses import replace

import pytest

from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.model import Slot, TopicPartition
from binwright.tables.ports import Footer

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
FOOTER = Footer("id-1", 8, {0: (0, 10)}, skipped=2, topic="orders", cut=frozenset({0}))
STAGED = Staged(
    topic="orders",
    topic_id="id-1",
    file="0-1-1-0a1b2c3d.parquet",
    rows=10,
    bytes=1,
    ranges={P: OffsetRange(0, 10)},
    slot=Slot(0),
    epoch=1,
    cut=(P,),
)


def test_a_footer_agrees_with_the_announcement_of_its_file() -> None:
    assert FOOTER.agrees(STAGED)


@pytest.mark.parametrize(
    "other",
    [
        {"topic": "clicks", "ranges": {TopicPartition("clicks", 0): OffsetRange(0, 10)}},
        {"topic_id": "id-2"},
        {"topic_id": None},
        {"rows": 8},
        {"ranges": {P: OffsetRange(0, 9)}},
        {"ranges": {P: OffsetRange(0, 10), Q: OffsetRange(0, 1)}},
        {"ranges": {}},
        {"cut": ()},
        {"cut": (P, Q)},
    ],
)
def test_a_footer_agrees_with_no_other(other: dict[str, object]) -> None:
    assert not FOOTER.agrees(replace(STAGED, **other))  # type: ignore[arg-type]


def test_a_footer_of_an_older_version_states_nothing_of_topic_and_cuts() -> None:
    older = replace(FOOTER, topic=None, cut=None)
    assert older.agrees(STAGED)
    assert older.agrees(replace(STAGED, cut=()))
