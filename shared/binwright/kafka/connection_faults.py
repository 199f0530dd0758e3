"""Why a connection to a broker failed, in words, and what to check."""

import re
import ssl
from dataclasses import dataclass

from aiokafka.errors import (
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from binwright.kafka.kerberos import CLOCKS, TicketUnavailable, broker_principal
from binwright.kafka.tokens import TokenUnavailable
from binwright.runtime.settings.kafka import KafkaSettings

_EXPIRED, _NOT_YET = 10, 9
_OTHER_HOST, _OTHER_ADDRESS = 62, 64
"""Results of OpenSSL's check of a certificate (`X509_V_ERR_`)."""
_REFUSES_CLIENT = re.compile(r"ALERT_(\w*CERT\w*|UNKNOWN_CA)$")
"""OpenSSL's names of the alerts of TLS by which a broker refuses a client's certificate."""

_OAUTH = (
    "kafka.sasl_token_*, and kafka.sasl_username and the password, which are the id and the secret"
)


@dataclass(frozen=True, slots=True)
class ConnectionFault:
    """Why a broker cannot be used."""

    reason: str
    check: str = ""
    """What to check; empty if the reason leaves it open."""


def connection_fault(error: BaseException, kafka: KafkaSettings) -> ConnectionFault:
    """Return what an error of a connection with these settings means."""
    for each in _causes(error):
        match each:
            case ssl.SSLCertVerificationError():
                return _untrusted_broker(each, kafka)
            case ssl.SSLError(reason=str(alert)) if _REFUSES_CLIENT.search(alert):
                return _refused_client(alert, kafka)
            case TokenUnavailable():
                return ConnectionFault(str(each), _OAUTH)
            case TicketUnavailable():
                return ConnectionFault(str(each), each.check)
            case SaslAuthenticationFailed() | UnsupportedSaslMechanismError():
                return ConnectionFault(reason_of(each), f"that the broker knows {_user(kafka)}")
    return ConnectionFault(reason_of(error))


def general_checks(kafka: KafkaSettings) -> list[str]:
    """Return what to check when the reason leaves it open."""
    checks = [
        f"that a broker listens at kafka.bootstrap_servers ({kafka.bootstrap_servers})",
        f"that this listener speaks {kafka.security_protocol} (kafka.security_protocol)",
    ]
    if kafka.security_protocol.startswith("SASL"):
        checks.append(f"that it knows {_user(kafka)}")
    return checks


def reason_of(error: BaseException) -> str:
    """Return an error's words, with those of what caused it."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    reasons = dict.fromkeys(str(each) or type(each).__name__ for each in _causes(error))
    return ": ".join(reasons)


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what caused it, the last link at the end."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    return chain


def _user(kafka: KafkaSettings) -> str:
    if kafka.sasl_mechanism == "OAUTHBEARER":
        source = kafka.sasl_token_file or kafka.sasl_token_url or kafka.sasl_token_provider
        return f"the issuer and the audience of tokens from {source}, by OAUTHBEARER"
    if kafka.sasl_mechanism == "GSSAPI":
        key = f"GSSAPI and the current key of {broker_principal(kafka)}"
        return f"{key}, that a KDC answers, and {CLOCKS}"
    file = kafka.sasl_password_file
    password = f"the password in {file}" if file else "this password"
    return f"{kafka.sasl_username} by {kafka.sasl_mechanism} and {password} (kafka.sasl_*)"


def _untrusted_broker(error: ssl.SSLCertVerificationError, kafka: KafkaSettings) -> ConnectionFault:
    reason = f"the broker's certificate is not accepted: {error.verify_message.rstrip('.')}"
    if error.verify_code in {_EXPIRED, _NOT_YET}:
        check = "that the broker's certificate is renewed, and the clock of this machine"
    elif error.verify_code in {_OTHER_HOST, _OTHER_ADDRESS}:
        check = (
            "that the certificate names this host as kafka.bootstrap_servers "
            "and the broker's advertised.listeners do"
        )
    else:
        file = kafka.ssl_ca_file or "unset, so the system's authorities count"
        check = f"that kafka.ssl_ca_file ({file}) is the authority that signed it"
    return ConnectionFault(reason, check)


def _refused_client(alert: str, kafka: KafkaSettings) -> ConnectionFault:
    if kafka.ssl_certificate_file is None:
        return ConnectionFault(
            "the broker wants a client certificate, and there is none",
            "kafka.ssl_certificate_file and kafka.ssl_key_file, which are unset",
        )
    why = alert.partition("ALERT_")[2].replace("_", " ").lower()
    return ConnectionFault(
        f"the broker does not accept the client certificate ({why})",
        f"that kafka.ssl_certificate_file ({kafka.ssl_certificate_file}) has not expired, "
        "and that the broker trusts the authority that signed it",
    )
