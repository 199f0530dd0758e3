"""A broker whose clients authenticate by Kerberos, and whose authorizer knows two of them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiokafka import AIOKafkaProducer
from tests.deploy.kerberos.kdc import DOMAIN, Kdc, run_kdc
from tests.integration.authorization import GROUP, TOPIC, acl, add_rules
from tests.integration.security.commands import environment
from tests.integration.topics import create_topic

from binwright.kafka.client import client_options
from binwright.local.kafka import run_broker
from binwright.local.server import HOST, reserve_port
from binwright.runtime.settings.kafka import KafkaSettings

SERVICE = "kafka"
OWNER, READER, OTHER = "binwright", "ann", "eve"
"""Who may all, who may read `ORDERS`, and who may nothing."""
ORDERS, READERS, RECORD = "orders", "readers", "one"
LIFE_S = 8
"""Life of the owner's tickets."""
SESSION_S = 4.0
"""Life of a connection, after which clients authenticate again."""
LOGIN = "com.sun.security.auth.module.Krb5LoginModule"


@dataclass(frozen=True, slots=True)
class KerberosBroker:
    """Where it listens, and what its clients need.

    Attributes:
        kdc: Of its clients and its own.
        port: Where they authenticate.
        open_port: Where nobody has to, for what a test prepares.
        keytabs: By principal.
        packages: The directory that has gssapi.
    """

    kdc: Kdc
    port: int
    open_port: int
    keytabs: Mapping[str, Path]
    packages: Path

    def owner(self) -> KafkaSettings:
        """Return a connection without Kerberos."""
        return KafkaSettings(bootstrap_servers=f"{HOST}:{self.open_port}")

    def environment(self, user: str | None = None, **kafka: object) -> dict[str, str]:
        """Return the variables of a process that connects as `user`, by its keytab; None: nobody.

        Args:
            user: A principal of `keytabs`.
            kafka: Settings of the section `kafka`, beside or instead of those that it needs.
        """
        section: dict[str, object] = {
            "bootstrap_servers": f"{HOST}:{self.port}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "GSSAPI",
            "request_timeout_s": 10.0,
            **kafka,
        }
        kerberos = {"KRB5_CONFIG": str(self.kdc.config), "KRB5CCNAME": "MEMORY:"}
        if user:
            kerberos["KRB5_CLIENT_KTNAME"] = str(self.keytabs[user])
        passed = environment(section).items()
        clean = {name: each for name, each in passed if not name.startswith("KRB5")}
        return {**clean, **kerberos, "PYTHONPATH": str(self.packages)}


def _settings(port: int, open_port: int, controller: int, keytab: Path) -> dict[str, str]:
    login = (
        f"{LOGIN} required useKeyTab=true storeKey=true isInitiator=false "
        f'keyTab="{keytab}" principal="{SERVICE}/{HOST}@{DOMAIN}";'
    )
    own = f"PLAINTEXT://{HOST}:{open_port},KERBEROS://{HOST}:{port}"
    listener = "listener.name.kerberos"
    return {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"{own},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": own,
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,KERBEROS:SASL_PLAINTEXT"
        ),
        f"{listener}.sasl.enabled.mechanisms": "GSSAPI",
        f"{listener}.gssapi.sasl.jaas.config": login,
        f"{listener}.sasl.kerberos.service.name": SERVICE,
        f"{listener}.connections.max.reauth.ms": str(round(1000 * SESSION_S)),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{OWNER}",
    }


@asynccontextmanager
async def run_kerberos_broker(directory: Path, packages: Path) -> AsyncIterator[KerberosBroker]:
    """Run it, and the KDC of its realm, while the body runs."""
    async with run_kdc(directory / "realm") as kdc:
        keytabs = {user: kdc.add(user) for user in (READER, OTHER)}
        keytabs[OWNER] = kdc.add(OWNER, life_s=LIFE_S)
        keytab = kdc.add(f"{SERVICE}/{HOST}")
        with reserve_port() as port, reserve_port() as open_port, reserve_port() as controller:
            settings = _settings(port, open_port, controller, keytab)
        java = [f"-Djava.security.krb5.conf={kdc.config}"]
        async with run_broker(
            directory / "broker", port=open_port, settings=settings, java_options=java
        ) as running:
            await _prepare(KafkaSettings(bootstrap_servers=running.bootstrap_servers))
            yield KerberosBroker(kdc, port, open_port, keytabs, packages)


async def _prepare(owner: KafkaSettings) -> None:
    """Make the topic with its record, and the rights of the reader."""
    await create_topic(owner, ORDERS, 1)
    async with AIOKafkaProducer(**client_options(owner)) as producer:
        await producer.send_and_wait(ORDERS, RECORD.encode())
    await add_rules(
        owner, [acl(READER, "Read", TOPIC, ORDERS), acl(READER, "Read", GROUP, READERS)]
    )
