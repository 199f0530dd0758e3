"""What people order, approve and may adopt: the records of the group's orders topic.

A standing order steers a group until it is lifted or its time is over. Each says who gave it, when
and why. Of the orders about the same thing the newest counts, and compaction retains it: they
outlive controllers. Kafka's right to write to the topic is the proof of an order; the name in it is
not.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, get_args

from immutables import Map
from pydantic import Field

from binwright.protocol.fields import LATEST_MS, Amount, Number, Offset, Offsets, SlotNumber
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import TopicName
from binwright.protocol.wire import Decode, decoder, key

NAME_LENGTH, REASON_LENGTH, CONDITION_LENGTH = 200, 500, 10_000
PersonName = Annotated[str, Field(max_length=NAME_LENGTH)]
Reason = Annotated[str, Field(max_length=REASON_LENGTH)]
Moment = Annotated[int, Field(ge=0, le=LATEST_MS)]
PartitionNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]
SettingValue = Annotated[str, Field(max_length=100)]
ConditionText = Annotated[str, Field(max_length=CONDITION_LENGTH)]
MOST_CONSUMERS = 10_000
Consumers = Annotated[int, Field(ge=1, le=MOST_CONSUMERS)]
OperationId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]

BadValueKind = Literal["malformed", "incompatible", "schema_unknown", "too_large"]
BadKind = Literal[
    BadValueKind,
    "key_malformed",
    "key_incompatible",
    "key_schema_unknown",
    "key_too_large",
    "tombstone",
]
"""Why a record is bad: its class."""

SettingName = Literal["packing", "replan_interval_s"]
"""Settings of the controller that a proposal changes."""
PRICED = re.compile(r"sticky:([0-9]{1,4}(?:\.[0-9]{1,6})?)")
PRICES = 0.001, 1000.0
INTERVALS_S = 1.0, 86_400.0

MAX_ORDERS = 10_000
"""About different partitions, topics and consumers of a group; further ones are not followed."""
MAX_SHOWN, MAX_TEXT = 20, 500
"""Lines of a `Held`, and characters of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinOrder:
    """A partition, or every partition of a topic that has no pin of its own, has this reader."""

    topic: TopicName  # of the partition
    partition: PartitionNumber | None  # null: all of the topic
    slot: SlotNumber | None  # the only consumer that reads it; null: the pin is lifted
    by: PersonName  # a name for people; it proves nothing
    reason: Reason = ""  # for people
    at_ms: Moment = 0  # wall clock, ms since 1970
    until_ms: Moment = 0  # when it ends by itself, ms since 1970; 0: it does not
    kind: Literal["pin/1"] = "pin/1"
    KEY: ClassVar = "pin/{0.place}"

    @property
    def place(self) -> str:
        """Return what is pinned, as the record key has it: `orders`, or `orders/3`."""
        return self.topic if self.partition is None else f"{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonOrder:
    """A consumer gets nothing more (cordoned), or gives up all that it has, and ends (drained)."""

    slot: SlotNumber
    state: Literal["cordoned", "drained", "open"]  # open: the order is lifted
    by: PersonName  # a name for people; it proves nothing
    reason: Reason = ""  # for people
    at_ms: Moment = 0  # wall clock, ms since 1970
    until_ms: Moment = 0  # when it ends by itself, ms since 1970; 0: it does not
    kind: Literal["cordon/1"] = "cordon/1"
    KEY: ClassVar = "cordon/{0.slot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeOrder:
    """Nothing moves but what has no living reader."""

    frozen: bool  # false: the order is lifted
    by: PersonName  # a name for people; it proves nothing
    reason: Reason = ""  # for people
    at_ms: Moment = 0  # wall clock, ms since 1970
    until_ms: Moment = 0  # when it ends by itself, ms since 1970; 0: it does not
    kind: Literal["freeze/1"] = "freeze/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOrder:
    """So many consumers read, whatever the load needs."""

    consumers: Consumers | None  # null: the order is lifted
    by: PersonName  # a name for people; it proves nothing
    reason: Reason = ""  # for people
    at_ms: Moment = 0  # wall clock, ms since 1970
    until_ms: Moment = 0  # when it ends by itself, ms since 1970; 0: it does not
    kind: Literal["scale/1"] = "scale/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptOrder:
    """A setting of the controller has the value that a proposal gives it.

    It holds while the settings give the value that it replaces: they come before it.
    """

    setting: SettingName  # of the controller
    value: SettingValue | None  # that it has; null: the order is lifted
    replaces: SettingValue = ""  # the value that the settings give
    proposal: Offset = 0  # number of the `Savings` that propose it
    by: PersonName  # a name for people; it proves nothing
    reason: Reason = ""  # for people
    at_ms: Moment = 0  # wall clock, ms since 1970
    until_ms: Moment = 0  # when it ends by itself, ms since 1970; 0: it does not
    kind: Literal["adopt/1"] = "adopt/1"
    KEY: ClassVar = "adopt/{0.setting}"


