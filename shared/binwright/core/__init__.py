"""DECIDES. Pure: no asyncio, clock, client or logger."""
