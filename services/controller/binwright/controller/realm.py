"""From settings to what a reign rules, and by which rules."""

from binwright.controller.steer import Realm
from binwright.core.model import BytesPerSecond, Slot
from binwright.core.rules import Rules
from binwright.lab.packings import packing
from binwright.shell.settings import Settings

STALE_WINDOWS = 3


def rules(settings: Settings) -> Rules:
    """Return the machine's rules as the settings say them."""
    chosen = settings.controller
    return Rules(
        limit=BytesPerSecond(chosen.limit_bytes_per_s),
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
        limits={Slot(s): BytesPerSecond(limit) for s, limit in chosen.slot_limits.items()},
        topics=settings.landed,
    )


def realm(settings: Settings) -> Realm:
    """Return the group of these settings.

    Raises:
        UserError: The settings name a packing that does not exist.
    """
    return Realm(
        metadata_topic=settings.metadata_topic,
        landing_topic=settings.landing_topic,
        needs_topic=settings.needs_topic,
        rules=rules(settings),
        packing=packing(settings.controller.packing),
    )
