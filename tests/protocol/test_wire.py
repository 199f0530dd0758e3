"""Messages decode to themselves; malformed ones and unknown kinds are told apart."""

import json
from dataclasses import fields
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests import builders

from binwright.balancer.decide.proposals import BrokerPlanRecord, decode_record
from binwright.protocol import wire
from binwright.protocol.commands import (
    Command,
    SplitReading,
    StartReading,
    StateQuery,
    decode_command,
)
from binwright.protocol.errors import MalformedMessage, UnknownKind
from binwright.protocol.fields import LATEST_MS
from binwright.protocol.group_plans import GroupPlan, decode_group_plan
from binwright.protocol.landing import (
    OffsetRange,
    RangeMessage,
    Staged,
    decode_range,
    decode_staged,
)
from binwright.protocol.metadata import (
    Claim,
    Hello,
    Inbound,
    MeasuredCapacity,
    Planned,
    StagedShare,
    Stopped,
    TableCompaction,
    TableOperation,
    TableRegistration,
    TableReport,
    decode_inbound,
)
from binwright.protocol.metrics import (
    Measurement,
    Needs,
    PartitionRate,
    Quality,
    decode_measurement,
    decode_needs,
)
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import (
    AdoptOrder,
    BadKind,
    CordonOrder,
    FreezeOrder,
    OperationOrder,
    OrderRecord,
    PinOrder,
    Savings,
    ScaleOrder,
    SimulatedCost,
    decode_order,
)

NAMES = some.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True).filter(
    lambda name: name not in {".", ".."}
)
PARTITIONS = some.builds(
    TopicPartition,
    NAMES,
    some.integers(0, 2**31 - 1),
)
NUMBERS = some.integers(0, 2**63 - 1)
SLOTS = some.integers(0, 2**31 - 2)
AMOUNTS = some.floats(0, 1e300)
TEXT = some.text(some.characters(codec="utf-8"))
RATES = some.builds(
    PartitionRate,
    partition=some.integers(0, 2**31),
    rate=some.none() | AMOUNTS,
    window_s=AMOUNTS,
    end=NUMBERS,
    start=NUMBERS,
    bytes_per_record=some.none() | AMOUNTS,
    records_per_s=some.none() | AMOUNTS,
    size=some.none() | NUMBERS,
    quality=some.sampled_from(get_args(Quality)),
    age_s=AMOUNTS,
    leader=some.none() | NUMBERS,
)


def some_tuple(items: some.SearchStrategy[Any]) -> some.SearchStrategy[tuple[Any, ...]]:
    return some.lists(items, max_size=3).map(tuple)


def some_map(values: some.SearchStrategy[Any]) -> some.SearchStrategy[dict[Any, Any]]:
    return some.dictionaries(PARTITIONS, values, max_size=3)


