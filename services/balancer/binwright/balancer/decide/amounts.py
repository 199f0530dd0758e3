"""The resources of a broker, and one number for each."""

from math import inf
from typing import Final, Literal, NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
"""A broker's `node.id`."""

Resource = Literal["disk", "network in", "network out", "cpu"]

RESOURCES: Final[tuple[Resource, ...]] = ("disk", "network in", "network out", "cpu")
"""In the order of the fields of `Amounts`."""

NETWORK: Final[tuple[Resource, ...]] = ("network in", "network out")


class Amounts(NamedTuple):
    """One number for each resource: a capacity, a load, or a share, as the name of it tells.

    Attributes:
        disk: Bytes.
        network_in: Bytes/s that are written to leaders and fetched by followers here.
        network_out: Bytes/s that followers elsewhere and consumers fetch from leaders here.
        cpu: Cores.
    """

    disk: float
    network_in: float
    network_out: float
    cpu: float

    def of(self, resource: Resource) -> float:
        """Return the number of one resource."""
        return self[RESOURCES.index(resource)]

    def plus(self, other: "Amounts") -> "Amounts":
        """Return the sums."""
        return Amounts(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Amounts(0.0, 0.0, 0.0, 0.0)
UNLIMITED = Amounts(inf, inf, inf, inf)
"""A capacity that is not known, or does not matter: no constraint, and no balance either."""
