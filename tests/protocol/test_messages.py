"""Messages as bytes, and the names of partitions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.builders import LIMIT, measurement

from binwright.protocol import wire
from binwright.protocol.commands import (
    Command,
    Leave,
    StartReading,
    StartWriting,
    StateQuery,
    StopReading,
    StopWriting,
    decode_command,
)
from binwright.protocol.errors import MalformedMessage, UnknownKind
from binwright.protocol.landing import OffsetRange, Staged, decode_staged
from binwright.protocol.metadata import (
    Accepted,
    Claim,
    Dead,
    Gap,
    Goodbye,
    Hello,
    Inbound,
    Planned,
    Proposed,
    Report,
    Started,
    Stopped,
    TableReport,
    Withdrawn,
    decode_inbound,
)
from binwright.protocol.metrics import PartitionRate, decode_measurement
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.orders import (
    Approved,
    FormerOrders,
    FreezeOrder,
    OperationOrder,
    OrderRecord,
    TableOrder,
    decode_order,
)

P, Q = TopicPartition("or-ders", 0), TopicPartition("or-ders", 11)
S = Slot(3)
TABLE = TableReport(state="refused", committed={P: 3}, fault="why")
RATE = PartitionRate(
    partition=1, rate=BytesPerSecond(2.5), window_s=30, end=9, start=1, bytes_per_record=None
)
INBOUND: list[Inbound] = [
    Claim(controller="c", limit=LIMIT),
    Hello(slot=S, process="p", version="1"),
    Report(
        slot=S, epoch=1, term=2, ready=True, reading={P: 3, Q: None}, writing={"or-ders": TABLE}
    ),
    Stopped(slot=S, epoch=1, revision=5, next={P: None, Q: 7}, tables=("or-ders",), stopped_ms=8),
    Started(slot=S, epoch=1, revision=5, offsets={P: 3}, tables=("or-ders",)),
    Gap(slot=S, epoch=1, committed={P: 3}),
    Goodbye(slot=S, epoch=1, next={P: 3}),
    Dead(slot=S, epoch=1, term=2),
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
    Accepted(term=1, plan=7, targets={P: S}),
    Withdrawn(term=1, plan=7, reason="why"),
]
ORDERS: list[OrderRecord] = [
    Approved(plan=7, by="a person"),
    FreezeOrder(frozen=True, by="a person"),
    TableOrder(topic="or-ders_raw", paused=True, by="a person"),
    OperationOrder(table="or-ders_raw", id="0" * 32, work="replay", by="a person"),
    FormerOrders(taken=2),
]
COMMANDS: list[Command] = [
    StateQuery(term=1),
    StopReading(term=1, revision=2, epoch=3, partitions=(P, Q)),
    StartReading(term=1, revision=2, epoch=3, offsets={P: 4, Q: None}),
    StopWriting(term=1, revision=2, epoch=3, tables=("or-ders",)),
    StartWriting(term=1, revision=2, epoch=3, tables=("or-ders",)),
    Leave(term=1, epoch=3),
]


@pytest.mark.parametrize("message", INBOUND, ids=lambda m: m.kind)
def test_a_message_to_controllers_decodes_to_itself(message: Inbound) -> None:
    assert decode_inbound(wire.encode(message)) == message


@pytest.mark.parametrize("message", ORDERS, ids=lambda m: m.kind)
def test_what_people_order_decodes_to_itself_and_is_nothing_else_anywhere(
    message: OrderRecord,
) -> None:
    assert decode_order(wire.encode(message)) == message
    with pytest.raises(UnknownKind):
        decode_inbound(wire.encode(message))


@pytest.mark.parametrize("message", COMMANDS, ids=lambda m: m.kind)
def test_a_command_decodes_to_itself(message: Command) -> None:
    assert decode_command(wire.encode(message)) == message


def test_a_measurement_has_the_zones_of_its_partitions() -> None:
    rates = (RATE, RATE._replace(partition=RATE.partition + 1))
    first, second = (rate.partition for rate in rates)
    message = measurement("orders", rates, zones={"a": (first,), "b": (first,)})
    assert decode_measurement(wire.encode(message)) == message
    assert message.readable_in() == {first: frozenset("ab"), second: frozenset()}


def test_a_reader_that_knows_no_zones_reads_what_names_them() -> None:
    """Fields that a version does not know are ignored: consumers and monitors come before it."""
    text = wire.encode(measurement("orders", (RATE,), zones={"a": (RATE.partition,)}))
    later = text.replace(b'"zones"', b'"unknown"')
    assert decode_measurement(later) == measurement("orders", (RATE,))


def test_a_measurement_decodes_to_itself_and_has_its_rates() -> None:
    message = measurement("orders", (RATE,))
    assert decode_measurement(wire.encode(message)) == message
    assert message.rates() == {TopicPartition("orders", 1): 2.5}


def test_an_announcement_decodes_to_itself() -> None:
    staged = Staged(
        topic="or-ders",
        topic_id=None,
        file="a.parquet",
        rows=4,
        bytes=99,
        ranges={P: OffsetRange(3, 7)},
        slot=S,
        epoch=1,
        cut=(P,),
    )
    assert decode_staged(wire.encode(staged)) == staged
    assert wire.key(staged) == b"or-ders"
    named = replace(staged, table="or-ders_raw")
    assert decode_staged(wire.encode(named)) == named
    assert (named.target, wire.key(named)) == ("or-ders_raw", b"or-ders_raw")


def test_an_announcement_of_an_older_version_is_to_the_table_of_its_topics_name() -> None:
    payload = (
        b'{"kind": "staged/1", "topic": "orders", "topic_id": "x", "file": "a.parquet", "rows": 1,'
        b' "bytes": 9, "ranges": {"orders-0": [0, 1]}, "slot": 0, "epoch": 1, "age_s": 0.5,'
        b' "cut": []}'
    )
    staged = decode_staged(payload)
    assert (staged.table, staged.target) == (None, "orders")


def test_an_order_about_a_table_has_a_key_that_no_order_to_the_group_has() -> None:
    order = TableOrder(topic="freeze", paused=True, by="ann")
    assert (order.table, wire.key(order)) == ("freeze", b"table-order/freeze")
    assert wire.key(FreezeOrder(frozen=True, by="ann")) == b"freeze"


def test_a_table_is_as_fresh_as_the_newest_record_that_landed() -> None:
    table = TableReport(state="landing", committed={}, newest_ms=2_000)
    assert [table.freshness_s(now_ms) for now_ms in (3_500, 1_000)] == [1.5, 0.0]
    assert replace(table, newest_ms=None).freshness_s(1) is None


def test_a_report_has_the_topics_whose_tables_it_lists() -> None:
    landing = TableReport(state="landing", committed={})
    of_orders = replace(landing, topic="orders")
    tables = {"clicks": landing, "a": of_orders, "b": of_orders}
    report = Report(slot=S, epoch=1, term=0, ready=True, reading={}, writing=tables)
    assert report.written_topics == {"clicks", "orders"}


@given(some.dictionaries(some.integers(0, 99), some.integers(0, 2**62), min_size=1))
def test_equal_messages_are_equal_bytes(offsets: dict[int, int]) -> None:
    read = {TopicPartition("t", n): at for n, at in offsets.items()}
    back = dict(reversed(read.items()))
    one, two = (Goodbye(slot=S, epoch=1, next=following) for following in (read, back))
    assert wire.encode(one) == wire.encode(two)
    assert decode_inbound(wire.encode(one)) == one


def test_the_record_key_is_the_kind_and_slot_or_the_topic() -> None:
    assert [wire.key(m) for m in (*INBOUND[:3], INBOUND[5], COMMANDS[0])] == [
        b"claim",
        b"hello/3",
        b"report/3",
        b"gap/3",
        b"state-query",
    ]
    assert wire.key(measurement("orders", ())) == b"orders"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (None, "Invalid JSON"),
        (b"", "Invalid JSON"),
        (b"{", "Invalid JSON"),
        (b"[]", "object"),
        (b"{}", "discriminator"),
        (b'{"kind":"dead/2","slot":-1,"epoch":1,"term":1}', "slot: Input should be greater"),
        (
            b'{"kind":"dead/2","slot":"a","epoch":1,"term":1}',
            "slot: Input should be a valid integer",
        ),
        (b'{"kind":"goodbye/2","slot":1,"epoch":1,"next":{"t":1}}', "expected TOPIC-NUMBER"),
        (b'{"kind":"goodbye/2","slot":1,"epoch":1,"next":{"t-1":-4}}', "not an offset"),
        (b'{"kind":"goodbye/2","slot":1,"epoch":1,"next":{"t-1":true}}', "not an offset: True"),
        (b'{"kind":"goodbye/2","slot":1,"epoch":1,"next":[]}', "not a mapping"),
        (b'{"kind":"stopped/3","slot":1,"epoch":1,"revision":1,"next":7}', "not a mapping"),
    ],
)
def test_invalid_bytes_raise_an_error_with_the_reason(payload: bytes | None, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason) as found:
        decode_inbound(payload)
    assert not isinstance(found.value, UnknownKind)
    assert found.value.payload == (payload or b"")


def test_a_kind_of_another_version_is_unknown() -> None:
    with pytest.raises(UnknownKind, match="dead/3"):
        decode_inbound(b'{"kind":"dead/3","slot":1}')
    with pytest.raises(UnknownKind):
        decode_measurement(b'{"kind":"measurement/9","topic":"a","at_ms":1,"partitions":[]}')


@pytest.mark.parametrize("text", ["", "orders", "-1", "orders-", "orders-x", "orders-²"])
def test_an_invalid_partition_name_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="expected TOPIC-NUMBER"):
        TopicPartition.parse(text)


def test_a_partition_is_named_as_kafkas_tools_do() -> None:
    assert str(P) == "or-ders-0"
    assert TopicPartition.parse("or-ders-0") == P
