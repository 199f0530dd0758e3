"""How commands read a cluster and plan for it, and the options that they share for it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from binwright.balancer import description
from binwright.balancer.cluster_model import Snapshot
from binwright.balancer.decide.model import Cluster
from binwright.balancer.decide.plans import Goal, PlanOutcome
from binwright.balancer.description import ClusterDescription
from binwright.balancer.planning import plan
from binwright.balancer.settings import BalancerProgramSettings
from binwright.balancer.snapshot import MEASURE_S, read_cluster
from binwright.cli.console import to_stderr
from binwright.cli.options import Bootstrap, Json, program_settings_at
from binwright.cli.runner import run_for_result

DescriptionFile = Annotated[
    Path | None,
    typer.Option("--describe", help="TOML: capacities, readers, groups, pins, exclusions."),
]
RatesFile = Annotated[
    Path | None,
    typer.Option("--rates", help="A recording; else the metrics topic, else sizes that grow."),
]
MeasureSeconds = Annotated[
    float,
    typer.Option(
        "--measure", min=0, help="Seconds to measure what no monitor does; 0: it counts as idle."
    ),
]


LIMIT_S = 20.0
Limit = Annotated[float, typer.Option(min=0, help="Seconds for one integer program.")]


def unmeasured_text(seen: Snapshot, cluster: Cluster) -> str | None:
    """Return a warning where rates are not known."""
    if not seen.unmeasured:
        return None
    return f"{seen.unmeasured} of {len(cluster.partitions)} partitions count as idle: not measured"


@dataclass(frozen=True, slots=True)
class Planning:
    """Reads a cluster and plans for it; each field is an option."""

    describe: DescriptionFile = None
    rates: RatesFile = None
    measure: MeasureSeconds = MEASURE_S
    limit: Limit = LIMIT_S
    bootstrap_servers: Bootstrap = None
    json_: Json = False

    def read(self) -> tuple[Snapshot, ClusterDescription]:
        """Return the cluster as it is, and what is wanted of it; see `read_cluster`."""
        settings, wanted = (
            program_settings_at(BalancerProgramSettings, self.bootstrap_servers),
            description.read(self.describe),
        )
        return run_for_result(lambda: read_cluster(settings, self.rates, self.measure)), wanted

    def find(self, cluster: Cluster, goal: Goal) -> PlanOutcome:
        """Return the plan of least bytes; see `balancer.planning.plan`.

        Without a word of the solver on standard output, where JSON goes.
        """
        with to_stderr():  # HiGHS prints some lines whatever it is told
            return plan(cluster, goal, self.limit)


def with_planning(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Planning`, made one as its first argument."""
    _, *own = signature(command).parameters.values()
    options = signature(Planning).parameters
    together = [
        *own,
        *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in options.values()),
    ]

    @wraps(command)
    def decorated(**values: Any) -> None:
        chosen = {name: values.pop(name) for name in options}
        command(Planning(**chosen), **values)

    # What Typer makes options of.
    decorated.__signature__ = Signature(together)  # type: ignore[attr-defined]
    decorated.__annotations__ = {each.name: each.annotation for each in together}
    return decorated
