"""Certificates and passwords in files, which are read again for new connections."""

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import structlog

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings import KafkaSettings

log = structlog.get_logger()


def sasl_password(kafka: KafkaSettings) -> str | Callable[[], str] | None:
    """Return the password, or a function that reads it from its file, for each connection.

    Raises:
        SettingsError: The file cannot be read now.
    """
    if kafka.sasl_password_file is None:
        return kafka.sasl_password.get_secret_value() if kafka.sasl_password else None
    needed = kafka.sasl_password_file, "kafka.sasl_password_file"
    secret_at_start(*needed)
    return partial(read_secret, *needed)


def secret_at_start(file: Path, setting: str) -> str:
    """Return the text of a file without which a program does not start; raise `SettingsError`."""
    try:
        return read_secret(file, setting)
    except OSError as exc:
        raise SettingsError(f"{setting}: {exc}") from exc


def read_secret(file: Path, setting: str) -> str:
    """Return the text of a file, without spaces around it.

    Raises:
        OSError: It cannot be read, is empty, or is not text. aiokafka tries a connection that
            fails by this again.
    """
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except ValueError:  # its message would quote the bytes
        raise OSError(f"{file} ({setting}) is not text in UTF-8") from None
    if not secret:
        raise OSError(f"{file} ({setting}) is empty")
    return secret


def tls_context(kafka: KafkaSettings) -> ssl.SSLContext | None:
    """Return what the connection needs for TLS; None: it has none.

    Raises:
        SettingsError: A file cannot be used.
    """
    if not kafka.security_protocol.endswith("SSL"):
        return None
    try:
        return RenewedContext(kafka)
    except OSError as exc:  # ssl.SSLError is one
        named = ", ".join(map(str, tls_files(kafka)))
        raise SettingsError(
            f"kafka.ssl_ca_file, ssl_certificate_file, ssl_key_file or ssl_key_password_file "
            f"cannot be used ({named}): {exc}. Each of the first three must be a PEM file."
        ) from exc


def tls_files(kafka: KafkaSettings) -> list[Path]:
    """Return the files that TLS needs."""
    files = (
        kafka.ssl_ca_file,
        kafka.ssl_certificate_file,
        kafka.ssl_key_file,
        kafka.ssl_key_password_file,
    )
    return [file for file in files if file]


class RenewedContext(ssl.SSLContext):
    """Reads its files again for a connection that begins after one of them has changed.

    A context cannot forget an authority, so a new one takes its place. While the files do not fit
    together (they are replaced one after the other), the last that did stay in use.
    """

    def __new__(cls, kafka: KafkaSettings) -> Self:
        """Make a context that checks the broker's certificate and name."""
        del kafka
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, kafka: KafkaSettings) -> None:
        """Read the files; raise `OSError`."""
        self._kafka = kafka
        self._versions = self._found_versions()
        self._latest = self._read()

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection, for asyncio."""
        try:
            versions = self._found_versions()
            if versions != self._versions:
                self._latest, self._versions = self._read(), versions
                log.info("certificates.renewed", files=[str(f) for f in tls_files(self._kafka)])
        except OSError as exc:
            log.warning("certificates.unreadable", reason=str(exc))
        return self._latest.wrap_bio(*args, **options)

    def _found_versions(self) -> list[tuple[int, int, int]]:
        found = [file.stat() for file in tls_files(self._kafka)]
        return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in found]

    def _read(self) -> ssl.SSLContext:
        kafka = self._kafka
        context = ssl.create_default_context(cafile=kafka.ssl_ca_file)
        if kafka.ssl_certificate_file:
            # Without a function OpenSSL would ask for a password in the terminal.
            context.load_cert_chain(kafka.ssl_certificate_file, kafka.ssl_key_file, self._password)
        return context

    def _password(self) -> str:
        file = self._kafka.ssl_key_password_file
        return read_secret(file, "kafka.ssl_key_password_file") if file else ""
