"""`binwright brokers status`: what each broker holds, and what moves."""

from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

from binwright.balancer import description
from binwright.balancer.admin_client import AdminClient
from binwright.balancer.cluster_model import Snapshot, cluster_model
from binwright.balancer.commands.pages import broker_table
from binwright.balancer.commands.planning import (
    DescriptionFile,
    MeasureSeconds,
    RatesFile,
    unmeasured_text,
)
from binwright.balancer.decide.loads import broker_loads, imbalance
from binwright.balancer.decide.model import Cluster, current
from binwright.balancer.decide.proposals import BrokerPlan, BrokerPlans
from binwright.balancer.decide.safety import dead_directories, named, under_replicated
from binwright.balancer.decide.throttles import Throttles
from binwright.balancer.executor import read_throttles
from binwright.balancer.plan_topic import PlanTopic
from binwright.balancer.settings import BalancerProgramSettings
from binwright.balancer.snapshot import read_cluster
from binwright.cli.options import Bootstrap, Json, program_settings_at
from binwright.cli.runner import run_for_result
from binwright.cli.terminal import Console, print_json
from binwright.kafka.control_topics import KafkaControlTopics


def command(
    *,
    describe: DescriptionFile = None,
    rates: RatesFile = None,
    measure: MeasureSeconds = 0.0,
    bootstrap_servers: Bootstrap = None,
    json_: Json = False,
) -> None:
    """Show each broker's load, how even it is, reassignments under way, and throttles."""
    settings, wanted = (
        program_settings_at(BalancerProgramSettings, bootstrap_servers),
        description.read(describe),
    )

    async def read() -> tuple[Snapshot, Throttles, BrokerPlans]:
        seen = await read_cluster(settings, rates, measure)
        async with (
            AdminClient(settings.kafka) as brokers,
            KafkaControlTopics(settings.kafka, read_only=True) as bus,
            aclosing(PlanTopic(bus, settings.brokers.topic)) as plans,
        ):
            return seen, await read_throttles(brokers, seen.state), await plans.read_if_there()

    seen, throttles, proposals = run_for_result(read)
    cluster = cluster_model(seen, wanted)
    if json_:
        print_json(_json(cluster, seen, throttles, proposals))
        return
    console = Console(soft_wrap=True)
    console.print(broker_table(cluster, broker_loads(cluster, current(cluster))))
    for text in (*lines(cluster, seen, throttles), *plan_lines(proposals)):
        console.print(text, markup=False, highlight=False)


def lines(cluster: Cluster, seen: Snapshot, throttles: Throttles) -> Iterator[str]:
    """Yield what there is to say besides the table."""
    yield ""
    for each in imbalance(cluster):
        yield f"{each.resource}: broker {each.broker} has {each.factor:.2f} of the mean"
    if warning := unmeasured_text(seen, cluster):
        yield warning
    for _, text in dead_directories(seen.state, seen.disks):
        yield text
    if behind := list(under_replicated({}, seen.state)):
        yield f"{len(behind)} partitions are not in sync: {named(behind)}"
    for partition, under_way in sorted(seen.state.reassignments.items()):
        yield f"{partition} is being moved to {','.join(map(str, under_way.target))}"
    if throttles.ours:
        yield (
            f"throttles of `apply` on {len(throttles.ours)} topics and brokers: one runs, or was "
            "killed (continue it, or `binwright brokers cancel`)"
        )
    if lists := [each.name for each in throttles.foreign if each.kind == "topic"]:
        yield f"throttles of another tool on topics: {', '.join(lists)}"
    for text in throttles.foreign_limits():
        yield f"a limit on replication that is not ours: {text}"


def plan_lines(proposals: BrokerPlans) -> Iterator[str]:
    """Yield what the balancers propose or carry out."""
    for group, each in sorted(proposals.by_group.items()):
        yield (
            f"plan {each.number} of the balancer of {group} {_stage(each)}: "
            f"{len(each.proposed.after)} partitions, {each.proposed.bytes} bytes; "
            f"{'; '.join(each.proposed.reasons)}"
        )


def _stage(plan: BrokerPlan) -> str:
    if plan.started:
        return "is carried out"
    return "goes ahead" if plan.goes_ahead else "waits"


def _json(
    cluster: Cluster, seen: Snapshot, throttles: Throttles, proposals: BrokerPlans
) -> dict[str, Any]:
    loads = broker_loads(cluster, current(cluster))
    return {
        "brokers": {
            str(each.id): {
                "rack": each.rack,
                "state": each.state,
                "replicas": loads[each.id].replicas,
                "leaders": loads[each.id].leaders,
                "dead_directories": list(disk.dead if (disk := seen.disks.get(each.id)) else ()),
                **loads[each.id].amounts._asdict(),
            }
            for each in cluster.brokers
        },
        "imbalance": {each.resource: each.factor for each in imbalance(cluster)},
        "unmeasured": seen.unmeasured,
        "not_in_sync": [str(each) for each in under_replicated({}, seen.state)],
        "reassignments": {
            str(partition): list(each.target)
            for partition, each in seen.state.reassignments.items()
        },
        "plans": [
            {
                "number": each.number,
                "group": group,
                "stage": _stage(each),
                "reasons": list(each.proposed.reasons),
                "bytes": each.proposed.bytes,
                "replicas": {str(p): list(new) for p, new in sorted(each.proposed.after.items())},
            }
            for group, each in sorted(proposals.by_group.items())
        ],
        "throttles": {
            "ours": [f"{each.kind} {each.name}" for each in throttles.ours],
            "foreign": [f"{each.kind} {each.name}" for each in throttles.foreign],
            "limits": throttles.foreign_limits(),
        },
    }
