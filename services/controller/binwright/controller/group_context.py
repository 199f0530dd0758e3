"""Builds a group's controller configuration from settings."""

from binwright.controller.decide.config import ControllerConfig
from binwright.controller.leader import GroupContext
from binwright.packing.by_name import packing
from binwright.protocol.errors import PackingError, SettingsError
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings import Settings

STALE_WINDOWS = 3


def config(settings: Settings) -> ControllerConfig:
    """Return the state machine's configuration."""
    chosen = settings.controller
    return ControllerConfig(
        limits=chosen.limits,
        capacity=BytesPerSecond(chosen.capacity),
        look_again_s=chosen.look_again_s,
        consumer_timeout_s=chosen.consumer_timeout_s,
        start_timeout_s=chosen.start_timeout_s,
        plan_timeout_s=chosen.plan_timeout_s,
        repeat_s=chosen.repeat_s,
        stale_s=STALE_WINDOWS * settings.monitor.window_s,
        max_slots=chosen.max_slots,
        min_slots=chosen.min_slots,
        mode=chosen.mode,
        topics=settings.landed_topics,
    )


def group_context(settings: Settings) -> GroupContext:
    """Return what a controller needs to lead the group of these settings.

    Raises:
        SettingsError: The packing of the settings does not exist, or cannot run here.
    """
    try:
        chosen = packing(settings.controller.packing)
    except PackingError as exc:
        raise SettingsError(f"controller.packing: {exc}") from exc
    return GroupContext(
        metadata_topic=settings.metadata_topic,
        landing_topic=settings.landing_topic,
        needs_topic=settings.needs_topic,
        config=config(settings),
        packing=chosen,
    )
