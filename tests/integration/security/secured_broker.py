"""A broker with a listener for each way to connect that companies ask for."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.integration.security.certificates import Authority
from tests.integration.security.issuer import Issuer

from binwright.local.kafka import EmbeddedBroker, run_broker
from binwright.local.server import HOST, reserve_port
from binwright.runtime.settings.kafka import KafkaSettings

USER, PASSWORD = "ann", "xyzzy-secret"
DEADLINE_S = 30.0
SECURITY = "org.apache.kafka.common.security"
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "PASSWORDS": "SASL_SSL",
    "TOKENS": "SASL_SSL",
    "MISNAMED": "SSL",
    "EXPIRED": "SSL",
}
"""Each listener and its protocol; the last two have certificates that clients must refuse."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WAYS = ("TLS", "MUTUAL", *MECHANISMS, "OAUTHBEARER")
"""Every way to connect over TLS."""


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    """Where it listens, and the certificates that it and its clients have."""

    broker: EmbeddedBroker
    ports: Mapping[str, int]
    authority: Authority
    untrusted: Authority
    """Signs what the broker does not accept."""
    issuer: Issuer
    """Signs tokens that the broker accepts."""

    def owner(self) -> KafkaSettings:
        """Return the connection without encryption, for what a test prepares."""
        return KafkaSettings(bootstrap_servers=f"{HOST}:{self.ports['PLAINTEXT']}")

    def settings(self, way: str, **changes: Any) -> dict[str, Any]:
        """Return the values of the section `kafka` for one of `WAYS`, or for a listener."""
        listener = "PASSWORDS" if way in MECHANISMS else way.replace("OAUTHBEARER", "TOKENS")
        values: dict[str, Any] = {
            "bootstrap_servers": f"{HOST}:{self.ports[listener]}",
            "security_protocol": LISTENERS[listener],
            "ssl_ca_file": self.authority.ca_file,
            "request_timeout_s": 10.0,
        }
        if listener == "MUTUAL":
            certificate, key = self.authority.client(USER)
            values |= {"ssl_certificate_file": certificate, "ssl_key_file": key}
        if listener == "PASSWORDS":
            values |= {"sasl_mechanism": way, "sasl_username": USER, "sasl_password": PASSWORD}
        if listener == "TOKENS":
            file = self.issuer.file.with_name("token")
            file.write_text(self.issuer.token(USER))
            values |= {"sasl_mechanism": "OAUTHBEARER", "sasl_token_file": file}
        return {name: value for name, value in (values | changes).items() if value is not None}

    def connection(self, way: str, **changes: Any) -> KafkaSettings:
        """Return the connection for one of `WAYS`, or for a listener."""
        return KafkaSettings.model_validate(self.settings(way, **changes))


def _of(listener: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {f"listener.name.{listener.lower()}.{name}": text for name, text in settings.items()}


def _settings(
    ports: Mapping[str, int],
    controller: int,
    authority: Authority,
    issuer: Issuer,
    session_s: float,
) -> dict[str, str]:
    plain, scram = f"{SECURITY}.plain.PlainLoginModule", f"{SECURITY}.scram.ScramLoginModule"
    own = [f"{name}://{HOST}:{port}" for name, port in ports.items()]
    protocols = {"CONTROLLER": "PLAINTEXT", **LISTENERS}
    # Or a connection outlives its token.
    session = {"connections.max.reauth.ms": str(round(1000 * session_s))}
    logins = (
        session
        | {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
        | {
            f"{name}.sasl.jaas.config": text
            for name, text in (
                ("plain", f'{plain} required user_{USER}="{PASSWORD}";'),
                ("scram-sha-256", f"{scram} required;"),
                ("scram-sha-512", f"{scram} required;"),
            )
        }
    )
    certificate = authority.broker(HOST)
    return {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": ",".join([*own, f"CONTROLLER://{HOST}:{controller}"]),
        "advertised.listeners": ",".join(own),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
        **_of("TLS", certificate),
        **_of("MUTUAL", certificate | authority.truststore() | {"ssl.client.auth": "required"}),
        **_of("PASSWORDS", certificate | logins),
        **_of("TOKENS", certificate | session | _tokens(issuer)),
        **_of("MISNAMED", authority.broker("kafka.example.com")),
        **_of("EXPIRED", authority.broker(HOST, expired=True)),
    }


def _tokens(issuer: Issuer) -> dict[str, str]:
    login = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required;"
    validator = f"{SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": login,
        "oauthbearer.sasl.server.callback.handler.class": validator,
        "sasl.oauthbearer.jwks.endpoint.url": issuer.file.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": issuer.name,
        "sasl.oauthbearer.clock.skew.seconds": "0",
    }


def change_password(bootstrap_servers: str, password: str) -> None:
    """Give the user another password for SCRAM, or its first."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 2})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        # One request each: Kafka takes a user once in a request.
        info = ScramCredentialInfo(mechanism, 4096)
        added = UserScramCredentialUpsertion(USER, info, password.encode())
        for done in admin.alter_user_scram_credentials([added]).values():
            done.result(DEADLINE_S)


@asynccontextmanager
async def run_secured_broker(
    directory: Path, *, session_s: float = 60.0
) -> AsyncIterator[SecuredBroker]:
    """Run it while the body runs; a connection with a token or password lasts `session_s`."""
    authority, untrusted = Authority(directory / "ours"), Authority(directory / "untrusted")
    issuer = Issuer(directory / "jwks.json")
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.file.as_uri()}"
    with ExitStack() as reserved:
        ports = {name: reserved.enter_context(reserve_port()) for name in LISTENERS}
        controller = reserved.enter_context(reserve_port())
    settings = _settings(ports, controller, authority, issuer, session_s)
    place = directory / "broker"
    async with run_broker(
        place, port=ports["PLAINTEXT"], settings=settings, java_options=[allowed]
    ) as broker:
        await asyncio.to_thread(change_password, broker.bootstrap_servers, PASSWORD)
        yield SecuredBroker(broker, ports, authority, untrusted, issuer)
