"""Gives an order to a group: a message on its orders topic.

`binwright group` and the page give them.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypedDict, get_args

from binwright.cli.moments import is_of_today, parse_moment
from binwright.look.commands.approve import user_name
from binwright.look.follower import Connect, GroupFollower, group_topic
from binwright.look.group_view import GroupView
from binwright.look.orders_topic import publish_order
from binwright.look.status import Status, status
from binwright.protocol.errors import ExternalError, SettingsError, UserError
from binwright.protocol.fields import LATEST_MS
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import (
    NAME_LENGTH,
    REASON_LENGTH,
    AdoptOrder,
    CordonOrder,
    GroupOrder,
    PinOrder,
    ScaleOrder,
    SettingName,
    describe,
    is_lifted,
    parse_change,
    setting_text,
    subject,
)
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings

FOR = re.compile(r"([1-9]\d{0,4})(m|h|d)")

Make = Callable[[Status], GroupOrder]
"""Returns the order, given the group as it is; raises `UserError`."""


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """What every order has, as options give it."""

    group: str | None
    servers: str | None
    timeout_s: float
    reason: str = ""
    until: str = ""


async def give_order(
    connect: Connect, settings: Settings, group: str, make: Make, timeout_s: float
) -> GroupOrder:
    """Publish an order to a group: it stands in the topic once this returns.

    Args:
        connect: Opens the bus.
        settings: The order has to fit them where they are the group's.
        group: Its name.
        make: Makes the order.
        timeout_s: How long Kafka may take.

    Raises:
        UserError: The group is as wanted already, or has nothing of the name.
        ExternalError: There is no such group, or Kafka does not answer in time.
    """
    view = GroupView()
    own = group == settings.group
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(connect())
        try:
            async with asyncio.timeout(timeout_s):
                topic = await group_topic(bus, group)
                follower = await stack.enter_async_context(
                    GroupFollower(bus, {topic: view}, settings.monitor.topic)
                )
                await follower.catch_up()
                topics = settings.landed_topics if own else None
                order = make(status(group, view, wall_ms(), topics))
                _check_changes(view, order)
                if own:
                    check_slot(order, settings.controller.max_slots)
                    check_replaces(order, settings)
                await publish_order(bus, group, order)
        except TimeoutError as exc:
            raise ExternalError(f"Kafka did not take the order within {timeout_s:g} s") from exc
    return order


def _check_changes(view: GroupView, order: GroupOrder) -> None:
    if is_lifted(order) and subject(order) not in view.orders.by_subject:
        raise UserError(f"no order of this group is about that: {describe(order)} already")


def check_slot(order: GroupOrder, max_slots: int) -> None:
    """Raise `UserError` for an order about a consumer that the settings do not allow."""
    slot = order.slot if isinstance(order, PinOrder | CordonOrder) else None
    if slot is not None and slot >= max_slots:
        raise UserError(f"there is no consumer {slot}: controller.max_slots is {max_slots}")
    if isinstance(order, ScaleOrder) and (order.consumers or 0) > max_slots:
        raise UserError(f"{order.consumers} are too many: controller.max_slots is {max_slots}")


def check_replaces(order: GroupOrder, settings: Settings) -> None:
    """Raise `UserError` for the adoption of a change of settings that are others by now."""
    if not isinstance(order, AdoptOrder) or order.value is None:
        return
    present = setting_text(getattr(settings.controller, order.setting))
    if present != order.replaces:
        raise UserError(
            f"proposal {order.proposal} is for controller.{order.setting} = {order.replaces}, and "
            f"the settings give {present}: `binwright shadow own --publish` makes another"
        )


def until_ms(text: str, now_ms: int) -> int:
    """Return when an order ends: `30m`, `2h`, `1d`, `18:00` (UTC, the next), or a date with a time.

    Returns:
        Milliseconds since 1970; 0 for an empty text: it does not end.

    Raises:
        SettingsError: It is no time, or in the past.
    """
    if not text:
        return 0
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    try:
        end = parse_moment(text, now, FOR, sign=1)
        if end <= now and is_of_today(text):
            end += timedelta(days=1)
        until = round(end.timestamp() * 1000)
    except (ValueError, OverflowError) as exc:
        raise SettingsError(
            f"--until: {text!r} is no time: expected 30m, 2h, 1d, 18:00 (UTC) or 2026-11-26T18:00"
        ) from exc
    if not now_ms < until <= LATEST_MS:
        raise SettingsError(f"--until: {text} is over, or too far away")
    return until


def parse_pinned(text: str, seen: Status) -> tuple[str, int | None]:
    """Return the topic and number that `orders-3` names, or a topic and None for all of it.

    Raises:
        UserError: The group has no such partition or topic.
    """
    numbers = [(each.topic, each.partition) for t in seen.tables for each in t.partitions]
    topics = {topic for table in seen.tables for topic in table.topics}
    if text in topics:
        return text, None
    try:
        partition = TopicPartition.parse(text)
    except ValueError:
        partition = None
    if partition is not None and partition in numbers:
        return partition
    known = ", ".join(sorted(topics)[:10]) or "none"
    raise UserError(f"{text}: no partition or topic of group {seen.group}; its topics: {known}")


def pin_order(seen: Status, who: "Signature", pinned: str, consumer: int) -> PinOrder:
    """Return an order that has one consumer read a partition or topic.

    Raises:
        UserError: There is none of the name, or the consumer is cordoned or drained.
    """
    topic, number = parse_pinned(pinned, seen)
    for each in seen.orders:
        if each.about == f"cordon/{consumer}":
            raise UserError(f"{each.text}: `binwright group uncordon {consumer}` first")
    return PinOrder(topic=topic, partition=number, slot=Slot(consumer), **who)


def unpin_order(seen: Status, who: "Signature", pinned: str) -> PinOrder:
    """Return an order that ends a pin; the partition may be gone by now.

    Raises:
        UserError: It is not pinned.
    """
    about = {each.about for each in seen.orders}
    if f"pin/{pinned}" in about:
        return PinOrder(topic=pinned, partition=None, slot=None, **who)
    try:
        topic, number = TopicPartition.parse(pinned)
    except ValueError as exc:
        raise UserError(f"{pinned} is not pinned") from exc
    if f"pin/{topic}/{number}" not in about:
        raise UserError(f"{pinned} is not pinned")
    return PinOrder(topic=topic, partition=number, slot=None, **who)


def adopt_order(seen: Status, who: "Signature", number: int) -> AdoptOrder:
    """Return an order that gives a setting the value of a proposal.

    Raises:
        UserError: It is not the proposal that is published, or is adopted already, or no order may
            give that value.
    """
    savings = seen.savings
    if savings is None or savings.proposed is None:
        raise UserError(f"nothing is proposed to group {seen.group}: see `binwright shadow own`")
    if seen.adoptable is None:
        raise UserError(
            f"the proposal to group {seen.group} is adopted, or of a version that did not publish "
            "what it replaces: `binwright shadow own --publish` makes another"
        )
    if number != seen.adoptable:
        raise UserError(
            f"proposal {number} is not the one that is published to group {seen.group}: that is "
            f"{seen.adoptable}, {savings.proposed.change}"
        )
    try:
        setting, value = parse_change(savings.proposed.change)
    except ValueError as exc:
        raise UserError(f"proposal {number} cannot be adopted: {exc}") from exc
    return AdoptOrder(
        setting=setting, value=value, replaces=savings.replaces, proposal=number, **who
    )


def unadopt_order(who: "Signature", setting: str) -> AdoptOrder:
    """Return an order that lets the settings give a setting again.

    Raises:
        UserError: It is not one that can be adopted.
    """
    names = get_args(SettingName)
    for name in names:
        if setting == name:
            return AdoptOrder(setting=name, value=None, **who)
    raise UserError(f"{setting} is not one of {', '.join(names)}")


class Signature(TypedDict):
    """Who orders, why, when, and until when."""

    by: str
    reason: str
    at_ms: int
    until_ms: int


def signature(options: OrderOptions, now_ms: int, by: str | None = None) -> Signature:
    """Return who gives an order now (the user unless named), and why.

    Raises:
        SettingsError: An option is wrong.
    """
    if len(options.reason) > REASON_LENGTH:
        raise SettingsError(f"--reason: {len(options.reason)} characters, {REASON_LENGTH} at most")
    return Signature(
        by=(by or user_name())[:NAME_LENGTH],
        reason=options.reason,
        at_ms=now_ms,
        until_ms=until_ms(options.until, now_ms),
    )
