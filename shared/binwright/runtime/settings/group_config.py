"""What a group is decided by, from its settings: for its controller, and for who looks at it."""

from dataclasses import replace

from binwright.group.config import ControllerSettings, GroupConfig
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.group import LATE_TARGETS, STALE_WINDOWS, Settings
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.tables.targets import TableNames, Targets


def group_config(settings: Settings, given: frozenset[str] = frozenset()) -> GroupConfig:
    """Return what the group of these settings is decided by.

    Args:
        settings: Of the group.
        given: Those of the controller that the group's object gives: no order changes them.
    """
    return replace(
        GroupConfig.of(settings.controller, stale_s=settings.stale_s, on_time_s=settings.on_time_s),
        topics=settings.landed_topics,
        tables_of=TableNames(Targets(settings.tables)) if settings.tables else None,
        given=given,
    )


def config_of(controller: ControllerSettings | None = None) -> GroupConfig:
    """Return what a group is decided by of which no more is known; None: all are defaults."""
    return GroupConfig.of(
        controller or ControllerSettings(),
        stale_s=STALE_WINDOWS * MonitorSettings().window_s,
        on_time_s=LATE_TARGETS * LakeSettings().freshness_s,
    )