GroupOrder = PinOrder | CordonOrder | FreezeOrder | ScaleOrder | AdoptOrder


# --- other records -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A person approves exactly this plan."""

    plan: Offset  # its number
    by: str  # a name for people; it proves nothing
    kind: Literal["approved/1"] = "approved/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOrder:
    """A person pauses a table, or lets it land again: its newest order counts."""

    topic: TopicName  # the table's name: its topic's, if it has no other one
    paused: bool  # false: it lands again
    by: str  # a name for people; it proves nothing
    reason: str = ""  # for people
    at_ms: Number = 0  # wall clock, ms since 1970
    kind: Literal["table-order/1"] = "table-order/1"
    KEY: ClassVar = "table-order/{0.table}"

    @property
    def table(self) -> str:
        """Return the table that is meant."""
        return self.topic


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOrder:
    """A person has a table's writer do a piece of work on the table, once, beside landing.

    The newest about a table counts: until it ends there is no other one.
    """

    table: TopicName  # its name
    id: OperationId  # unique; the same order read again begins nothing
    work: Literal["replay", "erase", "backfill"]  # as of the report's `TableOperation`
    classes: tuple[BadKind, ...] = ()  # of bad records; empty: all of them
    since_ms: Moment = 0  # only those that landed, or are of, then or later, ms since 1970
    offsets: Offsets = field(default_factory=dict)  # back-filled from here on; empty: all are
    where: ConditionText = ""  # on the table's columns: which rows are erased; empty: none
    bad_where: ConditionText = ""  # on those of bad records: which of them; empty: by `where`
    dry_run: bool = False  # nothing changes: what would is counted
    by: PersonName  # a name for people; it proves nothing
    reason: Reason = ""  # for people
    at_ms: Moment = 0  # wall clock, ms since 1970
    kind: Literal["table-operation/1"] = "table-operation/1"
    KEY: ClassVar = "table-operation/{0.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCost:
    """What a rule would have cost the load, and what it would have done for it."""

    rule: str  # binwright, or a policy of `binwright lab simulate`
    change: str = ""  # of the settings, as NAME=VALUE; empty: the settings as they are
    replica_minutes: Amount  # minutes of all consumers that run
    within_sla: Amount  # share of the bytes that are read in time, 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """What a group's load of a past time costs under its settings, other rules, other settings.

    For people: no process acts on it; its record's offset is its number.
    """

    from_ms: Number  # wall clock, ms since 1970
    until_ms: Number  # wall clock, ms since 1970
    sla_s: Amount  # within which a record is to be read, seconds
    own: SimulatedCost  # of the group's controller with its settings
    others: tuple[SimulatedCost, ...] = ()  # of other rules
    proposed: SimulatedCost | None = None  # the change that costs least; null: none is worth it
    replaces: str = ""  # what the settings give where it is proposed otherwise; empty: not known
    kind: Literal["savings/1"] = "savings/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerOrders:
    """A controller has taken over what a former version kept in GROUP.metadata; no other does."""

    taken: Number  # how many records, which precede this one
    kind: Literal["former-orders/1"] = "former-orders/1"


OrderRecord = GroupOrder | Approved | TableOrder | OperationOrder | Savings | FormerOrders

decode_order: Decode[OrderRecord] = decoder(OrderRecord)


# --- what orders say -----------------------------------------------------------------------------


def subject(order: GroupOrder) -> str:
    """Return what an order is about, as the record key has it."""
    return key(order).decode()


def is_lifted(order: GroupOrder) -> bool:
    """Whether this order only ends the one before it."""
    match order:
        case PinOrder(slot=slot):
            return slot is None
        case CordonOrder(state=state):
            return state == "open"
        case FreezeOrder(frozen=frozen):
            return not frozen
        case AdoptOrder(value=value):
            return value is None
        case _:
            return order.consumers is None


def describe(order: GroupOrder) -> str:
    """Return what an order says, in words: `orders-3 is pinned to consumer 2`."""
    match order:
        case PinOrder(slot=None):
            return f"the pin of {pinned(order)} is lifted"
        case PinOrder(slot=slot):
            return f"{pinned(order)} is pinned to consumer {slot}"
        case CordonOrder(slot=slot, state=state):
            return f"consumer {slot} is {state}"
        case FreezeOrder(frozen=frozen):
            return "moves are frozen" if frozen else "the freeze is lifted"
        case AdoptOrder(setting=setting, value=None):
            return f"controller.{setting} is what the settings give"
        case AdoptOrder(setting=setting):
            change = f"controller.{setting} is {order.value} instead of {order.replaces}"
            return f"{change}, as proposal {order.proposal} has it"
        case ScaleOrder(consumers=None):
            return "the number of consumers follows the load"
        case _:
            return f"scaled to {order.consumers} consumer{'' if order.consumers == 1 else 's'}"


def pinned(order: PinOrder) -> str:
    """Return what a pin is about: `orders-3`, or `topic orders`."""
    if order.partition is None:
        return f"topic {order.topic}"
    return str(TopicPartition(order.topic, order.partition))


@dataclass(frozen=True, slots=True)
class StandingOrders:
    """The newest order about each thing; those that are lifted are left out."""

    by_subject: Mapping[str, GroupOrder] = field(default_factory=Map)

    def apply(self, order: GroupOrder) -> "StandingOrders":
        """Return the orders with a newer one; a new thing is not taken beyond `MAX_ORDERS`."""
        about, known = subject(order), Map(self.by_subject)
        if is_lifted(order):
            return StandingOrders(known.delete(about)) if about in known else self
        is_single = isinstance(order, FreezeOrder | ScaleOrder | AdoptOrder)
        if about not in known and len(known) >= MAX_ORDERS and not is_single:
            return self
        return StandingOrders(known.set(about, order))

    def in_force(self, now_ms: int) -> tuple[GroupOrder, ...]:
        """Return those whose time is not over, sorted by what they are about."""
        standing = sorted(self.by_subject.items())
        return tuple(each for _, each in standing if not each.until_ms or now_ms < each.until_ms)


def signed(order: GroupOrder) -> str:
    """Return what an order says, whose it is, until when it holds, and why."""
    until = f" until {moment(order.until_ms)}" if order.until_ms else ""
    reason = f": '{order.reason}'" if order.reason else ""
    return f"{describe(order)} by {order.by}{until}{reason}"


def moment(at_ms: int) -> str:
    """Return a moment to the minute, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


# --- settings that are adopted -------------------------------------------------------------------


def setting_text(value: str | float) -> str:
    """Return a setting's value as changes and orders have it."""
    return value if isinstance(value, str) else f"{value:g}"


def parse_change(change: str) -> tuple[SettingName, str]:
    """Return the setting and the value of a change, as NAME=VALUE.

    Raises:
        ValueError: It is not one that proposals change, or the value is out of range.
    """
    name, _, value = change.partition("=")
    for setting in get_args(SettingName):
        if name == setting:
            if fault := value_fault(setting, value):
                raise ValueError(fault)
            return setting, value
    raise ValueError(f"controller.{name} is not changed by proposals")


def value_fault(setting: SettingName, value: str) -> str:
    """Return why a setting may not have a value by an order; empty: it may."""
    if setting == "packing":
        priced = PRICED.fullmatch(value)
        low, high = PRICES
        form, number = f"sticky:PRICE with a price from {low:g} to {high:g}", priced and priced[1]
    else:
        low, high = INTERVALS_S
        form, number = f"{low:g} to {high:g} seconds", value
    try:
        in_range = low <= float(number or "") <= high
    except ValueError:
        in_range = False
    return "" if in_range else f"controller.{setting} = {value!r} is out of range: expected {form}"
