"""Messages on the wire, and the names of partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from binwright.core import wire
from binwright.core.errors import MalformedMessage, UnknownKind
from binwright.core.messages import (
    Accepted,
    Approved,
    Claim,
    Command,
    Dead,
    Fence,
    Fenced,
    Goodbye,
    Hello,
    Inbound,
    Landed,
    Leave,
    PartitionRate,
    Planned,
    Proposed,
    Report,
    StartConsuming,
    Started,
    StateQuery,
    StopConsuming,
    Stopped,
    Withdrawn,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition

from .builders import measurement

P, Q = TopicPartition("or-ders", 0), TopicPartition("or-ders", 11)
S = Slot(3)
F = Fence(slot=S, number=4)
RATE = PartitionRate(
    partition=1, rate=BytesPerSecond(2.5), window_s=30, end=9, start=1, bytes_per_record=None
)
INBOUND: list[Inbound] = [
    Claim(controller="c"),
    Hello(slot=S, process="p", version="1"),
    Report(slot=S, epoch=1, term=2, ready=True, held={P: 3}, opening=(Q,), closing=(Q,)),
    Stopped(slot=S, epoch=1, revision=5, next={P: None, Q: 7}, quit_ms=8, unsettled=(Q,)),
    Landed(slot=S, epoch=1, revision=5, landed={Q: 7}),
    Started(slot=S, epoch=1, revision=5, offsets={P: 3}, fences=(F,)),
    Goodbye(slot=S, epoch=1, landed={P: 3}),
    Dead(slot=S, term=2),
    Fenced(slot=S, number=4, topic="orders"),
    Planned(
        term=1,
        reasons=("why",),
        consumers=2,
        moves={P: S},
        rscore=0.5,
        rates={P: BytesPerSecond(1.0)},
        targets={P: S},
    ),
    Planned(term=1, reasons=(), consumers=1, moves={}, rscore=0.0, rates={}, targets={}, keeps=4),
    Proposed(
        term=1,
        reasons=("why",),
        consumers=2,
        rscore=0.5,
        owners={P: Slot(0)},
        targets={P: S, Q: S},
        waits=True,
    ),
    Approved(plan=7, by="a person"),
    Accepted(term=1, plan=7, targets={P: S}),
    Withdrawn(term=1, plan=7, reason="why"),
]
COMMANDS: list[Command] = [
    StateQuery(term=1),
    StopConsuming(term=1, revision=2, epoch=3, partitions=(P, Q)),
    StartConsuming(term=1, revision=2, epoch=3, offsets={P: 4, Q: None}),
    StartConsuming(term=1, revision=2, epoch=3, offsets={P: None}, fences=(F,)),
    Leave(term=1, epoch=3),
]


@pytest.mark.parametrize("message", INBOUND, ids=lambda m: m.kind)
def test_what_controllers_read_reads_back(message: Inbound) -> None:
    assert wire.decode_inbound(wire.encode(message)) == message


@pytest.mark.parametrize("message", COMMANDS, ids=lambda m: m.kind)
def test_what_consumers_read_reads_back(message: Command) -> None:
    assert wire.decode_command(wire.encode(message)) == message


def test_a_measurement_reads_back_and_knows_its_rates() -> None:
    message = measurement("orders", (RATE,))
    assert wire.decode_measurement(wire.encode(message)) == message
    assert message.rates() == {TopicPartition("orders", 1): 2.5}


@given(some.dictionaries(some.integers(0, 99), some.integers(0, 2**62), min_size=1))
def test_equal_messages_are_equal_bytes(offsets: dict[int, int]) -> None:
    held = {TopicPartition("t", n): at for n, at in offsets.items()}
    back = dict(reversed(held.items()))
    one, two = (Goodbye(slot=S, epoch=1, landed=landed) for landed in (held, back))
    assert wire.encode(one) == wire.encode(two)
    assert wire.decode_inbound(wire.encode(one)) == one


def test_keys_keep_the_last_word_of_each_kind_and_slot() -> None:
    assert [wire.key(m) for m in (*INBOUND[:3], INBOUND[8], COMMANDS[0])] == [
        b"claim",
        b"hello/3",
        b"report/3",
        b"fenced/3/orders",
        b"state-query",
    ]
    assert wire.key(measurement("orders", ())) == b"orders"


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (None, "Invalid JSON"),
        (b"", "Invalid JSON"),
        (b"{", "Invalid JSON"),
        (b"[]", "object"),
        (b"{}", "discriminator"),
        (b'{"kind":"dead/1","slot":-1,"term":1}', "slot: Input should be greater"),
        (b'{"kind":"dead/1","slot":"a","term":1}', "slot: Input should be a valid integer"),
        (b'{"kind":"goodbye/1","slot":1,"epoch":1,"landed":{"t":1}}', "expected TOPIC-NUMBER"),
        (b'{"kind":"goodbye/1","slot":1,"epoch":1,"landed":{"t-1":-4}}', "greater"),
    ],
)
def test_bytes_that_are_no_message_say_what_is_wrong(payload: bytes | None, told: str) -> None:
    with pytest.raises(MalformedMessage, match=told) as found:
        wire.decode_inbound(payload)
    assert not isinstance(found.value, UnknownKind)
    assert found.value.payload == (payload or b"")


def test_a_kind_of_another_version_is_unknown() -> None:
    with pytest.raises(UnknownKind, match="dead/2"):
        wire.decode_inbound(b'{"kind":"dead/2","slot":1}')
    with pytest.raises(UnknownKind):
        wire.decode_measurement(b'{"kind":"measurement/9","topic":"a","at_ms":1,"partitions":[]}')


def test_offsets_beside_fences_are_refused() -> None:
    """† read_then_fence: whoever fences must resolve."""
    with pytest.raises(ValueError, match="must not carry offsets"):
        StartConsuming(term=1, revision=2, epoch=3, offsets={P: 4}, fences=(F,))


@pytest.mark.parametrize("text", ["", "orders", "-1", "orders-", "orders-x", "orders-²"])
def test_a_name_that_is_no_partition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected TOPIC-NUMBER"):
        TopicPartition.parse(text)


def test_a_partition_is_named_as_kafkas_tools_do() -> None:
    assert str(P) == "or-ders-0"
    assert TopicPartition.parse("or-ders-0") == P
