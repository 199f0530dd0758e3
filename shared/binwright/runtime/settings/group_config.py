"""What a group is decided by, from its settings: for its controller, and for who looks at it."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from binwright.group.config import ControllerConfig
from binwright.protocol.daily_windows import DailyWindow
from binwright.protocol.model import Slot
from binwright.protocol.orders import PinOrder
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.controller import ControllerSettings
from binwright.runtime.settings.group import LATE_TARGETS, STALE_WINDOWS, Settings
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.runtime.settings.targets import TableNames, Targets


def group_config(settings: Settings, given: frozenset[str] = frozenset()) -> ControllerConfig:
    """Return what the group of these settings is decided by.

    Args:
        settings: Of the group.
        given: Those of the controller that the group's object gives: no order changes them.
    """
    return _config(
        settings.controller,
        stale_s=settings.stale_s,
        on_time_s=settings.on_time_s,
        topics=settings.landed_topics,
        tables_of=TableNames(Targets(settings.tables)) if settings.tables else None,
        given=given,
    )


def unknown_config() -> ControllerConfig:
    """Return what a group is decided by whose settings are not known: the defaults."""
    return _config(
        ControllerSettings(),
        stale_s=STALE_WINDOWS * MonitorSettings().window_s,
        on_time_s=LATE_TARGETS * LakeSettings().freshness_s,
    )


def _config(controller: ControllerSettings, **others: Any) -> ControllerConfig:
    derived: dict[str, Any] = {
        "topics": None,
        "tables_of": None,
        "given": frozenset[str](),
        "pins": tuple(_pins(controller)),
        "frozen_hours": tuple(map(DailyWindow.parse, controller.frozen_hours)),
        **others,
    }
    same = {
        field.name: getattr(controller, field.name)
        for field in fields(ControllerConfig)
        if field.name not in derived
    }
    return ControllerConfig(**same, **derived)


def _pins(controller: ControllerSettings) -> Iterator[PinOrder]:
    for pin in controller.pins:
        for number in (None,) if pin.partitions is None else pin.partitions:
            yield PinOrder(
                topic=pin.topic, partition=number, slot=Slot(pin.slot), by="controller.pins"
            )
