"""What commands about brokers print: a table with bars for each broker, and the moves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from binwright.balancer.decide.loads import BrokerLoad, use
from binwright.balancer.decide.model import RESOURCES, Amounts, BrokerId, Cluster, Resource
from binwright.balancer.decide.plans import Infeasible, PlacementPlan, ReplicaMove

BAR = 16  # characters of a full bar: the largest use of any broker
MOVES_SHOWN = 20
GB, MB = 1e9, 1e6


def broker_table(
    cluster: Cluster,
    before: Mapping[BrokerId, BrokerLoad],
    after: Mapping[BrokerId, BrokerLoad] | None = None,
) -> RenderableType:
    """Return a line for each broker, and a second one with what a plan makes of it.

    Bars are drawn to the largest use of each resource: what is even has bars of one length.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("broker", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in ("replicas", "leaders"):
        table.add_column(name, justify="right", no_wrap=True)
    shown = _shown(before, after)
    for name in shown:
        table.add_column(name, no_wrap=True)
    sides = {"now": before} if after is None else {"now": before, "after": after}
    uses = {name: use(cluster, loads) for name, loads in sides.items()}
    most = _most(uses.values())
    for broker in sorted(cluster.brokers, key=lambda each: each.id):
        for side, loads in sides.items():
            first = side == "now"
            load = loads.get(broker.id, BrokerLoad())
            rack = f" ({broker.rack})" if broker.rack else ""
            state = "" if broker.state == "up" else f" {broker.state}"
            table.add_row(
                f"{broker.id}{escape(rack)}{state}" if first else "",
                "" if after is None else side,
                f"{load.replicas:,}",
                f"{load.leaders:,}",
                *(
                    _cell(load, uses[side].get(broker.id), most, name, dim=not first)
                    for name in shown
                ),
            )
    return table


def _shown(*sides: Mapping[BrokerId, BrokerLoad] | None) -> list[Resource]:
    """Return the resources of which there is a load."""
    loads = [load.amounts for side in sides if side for load in side.values()]
    return [name for place, name in enumerate(RESOURCES) if any(load[place] for load in loads)]


def _most(uses: Iterable[Mapping[BrokerId, Amounts]]) -> Amounts:
    every = [each for side in uses for each in side.values()]
    return Amounts(*(max((each[place] for each in every), default=0.0) for place in range(4)))


def _cell(
    load: BrokerLoad, share: Amounts | None, most: Amounts, name: Resource, *, dim: bool
) -> Text:
    place = RESOURCES.index(name)
    filled = share[place] / most[place] if share and most[place] else 0.0
    text = Text("█" * round(BAR * min(filled, 1.0)), style="blue" if dim else "cyan")
    text.append("░" * (BAR - len(text)), style="dim")
    text.append(f" {amount(name, load.amounts[place])}")
    return text


def amount(name: Resource, value: float) -> str:
    """Return a number of a resource with its unit."""
    match name:
        case "disk":
            return f"{value / GB:,.2f} GB"
        case "cpu":
            return f"{value:,.2f} cores"
        case _:
            return f"{value / MB:,.2f} MB/s"


def plan_page(cluster: Cluster, plan: PlacementPlan) -> RenderableType:
    """Return brokers before and after, and the moves with their reasons."""
    copies = [move for move in plan.moves if not move.leader_only]
    head = (
        f"{len(plan.moves)} partitions change: {len(copies)} are copied, "
        f"{plan.bytes / GB:,.2f} GB; {len(plan.moves) - len(copies)} only change their leader"
    )
    lines = [head]
    if plan.proved:
        lines.append("no plan moves less")
    if plan.relaxed > 1:
        lines.append("no placement within the bounds of balance was found; this is the best")
    if plan.added:
        lines.append(f"{len(plan.added)} brokers have to be added first")
    if plan.closed:
        lines.append(f"brokers that are not needed: {', '.join(map(str, plan.closed))}")
    return Group(broker_table(cluster, plan.before, plan.after), "", *lines, *_moves(plan.moves))


def _moves(moves: Sequence[ReplicaMove]) -> Iterator[RenderableType]:
    if not moves:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("partition", "replicas", "copied", "because"):
        table.add_column(name, no_wrap=name != "because")
    for move in moves[:MOVES_SHOWN]:
        table.add_row(
            str(move.partition),
            f"{_listed(move.before)} → {_listed(move.after)}",
            f"{move.bytes / MB:,.1f} MB" if move.bytes else "-",
            str(move.reasons[0]),
        )
    yield ""
    yield table
    if len(moves) > MOVES_SHOWN:
        yield f"and {len(moves) - MOVES_SHOWN} more: see the file"


def _listed(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))


def infeasible_text(infeasible: Infeasible) -> str:
    """Return why there is no plan."""
    how = "there is no placement" if infeasible.proved else "no placement was found"
    return f"{how}: {'; '.join(map(str, infeasible.conflicts))}"
