"""The scaler's loop, on virtual time."""

import asyncio
from collections.abc import Collection

import pytest
from tests.scaler.decide.scaled_groups import changed
from tests.scaler.fakes import FakeKafka, FakeWorkload

from binwright.protocol.errors import BrokerUnavailable
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.sizing import ReplicaChange
from binwright.scaler.passes import FIRST_LOOK_S, ORDER_S, ScaledTarget, Scaler

pytestmark = pytest.mark.looptime
PERIOD_S, ZERO_POLL_S = 10.0, 2.0


def target(
    group: str = "orders", least: int = 1, workload: FakeWorkload | None = None
) -> ScaledTarget:
    config = ScaledGroupSettings(
        group=group, min_replicas=least, max_replicas=10, records_per_s=100.0
    )
    return ScaledTarget(group, config, workload or FakeWorkload())


def scaler(kafka: FakeKafka, *targets: ScaledTarget) -> Scaler:
    found = {each.key: each for each in targets}
    return Scaler(lambda: found, kafka, kafka, PERIOD_S, ZERO_POLL_S)


async def run_for(made: Scaler, seconds: float) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await made.run()


async def test_a_pass_looks_up_all_groups_at_once_and_orders_what_they_need() -> None:
    kafka = FakeKafka(rates={"orders": [40.0] * 6, "clicks": [1.0] * 6})
    orders, clicks = FakeWorkload(), FakeWorkload()
    await run_for(
        scaler(kafka, target("orders", workload=orders), target("clicks", workload=clicks)), 1
    )

    assert (kafka.asked, kafka.ended) == ([{"orders", "clicks"}], [{"orders", "clicks"}])
    assert (orders.orders, clicks.orders) == ([3], [])


async def test_passes_are_a_period_apart() -> None:
    kafka = FakeKafka(rates={"orders": [1.0]})
    await run_for(scaler(kafka, target()), 3.5 * PERIOD_S)

    assert len(kafka.asked) == 4


async def test_a_change_of_the_groups_brings_a_pass_at_once() -> None:
    kafka = FakeKafka(rates={"orders": [1.0]})
    made = scaler(kafka, target())
    asyncio.get_running_loop().call_later(3, made.request_pass)
    await run_for(made, 4)

    assert len(kafka.asked) == 2


async def test_a_group_at_zero_wakes_between_two_passes() -> None:
    kafka = FakeKafka(rates={"orders": [0.0] * 4, "clicks": [1.0]})
    workload = FakeWorkload(0)
    made = scaler(kafka, target(least=0, workload=workload), target("clicks"))
    record = [1, 0, 0, 0]
    asyncio.get_running_loop().call_later(3, lambda: kafka.lags.update(orders=record))
    await run_for(made, 3 + ZERO_POLL_S)

    assert (workload.orders, len(kafka.asked)) == ([1], 1)
    assert kafka.ended[1:] == [{"orders"}] * 2


def metrics(made: Scaler) -> dict[tuple[str, str | None], float]:
    """Return metrics by their names and targets."""
    return {(each.name, each.labels.get("target")): each.value for each in made.samples()}


async def test_deleted_records_are_a_metric_and_keep_no_replica() -> None:
    kafka = FakeKafka(rates={"orders": [0.0] * 4}, lags={"orders": [500] * 4})
    kafka.starts["orders"] = 500
    workload = FakeWorkload()
    late = target(least=0, workload=workload)
    late.config = changed(late.config, idle_s=5.0)
    made = scaler(kafka, late)
    await run_for(made, PERIOD_S + 1)

    assert workload.orders == [0]
    assert metrics(made)["binwright_scaled_group_lost_records", "orders"] == 2_000
    assert late.verdict is not None
    assert late.verdict.work.lost == 2_000


async def test_what_a_pass_could_not_look_up_stays_a_fault_of_a_group_at_zero() -> None:
    kafka = FakeKafka(rates={"orders": [0.0] * 4})
    asleep = target(least=0, workload=FakeWorkload(0))
    made = scaler(kafka, asleep)
    asyncio.get_running_loop().call_later(5, lambda: kafka.faults.update(orders="no right"))
    await run_for(made, PERIOD_S + 3 * ZERO_POLL_S)

    assert asleep.fault == "no right"


async def test_a_slow_order_delays_no_other_group_and_is_not_repeated_meanwhile() -> None:
    kafka = FakeKafka(rates={"orders": [40.0] * 6, "clicks": [40.0] * 6})
    slow, fast = FakeWorkload(slow_s=15), FakeWorkload()
    await run_for(
        scaler(kafka, target("orders", workload=slow), target("clicks", workload=fast)), 14
    )

    assert (slow.orders, fast.orders, fast.replicas) == ([3], [3], 3)


async def test_an_order_that_takes_too_long_is_given_up_and_tried_again() -> None:
    kafka = FakeKafka(rates={"orders": [40.0] * 6})
    stuck = target(workload=FakeWorkload(slow_s=1_000))
    await run_for(scaler(kafka, stuck), ORDER_S + 1)
    assert stuck.fault == "the order was not carried out within 20 s"

    assert isinstance(stuck.workload, FakeWorkload)
    stuck.workload.slow_s = 0.0
    await run_for(scaler(kafka, stuck), PERIOD_S + 1)
    assert (stuck.fault, stuck.state.last_order) == ("", 3)


async def test_an_order_that_fails_is_a_fault_of_its_group() -> None:
    kafka = FakeKafka(rates={"orders": [40.0] * 6})
    refused = target(workload=FakeWorkload(refuses="403: no right"))
    await run_for(scaler(kafka, refused), 1)

    assert (refused.fault, refused.state.last_order) == ("403: no right", None)