RANGES = some.builds(OffsetRange, NUMBERS, NUMBERS)
TABLES = some.builds(
    TableReport,
    topic=some.none() | NAMES,
    state=some.sampled_from(["claiming", "landing", "paused", "refused"]),
    committed=some_map(NUMBERS),
    age_s=AMOUNTS,
    pending_bytes=NUMBERS,
    rows=NUMBERS,
    commits=NUMBERS,
    fault=TEXT,
    compaction=some.none()
    | some.builds(TableCompaction, small_files=NUMBERS, seconds=AMOUNTS, fault=TEXT),
    registration=some.none() | some.builds(TableRegistration, name=TEXT, fault=TEXT),
    operation=some.none()
    | some.builds(
        TableOperation,
        id=TEXT,
        work=TEXT,
        by=TEXT,
        at_ms=NUMBERS,
        state=some.sampled_from(["running", "done", "failed"]),
        moved=some.dictionaries(TEXT, NUMBERS, max_size=2),
        left=some.dictionaries(TEXT, NUMBERS, max_size=2),
        skipped=NUMBERS,
        masked=NUMBERS,
    ),
)
COSTS = some.builds(
    SimulatedCost, rule=TEXT, change=TEXT, replica_minutes=AMOUNTS, within_sla=AMOUNTS
)
SHARES = dict.fromkeys(["bytes_per_s", "spread", "used", "seconds"], AMOUNTS)
FIELDS: dict[str, some.SearchStrategy[Any]] = {
    **dict.fromkeys(["controller", "process", "version", "monitor", "by", "reason"], TEXT),
    **dict.fromkeys(["topic", "file"], NAMES),
    "table": some.none() | NAMES,
    "group": TEXT,
    **dict.fromkeys(["epoch", "term", "revision", "number"], NUMBERS),
    **dict.fromkeys(["stopped_ms", "at_ms", "sent_ms"], NUMBERS),
    **dict.fromkeys(["staged_rows", "staged_bytes", "lost_offsets", "consumers", "taken"], NUMBERS),
    **dict.fromkeys(["count", "plan", "rows", "bytes"], NUMBERS),
    **dict.fromkeys(["ready", "leaving", "waits", "paused", "measured"], some.booleans()),
    **dict.fromkeys(["next", "committed", "offsets"], some_map(NUMBERS)),
    "partitions": some_tuple(PARTITIONS),
    **dict.fromkeys(["tables", "topics"], some_tuple(NAMES)),
    "patterns": some_tuple(TEXT),
    **dict.fromkeys(["moves", "targets", "owners"], some_map(SLOTS)),
    **dict.fromkeys(["rate", "busy", "rscore", "interval_s", "age_s", "limit"], AMOUNTS),
    "slot_limits": some_tuple(some.tuples(SLOTS, AMOUNTS)),
    "slot": SLOTS,
    "capacity": some.none() | some.builds(MeasuredCapacity, **SHARES),
    "keeps": some.none() | NUMBERS,
    "reading": some_map(some.none() | NUMBERS),
    "writing": some.dictionaries(NAMES, TABLES, max_size=2),
    "zone": some.none() | TEXT,
    "zones": some.dictionaries(TEXT, some_tuple(NUMBERS), max_size=2),
    "faults": some.dictionaries(NAMES, TEXT, max_size=2),
    "new_fields": some.dictionaries(NAMES, some.lists(TEXT, max_size=2).map(tuple), max_size=2),
    "topic_id": some.none() | TEXT,
    "ranges": some_map(RANGES),
    "cut": some_tuple(PARTITIONS),
    "reasons": some_tuple(TEXT),
    **dict.fromkeys(["rates", "needs"], some_map(AMOUNTS)),
    **dict.fromkeys(["generation", "valid_ms"], NUMBERS),
    **dict.fromkeys(["before", "after"], some_map(some_tuple(NUMBERS))),
    "done": some.booleans(),
    "bins": some_tuple(some_map(NUMBERS)),
    "splits": some_map(some_tuple(some.builds(StagedShare, SLOTS, NUMBERS))),
    "helper": SLOTS,
    "partition": PARTITIONS,
    **dict.fromkeys(["range", "piece"], RANGES),
}
MOMENTS = some.integers(0, LATEST_MS)
ORDER = {
    "by": some.text(max_size=200),
    "reason": some.text(max_size=500),
    **dict.fromkeys(["at_ms", "until_ms"], MOMENTS),
}
SPECIAL: dict[type, dict[str, some.SearchStrategy[Any]]] = {
    GroupPlan: {"leaving": some_tuple(some.text(max_size=20))},
    PinOrder: {
        **ORDER,
        "partition": some.none() | some.integers(0, 2**31 - 1),
        "slot": some.none() | SLOTS,
    },
    CordonOrder: {**ORDER, "state": some.sampled_from(["cordoned", "drained", "open"])},
    FreezeOrder: {**ORDER, "frozen": some.booleans()},
    ScaleOrder: {**ORDER, "consumers": some.none() | some.integers(1, 10_000)},
    AdoptOrder: {
        **ORDER,
        "setting": some.sampled_from(["packing", "replan_interval_s"]),
        "value": some.none() | some.text(max_size=100),
        "replaces": some.text(max_size=100),
        "proposal": NUMBERS,
    },
    OperationOrder: {
        **ORDER,
        "table": NAMES,
        "id": some.from_regex(r"[0-9a-f]{32}", fullmatch=True),
        "work": some.sampled_from(["replay", "erase", "backfill"]),
        **dict.fromkeys(["where", "bad_where"], some.text(max_size=99)),
        "classes": some_tuple(some.sampled_from(get_args(BadKind))),
        "since_ms": MOMENTS,
        "offsets": some_map(NUMBERS),
        "dry_run": some.booleans(),
    },
    Savings: {
        **dict.fromkeys(["from_ms", "until_ms"], NUMBERS),
        "sla_s": AMOUNTS,
        "own": COSTS,
        "others": some_tuple(COSTS),
        "proposed": some.none() | COSTS,
        "replaces": some.text(),
    },
    Planned: {"moved": some_tuple(some.tuples(NUMBERS, NUMBERS))},
    Stopped: {"next": some_map(some.none() | NUMBERS)},
    StartReading: {"offsets": some_map(some.none() | NUMBERS)},
    SplitReading: {"partitions": some_map(some_tuple(SLOTS))},
    Measurement: {"partitions": some_tuple(RATES)},
}


