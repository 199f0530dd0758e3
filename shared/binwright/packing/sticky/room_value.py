"""The value of room: the expected cost of a consumer that may be overloaded next."""

from dataclasses import dataclass
from math import erfc, exp, pi, sqrt

PENALTY = 0.1
"""The cost of any overload besides the rate that must leave, in capacities: more moves with it."""
NEGLIGIBLE = 0.0005
"""A cost that is too small to matter, in capacities."""
FAR = 4.0
"""With room for this many standard deviations the cost is taken to be 0."""


@dataclass(frozen=True, slots=True)
class RoomValue:
    """V of `docs/design/packing.md`, in bytes/s of moved rate.

    V(x) = E[(z - x)+] + PENALTY C P(z > x) at room x, where z, the change of a consumer's load, is
    normal with mean 0. V is decreasing and convex, so it favours an even spread.
    """

    deviation: float  # standard deviation of z, bytes/s, > 0
    penalty: float  # bytes/s
    ample_room: float  # the room, bytes/s, beyond which V is negligible

    @classmethod
    def for_deviation(cls, deviation: float, capacity: float) -> "RoomValue":
        """Return V for a capacity and a standard deviation of loads' changes, both bytes/s."""
        value = cls(deviation, PENALTY * capacity, 0.0)
        low, high = 0.0, FAR * deviation
        for _ in range(12):
            middle = (low + high) / 2
            if value(middle) > NEGLIGIBLE * capacity:
                low = middle
            else:
                high = middle
        return cls(deviation, PENALTY * capacity, high)

    def __call__(self, room: float) -> float:
        """Return V at a room, bytes/s."""
        z = room / self.deviation
        if z >= FAR:
            return 0.0
        tail = erfc(z / _ROOT_2) / 2
        density = exp(-z * z / 2) / _ROOT_2_PI
        return self.deviation * (density - z * tail) + self.penalty * tail

    def cost_of_taking(self, room: float, rate: float) -> float:
        """Return the cost, bytes/s, of reducing a room by `rate`."""
        left = room - rate
        return self(left) - self(room) if left < FAR * self.deviation else 0.0


_ROOT_2 = sqrt(2)
_ROOT_2_PI = sqrt(2 * pi)
