"""Sample records: orders of a shop, of a given size and cheap to make."""

from random import Random

from binwright.protocol.errors import StreamError

MIN_RECORD_BYTES = 200
"""Enough for the fields with the longest number in each."""

_NOISE_BYTES = 1 << 20  # longer than the window of compression codecs
_STRIDE = 7_919  # a prime: consecutive records share no noise


class SampleRecords:
    """An endless sequence of keys and JSON values, numbered from 0.

    Key and value have `record_bytes` together. Half of each byte is random, so compression saves at
    most about a half.
    """

    def __init__(self, record_bytes: int, seed: int = 0) -> None:
        if record_bytes < MIN_RECORD_BYTES:
            raise StreamError(
                f"record_bytes must be at least {MIN_RECORD_BYTES}, got {record_bytes}"
            )
        random = Random(seed)
        self._bytes = record_bytes
        self._noise = random.randbytes((_NOISE_BYTES + record_bytes) // 2).hex().encode()
        self._keys = [b"customer-%d" % number for number in range(1_000)]
        self._cents = [random.randrange(100, 100_000) for _ in range(1_009)]
        self._number = 0

    def make(self, now_ms: int) -> tuple[bytes, bytes]:
        """Return the next key and value; `now_ms` is the wall-clock time in it."""
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
