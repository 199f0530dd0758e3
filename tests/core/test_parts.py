"""A message of any size goes through records of a bounded one."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from binwright.core import parts
from binwright.core.errors import MalformedMessage
from binwright.core.parts import Parts, cut, is_part, whole_key

LIMIT = 400


@given(some.text(max_size=2_000), some.randoms(use_true_random=False))
def test_a_message_is_whole_again_with_its_last_part(text: str, random: Random) -> None:
    records = cut(b"report/3", text.encode(), LIMIT)
    assert all(len(value) <= LIMIT for _, value in records)
    if len(records) == 1:
        assert records == [(b"report/3", text.encode())]
        return
    random.shuffle(records)
    joined = Parts()
    found = [joined.join(key, value) for key, value in [*records[:-1], records[0], records[-1]]]
    assert found == [None] * len(records) + [text.encode()]


def test_a_record_tells_whose_part_it_is() -> None:
    (first, _), (second, _) = cut(b"report/3", b"x" * LIMIT * 2, LIMIT)[:2]
    assert (first, second) == (b"part/report/3/0", b"part/report/3/1")
    assert is_part(first)
    assert whole_key(first) == b"report/3"
    assert not is_part(b"report/3")
    assert not is_part(None)
    assert (whole_key(b"report/3"), whole_key(None)) == (b"report/3", None)


def test_messages_of_several_senders_may_come_mixed() -> None:
    """Several consumers stage for one table, and announce under its name."""
    one, two = (cut(b"orders", letter * LIMIT * 2, LIMIT) for letter in (b"a", b"b"))
    joined = Parts()
    mixed = [record for pair in zip(one, two, strict=True) for record in pair]
    found = [joined.join(*record) for record in mixed]
    assert [each for each in found if each] == [b"a" * LIMIT * 2, b"b" * LIMIT * 2]


def test_a_message_that_stands_there_twice_comes_twice() -> None:
    records, joined = cut(b"orders", b"a" * LIMIT * 2, LIMIT), Parts()
    assert sum(joined.join(*record) is not None for record in [*records, *records]) == 2


def test_what_never_becomes_whole_is_given_up_for_what_is_newer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "PENDING_BYTES", LIMIT)
    joined = Parts()
    old = cut(b"old", b"a" * LIMIT * 2, LIMIT)
    joined.join(*old[0])
    for n in range(4):
        key, value = cut(b"new/%d" % n, b"%d" % n * LIMIT * 2, LIMIT)[0]
        assert joined.join(key, value) is None
    assert [joined.join(*record) for record in old[1:]] == [None] * (len(old) - 1)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"no JSON",
        json.dumps({"kind": "part/1", "of": "a", "number": 0, "count": 1, "text": ""}).encode(),
        json.dumps({"kind": "part/2", "of": "a", "number": 0, "count": 2, "text": ""}).encode(),
    ],
)
def test_what_is_no_part_is_said_to_be_none(value: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        Parts().join(b"part/orders/0", value)


def test_a_part_beyond_the_count_completes_nothing() -> None:
    stray = {"kind": "part/1", "of": "a", "number": 5, "count": 2, "text": "x"}
    assert Parts().join(b"part/orders/5", json.dumps(stray).encode()) is None
