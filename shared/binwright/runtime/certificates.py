"""When a certificate expires."""

import ssl

# The standard library parses certificates of a connection only, and of a file for its own tests.
from _ssl import _test_decode_cert  # type: ignore[attr-defined]  # it is in no stub
from collections.abc import Iterator
from pathlib import Path

from binwright.runtime.clock import wall_ms
from binwright.runtime.metrics import Sample


def certificate_samples(file: Path | None) -> Iterator[Sample]:
    """Yield how long the certificate in a file is still valid; nothing if there is no file."""
    if file is not None:
        yield Sample("binwright_client_certificate_expires_seconds", _valid_s(file))


def _valid_s(file: Path) -> float:
    """Return for how many seconds the first certificate of a PEM file is valid; 0: unreadable."""
    try:
        ends_s = ssl.cert_time_to_seconds(str(_test_decode_cert(str(file))["notAfter"]))
    except OSError:  # ssl.SSLError is one
        return 0.0
    return ends_s - wall_ms() / 1000