async def test_a_group_whose_offsets_are_not_known_keeps_its_replicas() -> None:
    kafka = FakeKafka(
        rates={"orders": [40.0] * 6, "clicks": [40.0] * 6}, faults={"orders": "no right"}
    )
    one, other = target("orders"), target("clicks")
    await run_for(scaler(kafka, one, other), 1)

    assert (one.fault, one.verdict) == ("no right", None)
    assert other.state.last_order == 3


async def test_a_workload_that_does_not_exist_is_a_fault() -> None:
    kafka = FakeKafka(rates={"orders": [40.0] * 6})
    alone = target(workload=FakeWorkload(missing=True))
    await run_for(scaler(kafka, alone), 1)

    assert alone.fault == "the workload does not exist"


async def test_a_workload_that_is_not_known_now_is_a_fault() -> None:
    kafka = FakeKafka(rates={"orders": [40.0] * 6})
    hidden = target(workload=FakeWorkload(unknown="the API server does not answer"))
    await run_for(scaler(kafka, hidden), 1)

    assert (hidden.fault, hidden.verdict) == ("the API server does not answer", None)


async def test_an_unexpected_error_in_one_group_ends_no_other() -> None:
    kafka = FakeKafka(rates={"orders": [float("nan")] * 6, "clicks": [40.0] * 6})
    broken, other = target("orders"), target("clicks")
    await run_for(scaler(kafka, broken, other), 1)

    assert broken.fault.startswith("PackingError: ")
    assert other.state.last_order == 3


async def test_changes_are_reported_after_a_pass_and_after_an_order() -> None:
    kafka, reports = FakeKafka(rates={"orders": [40.0] * 6}), list[int | None]()
    seen = target()
    seen.on_change = lambda _, ordered: reports.append(ordered)
    await run_for(scaler(kafka, seen), 1)

    assert reports == [None, 3]


async def test_metrics_show_each_group() -> None:
    kafka = FakeKafka(rates={"orders": [40.0] * 6})
    shown = target()
    shown.config = changed(shown.config, mode="approve")
    made = scaler(kafka, shown, ScaledTarget("new", shown.config, FakeWorkload(missing=True)))
    await run_for(made, 1)
    found = metrics(made)

    assert shown.state.proposal == ReplicaChange(1, 3)
    assert found["binwright_scaled_group_wanted_replicas", "orders"] == 3
    assert found["binwright_scaled_group_proposal_waits", "orders"] == 1
    assert found["binwright_scaled_group_records_per_second", "orders"] == 240
    assert found["binwright_scaled_group_fault", "new"] == 1
    assert found["binwright_scaler_passes_total", None] == 1


async def test_liveness_follows_the_loop() -> None:
    kafka, beats = FakeKafka(rates={"orders": [1.0]}), list[str]()
    made = scaler(kafka, target())
    made.beat, made.end = (lambda: beats.append("beat")), (lambda: beats.append("end"))
    await run_for(made, 2 * ZERO_POLL_S + 1)

    assert beats == ["beat", "beat", "beat", "end"]


async def test_a_group_with_a_short_sla_has_passes_of_its_own() -> None:
    kafka = FakeKafka(rates={"orders": [1.0], "clicks": [1.0]})
    quick = target("orders")
    quick.config = changed(quick.config, sla_s=3.0)
    await run_for(scaler(kafka, quick, target("clicks")), PERIOD_S - 0.5)

    assert kafka.asked == [{"orders", "clicks"}, {"orders"}, {"orders"}, {"orders"}]
    assert kafka.windows == {"orders": 30.0}


async def test_how_records_arrive_is_learnt_by_close_looks() -> None:
    kafka, looked = FakeKafka(rates={"orders": [1.0], "clicks": [1.0]}), list[set[str]]()
    learns, other = target("orders"), target("clicks")
    learns.config = changed(learns.config, sla_s=20.0, start_s=0.0, commit_interval_s=5.0)

    async def look(topics: Collection[str]) -> list[tuple[float, int]]:
        looked.append(set(topics))
        return [(number / 10, 90 * (number // 10)) for number in range(80)]

    made = scaler(kafka, learns, other)
    made.look = look
    await run_for(made, 3 * FIRST_LOOK_S + 1)

    assert looked == [{"orders"}] * 2  # they agree, and the next look is minutes away
    assert learns.state.learnt.burst_s.known(0.0) == pytest.approx(1.0)


async def test_topics_that_cannot_be_looked_at_are_looked_at_again() -> None:
    kafka, learns = FakeKafka(rates={"orders": [1.0]}), target("orders")
    learns.config = changed(learns.config, sla_s=20.0, start_s=0.0, commit_interval_s=5.0)
    looks = 0

    async def look(_: Collection[str]) -> list[tuple[float, int]]:
        nonlocal looks
        looks += 1
        raise BrokerUnavailable("no broker")

    made = scaler(kafka, learns)
    made.look = look
    await run_for(made, 3 * FIRST_LOOK_S + 1)
    assert looks == 3


async def test_what_a_group_saves_against_what_it_had_is_a_metric() -> None:
    kafka, workload = FakeKafka(rates={"orders": [40.0] * 6}), FakeWorkload(replicas=3)
    saving, other = target(workload=workload), target(workload=FakeWorkload(replicas=3))
    other.key = "other"
    saving.config = changed(saving.config, before_replicas=5.0)
    made = scaler(kafka, saving, other)
    await run_for(made, 2.5 * PERIOD_S)
    name = "binwright_scaled_group_saved_replica_seconds"
    assert metrics(made)[name, saving.key] == pytest.approx(2 * 2 * PERIOD_S, abs=0.5)
    assert (name, "other") not in metrics(made)
