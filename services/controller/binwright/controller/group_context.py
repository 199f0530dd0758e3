"""What a controller needs to lead a group, from the group's settings."""

from dataclasses import dataclass

from binwright.group.config import GroupConfig
from binwright.packing.catalogue import Packing, algorithm
from binwright.protocol.errors import PackingError, SettingsError
from binwright.protocol.selection import METADATA_SUFFIX
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.group_config import group_config
from binwright.runtime.traces import Trace, untraced


@dataclass(frozen=True, slots=True)
class GroupContext:
    """A group as its controller needs it: its topics, its configuration and its packing."""

    metadata_topic: str
    commands_topic: str
    landing_topic: str
    orders_topic: str
    needs_topic: str
    config: GroupConfig
    packing: Packing
    trace: Trace = untraced  # of its plans

    @property
    def group(self) -> str:
        """Return the group's name."""
        return self.metadata_topic.removesuffix(METADATA_SUFFIX)


def group_context(
    settings: Settings, given: frozenset[str] = frozenset(), trace: Trace = untraced
) -> GroupContext:
    """Return what a controller needs to lead the group of these settings.

    Args:
        settings: Of the group.
        given: Those of the controller that the group's object gives: no order changes them.
        trace: Takes a span for each plan.

    Raises:
        SettingsError: The packing of the settings does not exist, or cannot run here.
    """
    try:
        packing = algorithm(settings.controller.packing)
    except PackingError as exc:
        raise SettingsError(f"controller.packing: {exc}") from exc
    return GroupContext(
        metadata_topic=settings.metadata_topic,
        commands_topic=settings.commands_topic,
        landing_topic=settings.landing_topic,
        orders_topic=settings.orders_topic,
        needs_topic=settings.needs_topic,
        config=group_config(settings, given),
        packing=packing,
        trace=trace,
    )
