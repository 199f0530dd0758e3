"""What commands about brokers print."""

from io import StringIO

from binwright.balancer.commands.pages import (
    MOVES_SHOWN,
    amount,
    broker_table,
    infeasible_text,
    plan_page,
)
from binwright.balancer.decide.constraints import UnmetConstraint
from binwright.balancer.decide.loads import broker_loads
from binwright.balancer.decide.model import (
    Amounts,
    Broker,
    BrokerId,
    Cluster,
    Partition,
    Topic,
    current,
)
from binwright.balancer.decide.planner import plan
from binwright.balancer.decide.plans import Balance, Infeasible, PlacementPlan
from binwright.cli.terminal import Console
from binwright.protocol.model import BytesPerSecond, TopicPartition

CAPACITY = Amounts(10e9, 100e6, 100e6, 4.0)


def cluster(partitions: int = 4) -> Cluster:
    """Return brokers 1 and 2, of which the first has everything."""
    return Cluster(
        brokers=(Broker(BrokerId(1), CAPACITY, "a"), Broker(BrokerId(2), CAPACITY, "b", "new")),
        topics={"orders": Topic("orders", 1)},
        partitions=tuple(
            Partition(
                TopicPartition("orders", n),
                BytesPerSecond(1e6),
                10**9 // partitions,
                (BrokerId(1),),
            )
            for n in range(partitions)
        ),
    )


def shown(page: object) -> str:
    console = Console(width=160, record=True, file=StringIO())
    console.print(page)
    return console.export_text()


def test_a_table_has_a_line_for_each_broker_with_bars_to_the_largest_use() -> None:
    first, second = shown(
        broker_table(cluster(), broker_loads(cluster(), current(cluster())))
    ).splitlines()[1:3]
    assert first.startswith("1 (a)")
    assert "████████████████ 1.00 GB" in first
    assert second.startswith("2 (b) new")
    assert "░░░░░░░░░░░░░░░░ 0.00 GB" in second


def test_resources_without_a_load_are_left_out() -> None:
    assert "cpu" not in shown(broker_table(cluster(), broker_loads(cluster(), current(cluster()))))


def found(partitions: int = 4) -> PlacementPlan:
    outcome = plan(cluster(partitions), Balance())
    assert isinstance(outcome, PlacementPlan)
    return outcome


def test_a_plan_is_shown_before_and_after_with_the_reason_of_each_move() -> None:
    moves = len(found().moves)
    text = shown(plan_page(cluster(), found()))
    assert f"{moves} partitions change: {moves} are copied, {moves / 4:.2f} GB; 0 only" in text
    assert "orders-0   1 → 2     250.0 MB" in text
    assert "balance: disk of broker 1 at 10.0 %, limit" in text


def test_of_many_moves_the_first_are_shown() -> None:
    hidden = len(found(100).moves) - MOVES_SHOWN
    assert hidden > 0
    assert f"and {hidden} more: see the file" in shown(plan_page(cluster(100), found(100)))


def test_amounts_have_their_units() -> None:
    texts = [amount("disk", 1.5e9), amount("network in", 2e6), amount("cpu", 0.5)]
    assert texts == ["1.50 GB", "2.00 MB/s", "0.50 cores"]


def test_a_placement_that_does_not_exist_is_explained() -> None:
    conflict = UnmetConstraint("distinct brokers", "3 replicas, 2 brokers")
    outcome = Infeasible(Balance(), (conflict,), proved=True)
    assert infeasible_text(outcome) == (
        "there is no placement: distinct brokers: 3 replicas, 2 brokers"
    )
