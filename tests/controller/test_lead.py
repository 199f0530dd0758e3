"""How soon a leader begins again."""

import asyncio

import pytest

from binwright.controller import lead
from binwright.controller.steer import Deposed

pytestmark = pytest.mark.looptime


async def always() -> bool:
    return True


async def begun(reigns_s: float, duration_s: float) -> int:
    """Return how many reigns of this length begin, each deposed by a later claim."""
    mandate, count = lead._Mandate(), 0
    mandate.given.set()

    async def reign() -> None:
        nonlocal count
        count += 1
        await asyncio.sleep(reigns_s)
        raise Deposed("a later claim stands at 7")

    serving = asyncio.create_task(lead._serve(mandate, reign, always))
    await asyncio.sleep(duration_s)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    return count


async def test_two_that_hold_the_mandate_do_not_depose_each_other_once_a_second() -> None:
    """B10: 71 claims in 70 s, and nobody got to act."""
    assert await begun(0.5, 600.0) < 25


async def test_who_led_for_long_begins_again_at_once() -> None:
    assert await begun(100.0, 1_015.0) == 11


async def test_who_slept_through_its_session_does_not_lead_before_it_joined_anew() -> None:
    """It still believes to hold partition 0, and its claim would depose who was chosen."""
    mandate, reigns, asked = lead._Mandate(), 0, 0
    mandate.given.set()

    async def reign() -> None:
        nonlocal reigns
        reigns += 1
        await asyncio.Event().wait()

    async def confirmed() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    serving = asyncio.create_task(lead._serve(mandate, reign, confirmed))
    await asyncio.sleep(1.5)
    assert (asked, reigns) == (2, 0)
    mandate.given.clear()  # it joins anew, and another one was chosen
    await asyncio.sleep(60.0)
    assert (asked, reigns) == (2, 0)
    mandate.given.set()
    await asyncio.sleep(1.5)
    assert (asked, reigns) == (3, 1)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