READERS = (
    decode_inbound,
    decode_order,
    decode_command,
    decode_measurement,
    decode_staged,
    decode_range,
    decode_needs,
    decode_group_plan,
    decode_record,
)
OTHER_KINDS = (
    *get_args(OrderRecord),
    *(Staged, Measurement, Needs, GroupPlan),
    *get_args(RangeMessage),
    *get_args(BrokerPlanRecord),
)


def some_message(kinds: tuple[type, ...]) -> some.SearchStrategy[Any]:
    """Draw any message of these kinds, by the names of its fields."""
    return some.one_of(
        [
            some.builds(
                kind,
                **{f.name: (FIELDS | SPECIAL.get(kind, {}))[f.name] for f in fields(kind)[:-1]},
            )
            for kind in kinds
        ]
    )


FIELDS["files"] = some_tuple(some_message((Staged,)))


def has_kind_last(kind: type) -> bool:
    return fields(kind)[-1].name == "kind"


def test_the_kind_is_the_last_field_of_every_message() -> None:
    assert all(map(has_kind_last, (*get_args(Inbound), *get_args(Command), *OTHER_KINDS)))


@given(some_message(get_args(Inbound)))
def test_any_message_to_controllers_decodes_to_itself(message: Inbound) -> None:
    assert decode_inbound(wire.encode(message)) == message


@given(some_message(get_args(OrderRecord)))
def test_whatever_people_order_decodes_to_itself(message: OrderRecord) -> None:
    assert decode_order(wire.encode(message)) == message


@given(some_message(get_args(Command)))
def test_any_command_decodes_to_itself(message: Command) -> None:
    assert decode_command(wire.encode(message)) == message


@given(some_message((Measurement,)))
def test_any_measurement_decodes_to_itself(message: Measurement) -> None:
    assert decode_measurement(wire.encode(message)) == message


@given(some_message((Staged,)))
def test_any_announcement_decodes_to_itself(message: Staged) -> None:
    assert decode_staged(wire.encode(message)) == message
    assert wire.key(message) == message.target.encode()


@given(some_message(get_args(RangeMessage)))
def test_whatever_consumers_write_about_parts_decodes_to_itself(message: RangeMessage) -> None:
    assert decode_range(wire.encode(message)) == message


@given(some_message((Needs,)))
def test_any_needs_decode_to_themselves(message: Needs) -> None:
    assert decode_needs(wire.encode(message)) == message
    assert wire.key(message) == message.group.encode()


@given(some_message((GroupPlan,)))
def test_any_group_plan_decodes_to_itself(message: GroupPlan) -> None:
    assert decode_group_plan(wire.encode(message)) == message
    assert wire.key(message) == message.group.encode()


@given(some_message(get_args(BrokerPlanRecord)))
def test_any_record_of_a_plan_for_brokers_decodes_to_itself(message: BrokerPlanRecord) -> None:
    assert decode_record(wire.encode(message)) == message


@given(some_message((*get_args(Inbound), *get_args(Command), *OTHER_KINDS)))
def test_the_order_of_mappings_does_not_change_the_bytes(message: Any) -> None:
    turned = {
        f.name: dict(reversed(value.items())) if isinstance(value, dict) else value
        for f in fields(message)
        for value in (getattr(message, f.name),)
    }
    assert wire.encode(type(message)(**turned)) == wire.encode(message)


@given(some_message((*get_args(Inbound), *get_args(Command), *OTHER_KINDS)))
def test_every_record_of_every_kind_is_known_as_binwright_s(message: Any) -> None:
    assert wire.is_message(wire.key(message), wire.encode(message))
    assert not wire.is_message(b"another key", wire.encode(message))
    assert not wire.is_message(wire.key(message), None)


def test_records_of_another_version_and_parts_are_known_as_binwright_s() -> None:
    assert wire.is_message(b"report/3", b'{"slot": 3, "kind": "report/99"}')
    assert wire.is_message(b"part/report/3/0", b'{"kind": "part/1"}')


