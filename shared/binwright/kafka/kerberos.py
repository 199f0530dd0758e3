"""Kerberos, which Kafka calls GSSAPI: what has to be installed, and what libkrb5's errors mean.

Credentials come from where libkrb5 looks for them: a keytab (KRB5_CLIENT_KTNAME), tickets
(KRB5CCNAME), the realm and its KDC (KRB5_CONFIG).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.kafka import KafkaSettings

_FIRST_ERROR = 2**32 - 1765328384
"""What libkrb5 counts its error codes from; the lower ones are those of RFC 4120."""
_SERVICE_UNKNOWN = 7
_WRONG_CLOCK = {33, 37, 148}  # of the ticket; of a request; of a reply
_WRONG_KEY = {6, 18, 24, 31, 181}  # unknown; revoked; refused twice; no such key in the keytab
_NO_KDC = {154, 156}  # none is named; none answers

CLOCKS = "that the clocks of this machine, the KDC and the brokers agree"


class TicketUnavailable(OSError):
    """There is no ticket for a broker; aiokafka tries a connection that fails by this again."""

    def __init__(self, reason: str, check: str) -> None:
        super().__init__(reason)
        self.check = check  # what to check


def kerberos_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Return aiokafka's options for Kerberos; none if the connection does not use it.

    Raises:
        SettingsError: What it needs is not installed.
    """
    if kafka.sasl_mechanism != "GSSAPI":
        return {}
    try:
        import gssapi  # noqa: F401, PLC0415 - an extra
    except ImportError as exc:
        raise SettingsError(
            f"kafka.sasl_mechanism: GSSAPI needs pip install 'binwright[kerberos]', which compiles "
            f"the package gssapi: have a C compiler and libkrb5-dev for that ({exc})"
        ) from exc
    return {
        "sasl_kerberos_service_name": kafka.sasl_kerberos_service_name,
        "sasl_kerberos_domain_name": kafka.sasl_kerberos_domain_name,
    }


def broker_principal(kafka: KafkaSettings) -> str:
    """Return the principal that a broker must have."""
    return f"{kafka.sasl_kerberos_service_name}/{kafka.sasl_kerberos_domain_name or 'HOST'}"


@contextmanager
def translate_gss_errors(service: str) -> Iterator[None]:
    """Translate errors of gssapi into `TicketUnavailable`; `service` is of the form kafka@HOST.

    libkrb5 keeps the words of an error for the thread that had it: translate them there.
    """
    from gssapi.exceptions import GSSError  # noqa: PLC0415 - an extra

    try:
        yield
    except GSSError as exc:
        principal = service.replace("@", "/")
        words = exc.get_all_statuses(exc.min_code, False) if exc.min_code else [str(exc)]  # noqa: FBT003
        raise TicketUnavailable(
            f"Kerberos gives no ticket for {principal}: {'; '.join(words)}",
            _check(exc.min_code - _FIRST_ERROR, principal),
        ) from exc


def _check(error: int, principal: str) -> str:
    """Return what to check after one of libkrb5's errors, counted from the first one."""
    keytab, tickets = _variable("KRB5_CLIENT_KTNAME"), _variable("KRB5CCNAME")
    if error == _SERVICE_UNKNOWN:
        return (
            f"that the KDC knows {principal}: kafka.sasl_kerberos_service_name, and the host as "
            "kafka.bootstrap_servers and advertised.listeners name it, or "
            "kafka.sasl_kerberos_domain_name"
        )
    if error in _WRONG_CLOCK:
        return CLOCKS
    if error in _NO_KDC:
        return f"that a KDC of the realm runs where {_variable('KRB5_CONFIG')} says"
    if error in _WRONG_KEY:
        return f"that {keytab} has the current key of a principal that the KDC knows"
    # A ticket that a keytab cannot renew, because no KDC answers, has expired, as libkrb5 says it.
    return (
        f"that {keytab} is a keytab that can be read and a KDC answers, or that {tickets} has a "
        "valid ticket"
    )


def _variable(name: str) -> str:
    return f"{name} ({os.environ.get(name) or 'unset'})"
