"""For all tests."""

import ast
import asyncio
import functools
import gc
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings

# The gate draws the same examples every time, and counts on no machine's speed.
# `pytest --hypothesis-profile=search` draws new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", settings.get_profile("search"), derandomize=True)
settings.register_profile(
    "mutants",
    settings.get_profile("gate"),
    max_examples=20,
    phases=(Phase.explicit, Phase.generate),  # what fails need not be small
)
settings.load_profile("gate")


def pytest_configure() -> None:
    """Collect no garbage while source is parsed: by pytest, by a report, by the code under test.

    pytest-asyncio and looptime leave event loops behind. The warning about one is formatted with
    a parse of its own; inside another parse, Python 3.11 ends that one with "AST constructor
    recursion depth mismatch".
    """
    asyncio.set_event_loop(None)
    ast.parse = _parsed_whole(ast.parse)


def _parsed_whole(parse: Any) -> Any:
    @functools.wraps(parse)
    def whole(*args: Any, **kwargs: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return parse(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()

    return whole


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """Leave logging as it was: a test that configures it writes to a file that closes with it."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.configure(**before)
    root.handlers[:], root.level = handlers, level
