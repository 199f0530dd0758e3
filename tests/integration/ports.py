"""Ports for a service and the consumers that it starts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from binwright.local.server import reserve_port
from binwright.protocol.errors import EmbeddedError

ATTEMPTS = 100


@contextmanager
def reserve_ports(count: int) -> Iterator[range]:
    """Keep ports that follow one another: slot n of a process fleet serves at the first + 1 + n.

    Linux gives odd numbers to servers and even ones to connections, so that the port after a free
    one is often in use; a consumer that is to serve there does not start.
    """
    for _ in range(ATTEMPTS):
        with ExitStack() as held:
            first = held.enter_context(reserve_port())
            try:
                for number in range(first + 1, first + count):
                    held.enter_context(reserve_port(number))
            except EmbeddedError:
                continue
            yield range(first, first + count)
            return
    raise AssertionError(f"no {count} ports that follow one another in {ATTEMPTS} attempts")
