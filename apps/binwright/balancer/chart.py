"""A chart of what each broker carries before and after a plan."""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from binwright.balancer.decide.loads import use
from binwright.balancer.decide.model import RESOURCES, Cluster
from binwright.balancer.decide.plans import PlacementPlan

WIDTH, DPI = 0.4, 150


def chart(cluster: Cluster, plan: PlacementPlan) -> Figure:
    """Return bars for each broker, a panel for each resource that has a load."""
    sides = {"now": use(cluster, plan.before), "after": use(cluster, plan.after)}
    shown = [
        place
        for place in range(len(RESOURCES))
        if any(share[place] for uses in sides.values() for share in uses.values())
    ]
    brokers = sorted({*plan.before, *plan.after})
    figure = Figure(figsize=(8, 2.2 * max(len(shown), 1)), layout="constrained")
    for panel, place in enumerate(shown, 1):
        axes = figure.add_subplot(len(shown), 1, panel)
        for number, (side, uses) in enumerate(sides.items()):
            at = [index + (number - 0.5) * WIDTH for index in range(len(brokers))]
            heights = [100 * uses[b][place] if b in uses else 0.0 for b in brokers]
            axes.bar(at, heights, WIDTH, label=side)
        axes.set_xticks(range(len(brokers)), [f"broker {broker}" for broker in brokers])
        axes.set_ylabel(f"{RESOURCES[place]}, %")
    if shown:
        figure.axes[0].legend(frameon=False)
    return figure


def save_chart(cluster: Cluster, plan: PlacementPlan, file: Path) -> None:
    """Write the chart: as PNG if the file's name ends so, else as SVG."""
    figure = chart(cluster, plan)
    if file.suffix == ".png":
        figure.savefig(file, dpi=DPI, metadata={"Software": None})
        return
    # Without a salt matplotlib draws the ids of an SVG's parts at random.
    with rc_context({"svg.hashsalt": "binwright", "svg.fonttype": "none"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
