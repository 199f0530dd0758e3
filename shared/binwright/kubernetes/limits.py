"""What the objects of one namespace may have together; older objects have it before younger."""

from typing import Annotated, Literal

from pydantic import Field

from binwright.protocol.section import Section

Count = Annotated[int, Field(ge=1)]
Limited = Literal["groups", "consumers", "topics", "partitions"]
OVER_LIMIT = "OverLimit"
"""The reason of a condition, and of an Event."""


class LimitSettings(Section):
    """What one namespace may have; of two objects that do not both fit, the older one is served."""

    groups: Count = 100
    """ConsumerGroups, and as many ScaledGroups."""
    consumers: Count = 1000
    """Consumers of its ConsumerGroups, by their `maxConsumers`."""
    topics: Count = 1000
    """Topics that its ConsumerGroups read, and as many that ScaledGroups do."""
    partitions: Count = 10_000
    """Partitions of these topics."""


def over_limit(namespace: str, what: Limited, limits: LimitSettings) -> str:
    """Return the sentence about an object that does not fit any more."""
    return (
        f"namespace {namespace} may have {getattr(limits, what)} {what} (kubernetes.limits.{what} "
        "of the settings), and older objects have them"
    )
