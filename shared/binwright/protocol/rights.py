"""What each service, and each person, needs of Kafka's authorizer; nothing else is needed.

`docs/reference/acls.md` and `binwright acls` print it, and `binwright doctor` compares it with what
a user may.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from binwright.protocol.selection import BALANCERS_SUFFIX, CONTROLLERS_SUFFIX, SCALERS_SUFFIX

Service = Literal[
    "monitor",
    "controller",
    "consumer",
    "scaler",
    "balancer",
    "viewer",
    "operator",
    "approver",
]
"""Who has a user: the services, and people: who look, operate groups, approve plans for brokers."""
Kind = Literal["cluster", "group", "topic"]
CLUSTER = "kafka-cluster"
PROBE = "binwright.probe"
"""The topic by which the balancer measures how long producers wait."""
ACTING, APPROVING = "brokers.mode approve or act", "brokers.mode approve"


@dataclass(frozen=True, slots=True)
class Names:
    """What the settings name."""

    group: str
    data: Sequence[str]
    metadata: str
    commands: str
    landing: str
    orders: str
    metrics: str
    needs: str
    brokers: str = "binwright.brokers"
    plans: str = "binwright.plans"
    scaled: Sequence[str] = ()  # ordinary consumer groups that are scaled
    assigned: Sequence[str] = ()  # those of them whose partitions the scaler assigns


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One operation on one thing that a user needs.

    Attributes:
        without: What goes on without it, and how; "": the service cannot do its work.
        when: By which setting alone it is needed; "": by any.
    """

    service: Service
    kind: Kind
    name: str
    operation: str
    without: str = ""
    when: str = ""


def rights(names: Names) -> Iterator[Right]:
    """Yield the rights of the services that land topics; `Create` counts for missing topics."""
    estimated = "rates are estimated, if the monitor may also read the topics"
    not_checked = "whether binwright made the topic is not checked"
    yield Right("monitor", "cluster", CLUSTER, "Describe", estimated)
    yield from _of("monitor", names.data, "Describe")
    yield from _of("monitor", [names.metrics], "Create", "Write")
    yield Right("monitor", "topic", names.metrics, "Read", not_checked)
    yield from _of("monitor", [names.needs], "Create", "Read")

    yield from _of("controller", [names.metrics], "Create", "Read")
    yield from _of("controller", [names.needs], "Create", "Write")
    yield from _of("controller", [names.metadata], "Create", "Read", "Write")
    unchecked = "whether the topic loses records is not checked"
    yield from _of("controller", [names.orders], "Create", "Read", "Write")
    for topic in (names.metadata, names.orders, names.commands):
        yield Right("controller", "topic", topic, "DescribeConfigs", unchecked)
    yield from _of("controller", [names.commands], "Create", "Write")
    grows = f"the group has as many consumers at most as {names.commands} has partitions"
    yield Right("controller", "topic", names.commands, "Alter", grows)
    yield Right("controller", "topic", names.commands, "Read", not_checked)
    yield from _of("controller", [names.landing], "Create", "Describe")
    yield Right("controller", "topic", names.landing, "Read", not_checked)
    yield Right("controller", "group", names.group + CONTROLLERS_SUFFIX, "Read")

    yield from _of("consumer", names.data, "Read")
    yield from _of("consumer", [names.commands], "Read")
    yield from _of("consumer", [names.metadata], "Write")
    yield Right("consumer", "topic", names.metadata, "Read", not_checked)
    yield from _of("consumer", [names.landing], "Read", "Write")
    unordered = "its tables are neither paused, resumed, replayed, back-filled nor erased from"
    yield Right("consumer", "topic", names.orders, "Read", unordered)
    yield Right("consumer", "group", names.group, "Read")


def other_rights(names: Names) -> Iterator[Right]:
    """Yield the rights of the scaler, the balancer, and people."""
    yield from _of("scaler", [names.metrics], "Create", "Read")
    yield from _of("scaler", names.data, "Describe")
    for group in names.scaled:
        yield Right("scaler", "group", group, "Describe")
    yield Right("scaler", "group", names.group + SCALERS_SUFFIX, "Read")
    if names.assigned:
        yield from _of("scaler", [names.plans], "Create", "Read", "Write")
    for group in names.assigned:
        yield Right("scaler", "group", group, "Read")

    for operation in ("Describe", "DescribeConfigs"):
        yield Right("balancer", "cluster", CLUSTER, operation)
    yield from _of("balancer", names.data, "Describe", "DescribeConfigs")
    yield from _of("balancer", [names.metrics], "Create", "Read")
    yield Right("balancer", "group", names.group + BALANCERS_SUFFIX, "Read")
    for operation in ("Alter", "AlterConfigs"):
        yield Right("balancer", "cluster", CLUSTER, operation, when=ACTING)
    yield from _of("balancer", names.data, "AlterConfigs", when=ACTING)
    yield from _of("balancer", [names.brokers], "Create", "Read", "Write", when=ACTING)
    yield from _of("balancer", [PROBE], "Create", "Delete", "Write", when=ACTING)

    yield from _of("viewer", [names.metrics, names.metadata, names.orders], "Read")
    yield from _of("viewer", names.data, "Describe")

    yield from _of("operator", [names.metrics, names.metadata, *names.data], "Read")
    yield from _of("operator", [names.orders], "Read", "Write")
    yield from _of("approver", [names.brokers], "Read", "Write", when=APPROVING)


def _of(
    service: Service, topics: Iterable[str], *operations: str, when: str = ""
) -> Iterator[Right]:
    for topic in topics:
        for operation in operations:
            yield Right(service, "topic", topic, operation, when=when)


def commands(wanted: Iterable[Right]) -> Iterator[str]:
    """Yield the lines that grant rights, by the function `allow` of `SHELL`; "" between users."""
    every = list(wanted)
    for number, (service, some) in enumerate(groupby(every, lambda right: right.service)):
        if number:
            yield ""
        for when, mine in groupby(some, lambda right: right.when):
            if when:
                yield f"# with {when}: also"
            yield from (f"allow User:{service} {line}" for line in _options(list(mine)))


def _options(mine: Sequence[Right]) -> Iterator[str]:
    """Yield operations and things, in one line those of one kind that need the same ones."""
    operations: dict[tuple[Kind, str], list[str]] = {}
    for right in mine:
        operations.setdefault((right.kind, right.name), []).append(right.operation)
    things: dict[tuple[Kind, tuple[str, ...]], list[str]] = {}
    for (kind, name), those in operations.items():
        things.setdefault((kind, tuple(those)), []).append(name)
    for (kind, same), names in things.items():
        options = [f"--operation {each}" for each in same]
        options += ["--cluster"] if kind == "cluster" else [f"--{kind} {name}" for name in names]
        yield " ".join(options)


SHELL = (
    "allow() { kafka-acls.sh --bootstrap-server $BROKERS --command-config admin.properties --add "
    '--allow-principal "$@"; }'
)
"""The function that `commands` call."""
