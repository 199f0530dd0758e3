"""Certificates and passwords in files, which are read again for new connections."""

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

from binwright.protocol.errors import SettingsError
from binwright.runtime.certificates import RenewedContext
from binwright.runtime.secret_files import read_secret, secret_at_start
from binwright.runtime.settings.kafka import KafkaSettings


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


def tls_context(kafka: KafkaSettings) -> ssl.SSLContext | None:
    """Return what the connection needs for TLS; None: it has none.

    Raises:
        SettingsError: A file cannot be used.
    """
    if not kafka.security_protocol.endswith("SSL"):
        return None
    try:
        return RenewedContext(ssl.PROTOCOL_TLS_CLIENT, tls_files(kafka), partial(_context, kafka))
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


def _context(kafka: KafkaSettings) -> ssl.SSLContext:
    """Return a context that checks the broker's certificate and name; raise `OSError`."""
    context = ssl.create_default_context(cafile=kafka.ssl_ca_file)
    if kafka.ssl_certificate_file:
        # Without a function OpenSSL would ask for a password in the terminal.
        password = partial(_key_password, kafka.ssl_key_password_file)
        context.load_cert_chain(kafka.ssl_certificate_file, kafka.ssl_key_file, password)
    return context


def _key_password(file: Path | None) -> str:
    return read_secret(file, "kafka.ssl_key_password_file") if file else ""
