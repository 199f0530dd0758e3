"""For all tests."""

import asyncio
import gc


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


def pytest_sessionfinish() -> None:
    """Plugins import more for their summaries."""
    gc.disable()
