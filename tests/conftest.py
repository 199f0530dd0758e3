"""For all tests."""

import asyncio


def pytest_configure() -> None:
    """Let no event loop of the plugins' outlive its use: the collector would trip over it."""
    asyncio.set_event_loop(None)