def test_the_announcement_of_a_table_with_a_name_of_its_own_is_known_as_binwright_s() -> None:
    announced = b'{"topic": "orders", "table": "orders_raw", "kind": "staged/1"}'
    assert wire.is_message(b"orders_raw", announced)
    assert not wire.is_message(b"orders_typed", announced)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"order", b'{"kind": "order"}'),
        (b"a", b'{"kind": "order/1", "topic": ["a"]}'),
        (b"a", b'{"kind": 5}'),
        (b"a", b"[]"),
        (b"a", b"{"),
        (b"\xff", b'{"kind": "order/1"}'),
        (None, b'{"kind": "order/1"}'),
    ],
)
def test_records_of_others_are_not(key: bytes | None, value: bytes | None) -> None:
    assert not wire.is_message(key, value)


@given(some.binary() | TEXT.map(str.encode) | some.none())
def test_any_bytes_decode_or_raise_malformed_message(payload: bytes | None) -> None:
    for decode in READERS:
        with pytest.raises(MalformedMessage):
            decode(payload)


@given(some.recursive(some.none() | some.booleans() | NUMBERS | TEXT, some.lists))
def test_any_json_decodes_or_raises_malformed_message(value: object) -> None:
    found = json.dumps({"kind": "goodbye/2", "slot": 1, "epoch": 1, "next": {"t-1": value}})
    try:
        decode_inbound(found.encode())
    except MalformedMessage as found:
        assert "next" in found.reason  # noqa: PT017 - it need not raise: a number is fine


REPORT = {
    "kind": "report/3",
    "slot": 0,
    "epoch": 1,
    "term": 0,
    "ready": True,
    "reading": {"t-0": 1},
    "writing": {},
}


@pytest.mark.parametrize(
    "fault",
    [
        {"slot": 2**31},
        {"epoch": 2**63},
        {"rate": float("inf")},
        {"rate": float("nan")},
        {"reading": {"t-0": 2**63}},
        {"reading": {"t": 1}},
        {"reading": ["t-0"]},
        {"writing": {"t": None}},
        {"writing": {"t": {"state": "landing", "committed": {"t-0": -1}}}},
        {"writing": None},
        {"ready": "perhaps"},
    ],
)
def test_a_field_out_of_range_is_malformed_and_named(fault: dict[str, object]) -> None:
    """Values that cannot be encoded again must be rejected: they would fail later."""
    decode_inbound(json.dumps(REPORT).encode())
    with pytest.raises(MalformedMessage, match=next(iter(fault))) as found:
        decode_inbound(json.dumps({**REPORT, **fault}).encode())
    assert not isinstance(found.value, UnknownKind)


def test_a_message_of_an_unknown_kind_may_have_any_fields() -> None:
    """A later version may have other fields, so it is unknown, not malformed."""
    with pytest.raises(UnknownKind, match="measurement/2"):
        decode_measurement(b'{"kind":"measurement/1","topic":"t"}')
    with pytest.raises(UnknownKind, match="report/9"):
        decode_inbound(b'{"kind":"report/9"}')


def test_a_message_of_another_topic_is_of_an_unknown_kind() -> None:
    with pytest.raises(UnknownKind):
        decode_inbound(wire.encode(StateQuery(term=1)))
    with pytest.raises(UnknownKind):
        decode_command(wire.encode(Claim(controller="c", limit=builders.LIMIT)))


def test_additional_fields_are_ignored() -> None:
    found = decode_inbound(json.dumps({**REPORT, "mood": "fine"}).encode())
    assert found == decode_inbound(json.dumps(REPORT).encode())


def test_a_hello_of_an_older_version_names_what_to_do() -> None:
    hello = b'{"kind":"hello/1","slot":0,"process":"hello/9","version":"0.1"}'
    with pytest.raises(UnknownKind, match=r"commands in GROUP\.metadata.*end it, and start one"):
        decode_inbound(hello)
    for other in (hello.replace(b"hello/1", b"hello/9"), b'{"process":"hello/1"}', b"[]"):
        with pytest.raises(MalformedMessage, match=r"^(?!hello)"):
            decode_inbound(other)


def test_an_order_outside_its_topic_names_what_to_do() -> None:
    """Of an older version, or of somebody who may report, and not give orders."""
    order = b'{"kind":"freeze/1","frozen":true,"by":"x"}'
    with pytest.raises(UnknownKind, match=r"followed in GROUP\.group-orders alone.*no right"):
        decode_inbound(order)


def test_a_hello_without_a_time_has_none() -> None:
    found = decode_inbound(b'{"kind":"hello/2","slot":0,"process":"p","version":"0.1"}')
    assert found == Hello(slot=Slot(0), process="p", version="0.1", sent_ms=0)
