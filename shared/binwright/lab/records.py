"""Records that look like a shop's, of a given size and cheap to make."""

from random import Random

from binwright.core.errors import StreamError

LEAST_BYTES = 200
"""Room for the fields and the longest number in each."""

_NOISE_BYTES = 1 << 20  # longer than the window of the codecs that would see it again
_STRIDE = 7_919  # a prime: neighbours share no noise


class Records:
    """An endless row of keys and JSON values, `record_bytes` together, numbered from 0.

    Half of each byte is random, so compression gains at most about a half.
    """

    def __init__(self, record_bytes: int, seed: int = 0) -> None:
        if record_bytes < LEAST_BYTES:
            raise StreamError(f"record_bytes must be at least {LEAST_BYTES}, got {record_bytes}")
        random = Random(seed)
        self._bytes = record_bytes
        self._noise = random.randbytes((_NOISE_BYTES + record_bytes) // 2).hex().encode()
        self._keys = [b"customer-%d" % number for number in range(1_000)]
        self._cents = [random.randrange(100, 100_000) for _ in range(1_009)]
        self._number = 0

    def make(self, now_ms: int) -> tuple[bytes, bytes]:
        """Return the next key and value; `now_ms` is what its clock shows, wall time."""
        number, self._number = self._number, self._number + 1
        at = number * _STRIDE
        key = self._keys[at % len(self._keys)]
        units, cents = divmod(self._cents[number % len(self._cents)], 100)
        head = b'{"id":%d,"ts":%d,"customer":"%b","amount":%d.%02d,"currency":"EUR","note":"' % (
            number,
            now_ms,
            key,
            units,
            cents,
        )
        room = self._bytes - len(key) - len(head) - len(b'"}')
        at %= _NOISE_BYTES
        return key, b'%b%b"}' % (head, self._noise[at : at + room])
