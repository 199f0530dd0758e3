"""For all tests."""

import asyncio
import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# The gate draws the same examples every time, and counts on no machine's speed.
# `pytest --hypothesis-profile=search` draws new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", settings.get_profile("search"), derandomize=True)
settings.load_profile("gate")


def pytest_configure() -> None:
    """Collect no garbage while test modules are parsed.

    pytest-asyncio and looptime leave event loops behind; where the collector finds one in the
    middle of a parse, Python 3.11 ends with "AST constructor recursion depth mismatch".
    """
    asyncio.set_event_loop(None)
    gc.disable()


def pytest_collection_finish() -> None:
    """Everything is parsed."""
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, object, object]:
    """A failure's report parses the sources it quotes."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_sessionfinish() -> None:
    """Plugins import more for their summaries."""
    gc.disable()
