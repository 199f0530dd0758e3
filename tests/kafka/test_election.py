"""When a controller begins a leadership, and how soon after the last one."""

import asyncio

import pytest

from binwright.kafka.election import LeadershipLost, Lease, lead_while_leased

pytestmark = pytest.mark.looptime


async def always() -> bool:
    return True


async def count_leaderships(length_s: float, duration_s: float) -> int:
    """Return how many leaderships of this length begin; each is ended by a later claim."""
    lease, count = Lease(), 0
    lease.acquired.set()

    async def lead() -> None:
        nonlocal count
        count += 1
        await asyncio.sleep(length_s)
        raise LeadershipLost("a later claim stands at 7")

    running = asyncio.create_task(lead_while_leased(lease, lead, always))
    await asyncio.sleep(duration_s)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return count


async def test_two_lease_holders_do_not_make_each_other_step_down_every_second() -> None:
    """B10: 71 claims in 70 s, and no leader carried out a plan."""
    assert await count_leaderships(0.5, 600.0) < 25


async def test_after_a_long_leadership_the_next_one_begins_at_once() -> None:
    assert await count_leaderships(100.0, 1_015.0) == 11


async def test_a_controller_suspended_beyond_its_session_leads_only_after_joining_again() -> None:
    """It still believes to own partition 0; its claim would end the new leader's leadership."""
    lease, leaderships, checks = Lease(), 0, 0
    lease.acquired.set()

    async def lead() -> None:
        nonlocal leaderships
        leaderships += 1
        await asyncio.Event().wait()

    async def confirmed() -> bool:
        nonlocal checks
        checks += 1
        return checks > 2

    running = asyncio.create_task(lead_while_leased(lease, lead, confirmed))
    await asyncio.sleep(1.5)
    assert (checks, leaderships) == (2, 0)
    lease.acquired.clear()  # it joins again, and another one was elected
    await asyncio.sleep(60.0)
    assert (checks, leaderships) == (2, 0)
    lease.acquired.set()
    await asyncio.sleep(1.5)
    assert (checks, leaderships) == (3, 1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
