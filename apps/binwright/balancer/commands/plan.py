"""`binwright brokers plan` and `drain`: where replicas should be, as a file for `apply`."""

from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from binwright.balancer import plan_file
from binwright.balancer.cluster_model import WhatIf, check_directories, cluster_model
from binwright.balancer.commands.pages import infeasible_text, plan_page
from binwright.balancer.commands.planning import Planning, unmeasured_text, with_planning
from binwright.balancer.decide.model import Cluster
from binwright.balancer.decide.plans import (
    BOUND,
    Balance,
    Goal,
    Infeasible,
    PlacementPlan,
    PlanOutcome,
)
from binwright.cli.terminal import Console, print_json
from binwright.protocol.errors import PlacementError

Output = Annotated[
    Path | None, typer.Option(help="Write the plan here; and the way back, `NAME.rollback.json`.")
]
Chart = Annotated[
    Path | None, typer.Option(help="Draw brokers before and after: a file .svg or .png.")
]


@with_planning
def plan(
    planning: Planning,
    *,
    bound: Annotated[
        float, typer.Option(min=1, help="Largest use of a resource, in units of its mean.")
    ] = BOUND,
    output: Output = None,
    chart: Chart = None,
) -> None:
    """Find the placement that balances the brokers and copies the fewest bytes. Nothing moves."""
    cluster, outcome = _planned(planning, Balance(bound), WhatIf())
    _show(cluster, outcome, output, chart, json_=planning.json_)


@with_planning
def drain(
    planning: Planning,
    brokers: Annotated[str, typer.Argument(help="Numbers of the brokers, separated by commas.")],
    *,
    balance: Annotated[
        bool, typer.Option("--balance", help="Balance the others, too; else move only what must.")
    ] = False,
    output: Output = None,
    chart: Chart = None,
) -> None:
    """Find a placement that leaves brokers empty, so that they can be taken away. Nothing moves."""
    goal = Balance() if balance else Balance(inf)
    cluster, outcome = _planned(planning, goal, WhatIf(drained=numbers(brokers)))
    _show(cluster, outcome, output, chart, json_=planning.json_)


def numbers(text: str) -> tuple[int, ...]:
    """Return brokers from an option; raise `PlacementError`."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as exc:
        raise PlacementError(f"not numbers of brokers, separated by commas: {text!r}") from exc


def _planned(planning: Planning, goal: Goal, changes: WhatIf) -> tuple[Cluster, PlanOutcome]:
    """Return the cluster and the plan; warn of what is not measured."""
    seen, wanted = planning.read()
    check_directories(seen, changes.drained)
    cluster = cluster_model(seen, wanted, changes)
    if warning := unmeasured_text(seen, cluster):
        Console(stderr=True, soft_wrap=True).print(warning)
    return cluster, planning.find(cluster, goal)


def _show(
    cluster: Cluster, outcome: PlanOutcome, output: Path | None, chart: Path | None, *, json_: bool
) -> None:
    if isinstance(outcome, Infeasible):
        raise PlacementError(infeasible_text(outcome))
    if output is not None:
        write(outcome, output)
    if chart is not None:
        from binwright.balancer.chart import save_chart  # noqa: PLC0415 - a second of CPU

        save_chart(cluster, outcome, chart)
    if json_:
        print_json(_json(outcome))
        return
    console = Console(soft_wrap=True)
    console.print(plan_page(cluster, outcome))
    if output is not None and outcome.moves:
        console.print(f"\nwritten to {output}: binwright brokers apply {output}")


def write(placement: PlacementPlan, output: Path) -> None:
    """Write a plan, with its reasons, and beside it the way back."""
    targets = {move.partition: tuple(map(int, move.after)) for move in placement.moves}
    back = {move.partition: tuple(map(int, move.before)) for move in placement.moves}
    notes = {
        "bytes": placement.bytes,
        "reasons": {
            str(m.partition): [str(reason) for reason in m.reasons] for m in placement.moves
        },
    }
    plan_file.write(output, targets, notes)
    plan_file.write(output.with_suffix(f".rollback{output.suffix}"), back)


def _json(placement: PlacementPlan) -> dict[str, Any]:
    return {
        "bytes": placement.bytes,
        "relaxed": None if placement.relaxed == inf else placement.relaxed,
        "proved": placement.proved,
        "moves": [
            {
                "partition": str(move.partition),
                "before": list(move.before),
                "after": list(move.after),
                "bytes": move.bytes,
                "reasons": [str(reason) for reason in move.reasons],
            }
            for move in placement.moves
        ],
        "brokers": {
            str(broker): {
                "before": placement.before[broker].amounts._asdict(),
                "after": placement.after[broker].amounts._asdict(),
            }
            for broker in sorted(placement.after)
            if broker in placement.before
        },
    }
