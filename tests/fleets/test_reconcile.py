"""What the fleets that reconcile in a loop share, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from binwright.fleets.reconcile import Readiness, Refusals, reconcile_loop, run_all
from binwright.protocol.errors import ClusterRefused, ExternalError
from binwright.protocol.model import Slot

ONE, TWO = Slot(1), Slot(2)


class Rounds:
    """Rounds of a fleet, the first of which fail."""

    def __init__(self, failures: int = 0) -> None:
        self.changed = asyncio.Event()
        self.times: list[float] = []
        self._failures = failures

    async def reconcile(self) -> None:
        self.times.append(asyncio.get_running_loop().time())
        if len(self.times) <= self._failures:
            raise ExternalError("refused")

    @asynccontextmanager
    async def looping(self, gather_s: float = 0.0) -> AsyncIterator[None]:
        loop = reconcile_loop(
            self.reconcile, self.changed, group="g", every_s=60.0, gather_s=gather_s
        )
        task = asyncio.create_task(loop)
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.looptime
async def test_a_round_follows_a_change_and_each_period_without_one() -> None:
    rounds = Rounds()
    async with rounds.looping():
        await asyncio.sleep(5)
        rounds.changed.set()
        await asyncio.sleep(70)
    assert rounds.times == pytest.approx([5, 65])


@pytest.mark.looptime
async def test_changes_shortly_after_one_another_make_one_round() -> None:
    rounds = Rounds()
    async with rounds.looping(gather_s=0.2):
        for _ in range(2):
            rounds.changed.set()
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
    assert rounds.times == pytest.approx([0.2])


@pytest.mark.looptime
async def test_a_round_that_failed_is_repeated_after_longer_and_longer_pauses() -> None:
    rounds = Rounds(failures=6)
    async with rounds.looping():
        rounds.changed.set()
        await asyncio.sleep(50)
    assert rounds.times == pytest.approx([0, 1, 3, 7, 15, 25, 35])


async def test_all_operations_run_although_one_fails() -> None:
    done: list[int] = []

    async def operation(number: int) -> None:
        if number == 0:
            raise ExternalError("refused")
        done.append(number)

    with pytest.raises(ExternalError, match="refused"):
        await run_all([operation(number) for number in range(3)])
    assert done == [1, 2]


def test_a_reason_is_reported_once_and_again_after_a_success() -> None:
    reported: list[tuple[str, Slot | None]] = []

    def report(event: str, text: str, slot: Slot | None, *, warning: bool = False) -> None:
        assert (event, warning) == ("Refused", True)
        reported.append((text, slot))

    refusals = Refusals(report)
    for _ in range(2):
        with pytest.raises(ClusterRefused), refusals.noted(ClusterRefused, "Refused", ONE):
            raise ClusterRefused(403, "quota")
    refusals.note("Refused", "no template", None)
    assert reported == [("403: quota", ONE), ("no template", None)]
    assert refusals.reasons == ["403: quota", "no template"]
    refusals.clear(ONE)
    refusals.note("Refused", "403: quota", ONE)
    assert reported[2:] == [("403: quota", ONE)]
    refusals.clear(ONE)
    assert refusals.reasons == ["no template"]


@pytest.mark.looptime
async def test_a_process_is_steady_once_it_has_been_ready_for_long_enough() -> None:
    readiness, start = Readiness(3.0), asyncio.get_running_loop().time()
    await asyncio.sleep(1)
    assert not readiness.update_ready({ONE: start})
    await asyncio.sleep(2)
    assert readiness.update_ready({ONE: start})
    assert not readiness.update_ready({ONE: start})
    assert (readiness.steady(ONE), readiness.steady(TWO)) == (True, False)


@pytest.mark.looptime
async def test_a_report_of_the_process_before_a_restart_does_not_count() -> None:
    """A running pod is no proof: its image may be one that never sends a Hello."""
    readiness, start = Readiness(3.0), asyncio.get_running_loop().time()
    await asyncio.sleep(4)
    readiness.mark_restarted(ONE)
    assert not readiness.update_ready({ONE: start})
    await asyncio.sleep(4)
    assert not readiness.steady(ONE)
    await asyncio.sleep(4)
    readiness.update_ready({ONE: start + 8})
    assert readiness.steady(ONE)
