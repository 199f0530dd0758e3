"""`binwright acls`: the commands that give each user what it needs of Kafka's authorizer."""

import sys
from collections.abc import Iterator

from binwright.balancer.settings import BalancerProgramSettings
from binwright.controller.settings import ControllerProgramSettings
from binwright.protocol.rights import SHELL, Names, commands, other_rights, rights
from binwright.runtime.settings.loading import load
from binwright.scaler.settings import ScalerProgramSettings


def command() -> None:
    """Print the commands of kafka-acls.sh for the users of these settings; nothing is changed."""
    sys.stdout.write("\n".join(_lines()) + "\n")


def _lines() -> Iterator[str]:
    group = load(ControllerProgramSettings)
    balancer, scaler = load(BalancerProgramSettings), load(ScalerProgramSettings)
    names = Names(
        group=group.group,
        data=group.topics,
        metadata=group.metadata_topic,
        commands=group.commands_topic,
        landing=group.landing_topic,
        orders=group.orders_topic,
        metrics=group.monitor.topic,
        needs=group.needs_topic,
        brokers=balancer.brokers.topic,
        plans=scaler.scaler.plans_topic,
        scaled=[local.group for local in scaler.scaler.groups],
        assigned=[local.group for local in scaler.scaler.groups if local.assigns],
    )
    yield f"BROKERS=${{BROKERS:-{group.kafka.bootstrap_servers}}}"
    yield SHELL
    yield ""
    yield from commands([*rights(names), *other_rights(names)])
    for pattern in group.topic_patterns:
        yield (
            f"# topics that match {pattern}: as for a topic, by --resource-pattern-type prefixed "
            "--topic PREFIX"
        )
    if scaler.scaler.objects:
        yield "# groups of ScaledGroups: allow User:scaler --operation Describe --group GROUP"
        yield (
            "# those with assigns: allow User:scaler --operation Read --group GROUP, and Create, "
            f"Read and Write of the topic {scaler.scaler.plans_topic}"
        )
