"""Judges what the user may do against what each service does: `protocol.rights`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from binwright.inspect.decide.doctor.findings import Finding, fault, listed, ok, skipped, warning
from binwright.inspect.decide.doctor.topics import VisibleTopic
from binwright.protocol.rights import Right, Service

SERVICES: tuple[Service, ...] = ("monitor", "controller", "consumer")
"""Those whose rights are judged."""


@dataclass(frozen=True, slots=True)
class Permitted:
    """What is permitted; None: the broker does not say."""

    cluster: frozenset[str] | None
    topics: Mapping[str, VisibleTopic]
    groups: Mapping[str, frozenset[str] | None]
    uncreatable: Collection[str]  # missing topics that this user may not create


def missing_rights(
    wanted: Sequence[Right], permitted: Permitted, services: Collection[Service]
) -> Iterator[Finding]:
    """Judge the rights of some services, one finding for each that lacks none.

    Args:
        wanted: The rights of all services.
        permitted: What is permitted.
        services: Those that run as this user.
    """
    for service in services:
        mine = [right for right in wanted if right.service == service]
        has = {right: _has(right, permitted) for right in mine}
        lacks = [right for right in mine if has[right] is False]
        unknown = dict.fromkeys(f"{r.kind} {r.name}" for r in mine if has[r] is None)
        yield from _named(service, lacks)
        if unknown:
            yield skipped(
                f"rights of the {service}", f"{listed([*unknown])}: not known before it exists"
            )
        elif not lacks:
            yield ok(f"rights of the {service}", "all that it needs")


def _named(service: Service, lacks: Sequence[Right]) -> Iterator[Finding]:
    """Yield one finding for the rights of one thing."""
    check = f"rights of the {service}"
    by_thing = sorted(lacks, key=lambda right: (right.without, right.kind, right.name))
    for (without, kind, name), some in groupby(
        by_thing, lambda right: (right.without, right.kind, right.name)
    ):
        operations = [right.operation for right in some]
        thing = "the cluster" if kind == "cluster" else f"{kind} {name}"
        what = f"this user lacks {' and '.join(operations)} on {thing}"
        options = " ".join(f"--operation {operation}" for operation in operations)
        resource = "--cluster" if kind == "cluster" else f"--{kind} {name}"
        do = f"kafka-acls.sh --add --allow-principal User:… {options} {resource}"
        yield warning(check, f"{what}: {without}", do) if without else fault(check, what, do)


def _has(right: Right, permitted: Permitted) -> bool | None:
    """Whether the user has a right; None: that is not known."""
    if right.kind == "cluster":
        operations = permitted.cluster
    elif right.kind == "group":
        operations = permitted.groups.get(right.name)
    elif right.operation == "Create":
        return right.name not in permitted.uncreatable
    else:
        topic = permitted.topics[right.name]
        operations = frozenset() if topic.hidden else topic.permitted
    return None if operations is None else right.operation in operations
