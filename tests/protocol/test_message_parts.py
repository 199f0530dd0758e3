"""Messages that are too large for a record are completed by their parts, in any order."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from binwright.protocol import wire
from binwright.protocol.errors import MalformedMessage
from binwright.protocol.wire import (
    PartialMessages,
    is_part,
    message_key,
    split_message,
)

LIMIT = 400


@given(some.text(max_size=2_000), some.randoms(use_true_random=False))
def test_the_last_part_completes_a_message(text: str, random: Random) -> None:
    records = split_message(b"report/3", text.encode(), LIMIT)
    assert all(len(value) <= LIMIT for _, value in records)
    if len(records) == 1:
        assert records == [(b"report/3", text.encode())]
        return
    random.shuffle(records)
    joined = PartialMessages()
    found = [joined.join(key, value) for key, value in [*records[:-1], records[0]]]
    assert joined
    found.append(joined.join(*records[-1]))
    assert found == [None] * len(records) + [text.encode()]
    assert not joined


def test_a_parts_key_contains_the_messages_key() -> None:
    (first, _), (second, _) = split_message(b"report/3", b"x" * LIMIT * 2, LIMIT)[:2]
    assert (first, second) == (b"part/report/3/0", b"part/report/3/1")
    assert is_part(first)
    assert message_key(first) == b"report/3"
    assert not is_part(b"report/3")
    assert not is_part(None)
    assert (message_key(b"report/3"), message_key(None)) == (b"report/3", None)


def test_parts_of_several_senders_may_be_interleaved() -> None:
    """Several consumers stage for one table, and announce under its name."""
    one, two = (
        split_message(b"orders", character * LIMIT * 2, LIMIT) for character in (b"a", b"b")
    )
    joined = PartialMessages()
    mixed = [record for pair in zip(one, two, strict=True) for record in pair]
    found = [joined.join(*record) for record in mixed]
    assert [each for each in found if each] == [b"a" * LIMIT * 2, b"b" * LIMIT * 2]


def test_a_message_that_was_published_twice_is_returned_twice() -> None:
    records, joined = split_message(b"orders", b"a" * LIMIT * 2, LIMIT), PartialMessages()
    assert sum(joined.join(*record) is not None for record in [*records, *records]) == 2


def test_parts_are_pending_until_the_last_has_come() -> None:
    joined, pending = PartialMessages(), []
    for record in split_message(b"orders", b"a" * LIMIT * 2, LIMIT):
        pending.append(bool(joined))
        joined.join(*record)
    assert pending == [False] + [True] * (len(pending) - 1)
    assert not joined


def test_a_part_that_is_read_twice_counts_once() -> None:
    first, *others = split_message(b"orders", b"a" * LIMIT * 2, LIMIT)
    joined = PartialMessages()
    found = [joined.join(*record) for record in [first, first, *others]]
    assert found == [None] * len(others) + [None, b"a" * LIMIT * 2]


def test_incomplete_messages_are_dropped_for_newer_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "PENDING_BYTES", LIMIT)
    joined = PartialMessages()
    old = split_message(b"old", b"a" * LIMIT * 2, LIMIT)
    joined.join(*old[0])
    for n in range(4):
        key, value = split_message(b"new/%d" % n, b"%d" % n * LIMIT * 2, LIMIT)[0]
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
def test_an_invalid_part_is_malformed(value: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        PartialMessages().join(b"part/orders/0", value)


def test_a_part_beyond_the_count_is_malformed_and_nothing_is_kept_of_it() -> None:
    stray = {"kind": "part/1", "of": "a", "number": 2, "count": 2, "text": "x"}
    joined = PartialMessages()
    with pytest.raises(MalformedMessage, match="number 2 is not below count 2"):
        joined.join(b"part/orders/2", json.dumps(stray).encode())
    assert not joined._pending


@pytest.mark.parametrize("key", [b"k", b"k" * 100_000])
def test_parts_without_text_count_what_they_take(
    key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else anybody who may write to the topic fills the memory of those who read it."""
    monkeypatch.setattr(wire, "PENDING_BYTES", 1_000_000)
    joined = PartialMessages()
    for number in range(5_000):
        part = {"kind": "part/1", "of": str(number), "number": 0, "count": 2, "text": ""}
        joined.join(b"part/%s/0" % key, json.dumps(part).encode())
    assert joined
    assert len(joined._pending) <= 1_000_000 // (500 + len(key))


def test_a_parts_digest_is_short() -> None:
    part = {"kind": "part/1", "of": "x" * 65, "number": 0, "count": 2, "text": ""}
    with pytest.raises(MalformedMessage, match="at most 64 characters"):
        PartialMessages().join(b"part/orders/0", json.dumps(part).encode())
