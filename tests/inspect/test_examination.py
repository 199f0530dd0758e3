"""Each check of `binwright doctor` ends in time, with what it found or why it found nothing."""

import asyncio

import pytest

from binwright.inspect.decide.doctor.findings import Finding
from binwright.inspect.doctor.examination import CHECK_S, within
from binwright.protocol.errors import BrokerUnavailable, SettingsError

pytestmark = pytest.mark.looptime


async def test_a_check_in_time_returns_what_it_found() -> None:
    assert await within("topics", asyncio.sleep(CHECK_S - 1, "found")) == "found"


async def test_a_check_without_an_answer_ends_as_a_fault() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    found = await within("topics", asyncio.sleep(1e6))
    assert isinstance(found, Finding)
    assert (found.check, found.status) == ("topics", "fault")
    assert "no answer within 30 s" in found.what
    assert loop.time() - began == pytest.approx(CHECK_S, abs=1)


@pytest.mark.parametrize("error", [BrokerUnavailable("away"), SettingsError("away")])
async def test_a_check_that_fails_is_a_fault_with_its_reason(error: Exception) -> None:
    async def failing() -> None:
        raise error

    assert await within("topics", failing()) == Finding("topics", "fault", "away")


async def test_an_error_of_ours_is_not_taken_for_a_fault() -> None:
    async def broken() -> None:
        raise AssertionError("ours")

    with pytest.raises(AssertionError, match="ours"):
        await within("topics", broken())
