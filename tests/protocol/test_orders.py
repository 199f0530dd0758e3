"""Standing orders: the newest about each thing holds, until it is lifted or its time is over."""

from dataclasses import replace

import pytest

from binwright.protocol import orders as group_orders
from binwright.protocol import wire
from binwright.protocol.errors import MalformedMessage
from binwright.protocol.metadata import decode_inbound
from binwright.protocol.model import Slot
from binwright.protocol.orders import (
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    PinOrder,
    ScaleOrder,
    StandingOrders,
    describe,
    is_lifted,
    signed,
    subject,
)

PIN = PinOrder(topic="orders", partition=3, slot=Slot(2), by="alice")
TOPIC = replace(PIN, partition=None)
DRAIN = CordonOrder(slot=Slot(4), state="drained", by="bob", reason="a new disk")
FREEZE = FreezeOrder(frozen=True, by="alice", until_ms=1_764_180_000_000, reason="release")
SCALE = ScaleOrder(consumers=3, by="bob")
ADOPT = AdoptOrder(setting="packing", value="sticky:4", replaces="sticky", proposal=812, by="carol")
STANDING: list[GroupOrder] = [PIN, TOPIC, DRAIN, FREEZE, SCALE, ADOPT]
LIFTED: list[GroupOrder] = [
    replace(PIN, slot=None),
    replace(TOPIC, slot=None),
    replace(DRAIN, state="open"),
    replace(FREEZE, frozen=False),
    replace(SCALE, consumers=None),
    replace(ADOPT, value=None),
]


def test_the_key_is_what_an_order_is_about_so_that_the_newest_is_retained() -> None:
    keys = [b"pin/orders/3", b"pin/orders", b"cordon/4", b"freeze", b"scale", b"adopt/packing"]
    assert [wire.key(order) for order in STANDING] == keys
    assert [wire.key(order) for order in LIFTED] == keys
    assert [subject(order).encode() for order in STANDING] == keys


@pytest.mark.parametrize(("order", "lifted"), list(zip(STANDING, LIFTED, strict=True)))
def test_an_order_holds_until_it_is_lifted(order: GroupOrder, lifted: GroupOrder) -> None:
    assert (is_lifted(order), is_lifted(lifted)) == (False, True)
    orders = StandingOrders().apply(order)
    assert orders.in_force(0) == (order,)
    assert orders.apply(lifted).in_force(0) == ()
    assert StandingOrders().apply(lifted) == StandingOrders()


def test_of_orders_about_the_same_the_newest_holds() -> None:
    orders = StandingOrders().apply(PIN).apply(TOPIC).apply(replace(PIN, slot=Slot(7)))
    assert orders.in_force(0) == (TOPIC, replace(PIN, slot=Slot(7)))


def test_an_order_ends_at_its_time() -> None:
    orders = StandingOrders().apply(FREEZE)
    assert orders.in_force(FREEZE.until_ms - 1) == (FREEZE,)
    assert orders.in_force(FREEZE.until_ms) == ()


def test_the_number_of_orders_that_are_followed_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_orders, "MAX_ORDERS", 1)
    orders = StandingOrders().apply(PIN).apply(DRAIN)
    assert orders.in_force(0) == (PIN,)
    assert orders.apply(FREEZE).in_force(0) == (FREEZE, PIN)
    assert orders.apply(ADOPT).in_force(0) == (ADOPT, PIN)
    assert orders.apply(replace(PIN, by="bob")).in_force(0)[0].by == "bob"


def test_orders_have_words() -> None:
    assert list(map(describe, STANDING)) == [
        "orders-3 is pinned to consumer 2",
        "topic orders is pinned to consumer 2",
        "consumer 4 is drained",
        "moves are frozen",
        "scaled to 3 consumers",
        "controller.packing is sticky:4 instead of sticky, as proposal 812 has it",
    ]
    assert describe(replace(SCALE, consumers=1)) == "scaled to 1 consumer"
    assert list(map(describe, LIFTED)) == [
        "the pin of orders-3 is lifted",
        "the pin of topic orders is lifted",
        "consumer 4 is open",
        "the freeze is lifted",
        "the number of consumers follows the load",
        "controller.packing is what the settings give",
    ]
    assert signed(FREEZE) == "moves are frozen by alice until 2025-11-26 18:00 UTC: 'release'"
    assert signed(PIN) == "orders-3 is pinned to consumer 2 by alice"


@pytest.mark.parametrize(
    "record",
    [
        b'{"kind":"pin/1","topic":"../x","partition":1,"slot":1,"by":"a"}',
        b'{"kind":"pin/1","topic":"orders","partition":-1,"slot":1,"by":"a"}',
        b'{"kind":"cordon/1","slot":1,"state":"gone","by":"a"}',
        b'{"kind":"freeze/1","frozen":true,"by":"%s"}' % (b"a" * 201),
        b'{"kind":"freeze/1","frozen":true,"by":"a","reason":"%s"}' % (b"a" * 501),
        b'{"kind":"freeze/1","frozen":true,"by":"a","until_ms":1e99}',
        b'{"kind":"scale/1","consumers":0,"by":"a"}',
        b'{"kind":"scale/1","consumers":10001,"by":"a"}',
        b'{"kind":"adopt/1","setting":"mode","value":"act","by":"a"}',
        b'{"kind":"adopt/1","setting":"packing","value":"%s","by":"a"}' % (b"s" * 101),
        b'{"kind":"adopt/1","setting":"packing","value":"x","proposal":-1,"by":"a"}',
    ],
)
def test_hostile_fields_are_refused(record: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_inbound(record)
