"""What room is worth: the cost to expect of a consumer that may be overfull the next time."""

from dataclasses import dataclass
from math import erfc, exp, pi, sqrt

PENALTY = 0.1
"""What any overload costs besides what must leave, in capacities: something else moves with it."""
NEGLIGIBLE = 0.0005
"""A cost too small to choose by, in capacities."""
FAR = 4.0
"""So many standard deviations away an overload is not worth thinking of."""


@dataclass(frozen=True, slots=True)
class Value:
    """V of `docs/packing.md`, in bytes/s of moved speed.

    V(x) = E[(z - x)+] + PENALTY C P(z > x) at room x, where z, the change of a consumer's load, is
    normal with mean 0. It falls with x, ever more slowly, so it asks for an even spread.
    """

    deviation: float  # standard deviation of z, bytes/s, > 0
    penalty: float  # bytes/s
    enough: float  # the room, bytes/s, beyond which V is negligible

    @classmethod
    def of(cls, deviation: float, capacity: float) -> "Value":
        """Return V for consumers of a capacity whose loads change by a standard deviation."""
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
        """Return the cost to expect with this much room."""
        z = room / self.deviation
        if z >= FAR:
            return 0.0
        tail = erfc(z / _ROOT_2) / 2
        density = exp(-z * z / 2) / _ROOT_2_PI
        return self.deviation * (density - z * tail) + self.penalty * tail

    def taking(self, room: float, rate: float) -> float:
        """Return what it costs to take `rate` away from a room."""
        left = room - rate
        return self(left) - self(room) if left < FAR * self.deviation else 0.0


_ROOT_2 = sqrt(2)
_ROOT_2_PI = sqrt(2 * pi)
