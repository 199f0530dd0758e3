"""No more consumers than allowed."""

from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.packing.cap import within

P = [TopicPartition("t", n) for n in range(4)]
RATES = {p: BytesPerSecond(rate) for p, rate in zip(P, (40.0, 10.0, 30.0, 20.0), strict=True)}


def test_what_fits_stays() -> None:
    target = {p: Slot(n % 2) for n, p in enumerate(P)}
    assert within(target, RATES, 2) == target


def test_what_is_beyond_goes_to_the_least_loaded() -> None:
    target = {P[0]: Slot(0), P[1]: Slot(1), P[2]: Slot(2), P[3]: Slot(3)}
    assert within(target, RATES, 2) == {P[0]: 0, P[1]: 1, P[2]: 1, P[3]: 0}
