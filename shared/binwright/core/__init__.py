"""Decides everything that the system does, as pure functions on frozen values.

Imports no asyncio, clock, client or logger: events come in as values, actions go out as values.
Every package may import `model`, `errors`, `selection` and `ports`; `protocol` holds the messages;
`balance`, `reassignment`, `rates`, `packing`, `consumer` and `writer` do not import each other;
`controller` may import them.
"""
