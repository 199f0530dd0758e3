"""When a certificate expires, and certificates that are read again after they have changed."""

import ssl

# The standard library parses certificates of a connection only, and of a file for its own tests.
from _ssl import _test_decode_cert  # type: ignore[attr-defined]  # it is in no stub
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from binwright.protocol.log_events import LogEvent
from binwright.runtime.clock import wall_ms
from binwright.runtime.logs import log
from binwright.runtime.metrics import CLIENT_CERTIFICATE_EXPIRES_SECONDS, Sample

CERTIFICATES_RENEWED = LogEvent.info(
    "certificates.renewed",
    "Files of kafka.ssl_* have changed: connections to Kafka that begin now use them.",
)
CERTIFICATES_UNREADABLE = LogEvent.warning(
    "certificates.unreadable",
    "Files of kafka.ssl_* have changed and cannot be used, or do not fit together: those before "
    "are used until they do.",
)


class RenewedContext(ssl.SSLContext):
    """Reads its files again for a connection that begins after one of them has changed.

    A context cannot forget an authority, so a new one takes its place. While the files do not fit
    together (they are replaced one after the other), the last that did stay in use.
    """

    def __new__(
        cls, protocol: int, files: Sequence[Path], read: Callable[[], ssl.SSLContext]
    ) -> Self:
        """Make a context of the protocol: `ssl.PROTOCOL_TLS_CLIENT`, or that of servers."""
        del files, read
        return super().__new__(cls, protocol)

    def __init__(
        self, protocol: int, files: Sequence[Path], read: Callable[[], ssl.SSLContext]
    ) -> None:
        """Read the files; raise `OSError`."""
        del protocol
        self._files, self._read = files, read
        self._versions = self._file_versions()
        self._latest = read()

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection, for asyncio."""
        try:
            versions = self._file_versions()
            if versions != self._versions:
                self._latest, self._versions = self._read(), versions
                log(CERTIFICATES_RENEWED, files=[str(file) for file in self._files])
        except OSError as exc:
            log(CERTIFICATES_UNREADABLE, reason=str(exc))
        return self._latest.wrap_bio(*args, **options)

    def _file_versions(self) -> list[tuple[int, int, int]]:
        stats = [file.stat() for file in self._files]
        return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in stats]


def certificate_samples(file: Path | None) -> Iterator[Sample]:
    """Yield how long the certificate in a file is still valid; nothing if there is no file."""
    if file is not None:
        yield Sample(CLIENT_CERTIFICATE_EXPIRES_SECONDS, valid_s(file))


def valid_s(file: Path) -> float:
    """Return for how many seconds the first certificate of a PEM file is valid; 0: unreadable."""
    try:
        ends_s = ssl.cert_time_to_seconds(str(_test_decode_cert(str(file))["notAfter"]))
    except OSError:  # ssl.SSLError is one
        return 0.0
    return ends_s - wall_ms() / 1000
