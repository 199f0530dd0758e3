"""A broker that authenticates users by password, and does what its ACLs allow."""

import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Schema, String
from pydantic import SecretStr

from binwright.kafka.client import ClusterClient
from binwright.local.kafka import run_broker
from binwright.local.server import HOST, reserve_port
from binwright.runtime.settings.kafka import KafkaSettings

PASSWORD = "xyzzy"  # noqa: S105 - of users that live as long as a test
TEXT = String("utf-8")
TOPIC, GROUP, CLUSTER = 2, 3, 4
LITERAL, DENY, ALLOW = 3, 2, 3
OPERATIONS = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
}


class Acl(NamedTuple):
    """One rule; the fields are in the order of Kafka's protocol."""

    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


def acl(user: str, operation: str, resource: int, name: str, permission: int = ALLOW) -> Acl:
    """Return the rule for one operation of one user."""
    return Acl(resource, name, LITERAL, f"User:{user}", "*", OPERATIONS[operation], permission)


def parse_command(line: str) -> Iterator[Acl]:
    """Yield the rules of `allow User:NAME`, which is short for `kafka-acls.sh --add` and so on."""
    command, principal, *options = shlex.split(line)
    assert command == "allow"
    words, user = iter(options), principal.removeprefix("User:")
    operations, resources = list[str](), list[tuple[int, str]]()
    for word in words:
        match word:
            case "--operation":
                operations.append(next(words))
            case "--cluster":
                resources.append((CLUSTER, "kafka-cluster"))
            case "--topic":
                resources.append((TOPIC, next(words)))
            case "--group":
                resources.append((GROUP, next(words)))
            case _:
                raise ValueError(f"{word} in: {line}")
    for resource, name in resources:
        yield from (acl(user, operation, resource, name) for operation in operations)


class _Created(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 30, 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32), ("results", Array(("code", Int16), ("message", TEXT)))
    )


class _Create(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 30, 1, _Created
    SCHEMA = Schema(
        (
            "creations",
            Array(
                ("resource_type", Int8),
                ("resource_name", TEXT),
                ("pattern_type", Int8),
                ("principal", TEXT),
                ("host", TEXT),
                ("operation", Int8),
                ("permission", Int8),
            ),
        )
    )


class CreateAcls(Request[_Create]):  # type: ignore[misc]  # aiokafka has no types
    """Adds rules."""

    API_KEY = 30

    def __init__(self, rules: Sequence[Acl]) -> None:
        self._rules = rules

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class([tuple(rule) for rule in self._rules])


async def add_rules(owner: KafkaSettings, rules: Sequence[Acl]) -> None:
    """Add rules, as who may."""
    async with ClusterClient(owner) as cluster:
        answer: Any = await cluster.send_to_controller(CreateAcls(rules))
        assert [code for code, _ in answer.results] == [0] * len(rules)


def _settings(
    listener: int, controller: int, guarded: int, users: Sequence[str], *, denies: bool
) -> dict[str, str]:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    guard = f"SASL_PLAINTEXT://{HOST}:{guarded}"
    passwords = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    return {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{listener},CONTROLLER://{HOST}:{controller},{guard}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{listener},{guard}",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{login} required {passwords};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": str(not denies).lower(),
    }


@asynccontextmanager
async def guarded_broker(
    directory: Path, users: Sequence[str], rules: Sequence[Acl], *, denies: bool
) -> AsyncIterator[tuple[KafkaSettings, Mapping[str, KafkaSettings]]]:
    """Give the connection of the broker's owner, who may do anything, and of each user.

    Args:
        directory: The broker's.
        users: Those that may log in.
        rules: What they may do, and may not.
        denies: What no rule is about is refused; else it is allowed.
    """
    with reserve_port() as listener, reserve_port() as controller, reserve_port() as guarded:
        settings = _settings(listener, controller, guarded, users, denies=denies)
    async with run_broker(directory, port=listener, settings=settings) as broker:
        owner = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        await add_rules(owner, rules)
        yield (
            owner,
            {
                user: KafkaSettings(
                    bootstrap_servers=f"{HOST}:{guarded}",
                    security_protocol="SASL_PLAINTEXT",
                    sasl_username=user,
                    sasl_password=SecretStr(PASSWORD),
                )
                for user in users
            },
        )
