"""`binwright brokers simulate`: what if brokers, the load or retention were different."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from typing import Annotated

import typer
from rich.table import Table

from binwright.balancer.cluster_model import Snapshot, WhatIf, cluster_model
from binwright.balancer.commands.pages import GB
from binwright.balancer.commands.plan import numbers
from binwright.balancer.commands.planning import Planning, unmeasured_text, with_planning
from binwright.balancer.decide.forecast import MONTH_DAYS, RateLine, future, topic_trends
from binwright.balancer.decide.loads import use
from binwright.balancer.decide.model import RESOURCES, Cluster
from binwright.balancer.decide.plans import Balance, FewestBrokers, Infeasible, PlacementPlan
from binwright.balancer.decide.rate_history import HOUR_S
from binwright.balancer.description import ClusterDescription
from binwright.cli.terminal import Console, print_json
from binwright.protocol.errors import PlacementError


@dataclass(frozen=True, slots=True)
class Answer:
    """What one cluster needs.

    Attributes:
        case: Which cluster.
        brokers: That it has, and that may hold replicas.
        needed: The fewest that hold the load, less the headroom; None: no number does.
        gigabytes: Copied to balance the brokers that it has; None: they cannot hold the load.
        use: The largest use of each resource after that, a share of a broker's capacity.
        why: Why it cannot be done.
    """

    case: str
    brokers: int
    needed: int | None
    gigabytes: float | None
    use: dict[str, float]
    why: str = ""


@with_planning
def command(
    planning: Planning,
    *,
    add: Annotated[int, typer.Option(min=0, help="Brokers to add, over the racks in turn.")] = 0,
    remove: Annotated[str, typer.Option(help="Brokers to take away, separated by commas.")] = "",
    growth: Annotated[
        float | None, typer.Option(min=0.01, help="Factor on all rates; 1.3 for 30 % more.")
    ] = None,
    retention: Annotated[
        list[str] | None, typer.Option(help="TOPIC=SECONDS that it keeps; may be repeated.")
    ] = None,
) -> None:
    """Say how many brokers the load needs: now, with changes, and in a month by its trend.

    The trend is that of three days or more: of the metrics topic, or of a recording (--rates).
    Nothing moves.
    """
    kept = dict(_retention(retention or []))
    seen, wanted = planning.read()
    lines = topic_trends(seen.history.topics(), HOUR_S)
    changes = WhatIf(
        drained=numbers(remove), added=_racks(seen, add), growth=growth or 1.0, retention_s=kept
    )
    answers = list(_answers(planning, seen, wanted, changes, lines))
    if planning.json_:
        print_json([asdict(each) for each in answers])
        return
    console = Console(soft_wrap=True)
    console.print(_table(answers))
    for each in answers:
        if each.why:
            console.print(f"{each.case}: {each.why}", markup=False, highlight=False)
    if not lines:
        console.print("no trend: rates of fewer than three whole days are known")
    if warning := unmeasured_text(seen, cluster_model(seen, wanted)):
        console.print(warning)


def _retention(options: Sequence[str]) -> Iterator[tuple[str, float]]:
    for option in options:
        topic, equals, seconds = option.partition("=")
        try:
            yield topic, float(seconds)
        except ValueError as exc:
            raise PlacementError(f"--retention: expected TOPIC=SECONDS, got {option!r}") from exc
        if not (topic and equals and float(seconds) > 0):
            raise PlacementError(f"--retention: expected TOPIC=SECONDS, got {option!r}")


def _racks(seen: Snapshot, count: int) -> tuple[str | None, ...]:
    """Return the racks of added brokers: those that there are, in turn."""
    racks = sorted({rack or "" for rack in seen.state.racks.values()}) or [""]
    return tuple(rack or None for rack in islice(cycle(racks), count))


def _answers(
    planning: Planning,
    seen: Snapshot,
    wanted: ClusterDescription,
    changes: WhatIf,
    lines: Mapping[str, RateLine],
) -> Iterator[Answer]:
    yield _answer("now", cluster_model(seen, wanted), planning)
    changed = cluster_model(seen, wanted, changes)
    if changes != WhatIf():
        yield _answer("changed", changed, planning)
    if lines:
        yield _answer(f"in {MONTH_DAYS} days", future(changed, lines, MONTH_DAYS), planning)


def _answer(case: str, cluster: Cluster, planning: Planning) -> Answer:
    usable = [broker for broker in cluster.brokers if broker.usable]
    spare = usable[0] if usable else None
    fewest = planning.find(cluster, FewestBrokers(spare=spare))
    needed = _needed(fewest, len(usable)) if isinstance(fewest, PlacementPlan) else None
    outcome = planning.find(cluster, Balance())
    if isinstance(outcome, Infeasible):
        return Answer(case, len(usable), needed, None, {}, "; ".join(map(str, outcome.conflicts)))
    return Answer(case, len(usable), needed, outcome.bytes / GB, _largest(cluster, outcome))


def _needed(placement: PlacementPlan, usable: int) -> int:
    return usable - len(placement.closed) + len(placement.added)


def _largest(cluster: Cluster, placement: PlacementPlan) -> dict[str, float]:
    uses = use(cluster, placement.after).values()
    largest = {name: max(each[n] for each in uses) for n, name in enumerate(RESOURCES)}
    return {name: share for name, share in largest.items() if share}


def _table(answers: Sequence[Answer]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("cluster", no_wrap=True)
    for name in ("brokers", "needed", "to copy", "largest use"):
        table.add_column(name, justify="right")
    for each in answers:
        table.add_row(
            each.case,
            str(each.brokers),
            "-" if each.needed is None else str(each.needed),
            "-" if each.gigabytes is None else f"{each.gigabytes:,.2f} GB",
            ", ".join(f"{name} {share:.0%}" for name, share in each.use.items()) or "-",
        )
    return table
