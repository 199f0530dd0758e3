"""Kerberos (SASL GSSAPI): tickets come from the environment, by the system's own library.

It finds a keytab by `KRB5_CLIENT_KTNAME` or a ticket by `KRB5CCNAME`, and with a keytab has a new
ticket for each connection that needs one.
"""

import importlib.util

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings import KafkaSettings


class TicketUnavailable(OSError):
    """No ticket could be had; aiokafka tries a connection that fails by this again."""


def uses_kerberos(kafka: KafkaSettings) -> bool:
    """Return whether connections authenticate by Kerberos."""
    return kafka.security_protocol.startswith("SASL") and kafka.sasl_mechanism == "GSSAPI"


def check_kerberos(kafka: KafkaSettings) -> None:
    """Raise `SettingsError` if connections need the package `gssapi` and it is not there."""
    if uses_kerberos(kafka) and importlib.util.find_spec("gssapi") is None:
        raise SettingsError(
            "kafka.sasl_mechanism: GSSAPI needs binwright[kerberos], which pip compiles: it wants "
            "a C compiler and the headers of Python and of Kerberos (libkrb5-dev, krb5-devel)"
        )
