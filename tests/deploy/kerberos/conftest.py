"""A realm, and a broker that knows its users."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from tests.deploy.kerberos.kdc import DOMAIN, Kdc, run_kdc

from binwright.local.kafka import run_broker
from binwright.local.server import HOST, reserve_port
from binwright.runtime.settings import KafkaSettings

NAME = "localhost"
"""The broker's, as in its principal."""
USER = "ann"
"""May use topics and groups whose names begin with `of-ann`; others may use none."""


@dataclass(frozen=True, slots=True)
class KerberosBroker:
    """A broker with a listener for tickets, and one for what a test prepares."""

    kdc: Kdc
    owner: KafkaSettings
    section: dict[str, Any]

    @property
    def kafka(self) -> KafkaSettings:
        """Return the connection by ticket."""
        return KafkaSettings.model_validate(self.section)


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with run_kdc(tmp_path_factory.mktemp("kerberos") / "kdc") as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def broker(
    kdc: Kdc, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[KerberosBroker]:
    keytab = await asyncio.to_thread(kdc.keytab, f"kafka/{NAME}")
    with ExitStack() as reserved:
        plain, tickets, controller = (reserved.enter_context(reserve_port()) for _ in range(3))
    own = f"PLAINTEXT://{HOST}:{plain},TICKETS://{NAME}:{tickets}"
    login = (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'isInitiator=false keyTab="{keytab}" principal="kafka/{NAME}@{DOMAIN}";'
    )
    settings = {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"{own},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": own,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,TICKETS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "listener.name.tickets.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.tickets.gssapi.sasl.jaas.config": login,
        "listener.name.tickets.sasl.kerberos.service.name": "kafka",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    async with run_broker(
        tmp_path_factory.mktemp("broker") / "kafka",
        port=plain,
        settings=settings,
        java_options=[f"-Djava.security.krb5.conf={kdc.client_file()}"],
    ) as running:
        section = {
            "bootstrap_servers": f"{NAME}:{tickets}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "GSSAPI",
            "request_timeout_s": 10.0,
        }
        owner = KafkaSettings(bootstrap_servers=running.bootstrap_servers)
        yield KerberosBroker(kdc, owner, section)
