"""Replies of brokers that are asked again and again, of which a late one delays few."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PendingReplies(Generic[T]):
    """At most one pending request for each broker.

    A broker that does not reply in time delays one round by at most `answer_s`: until it has
    replied, it is not asked again, and later rounds do not wait for it.
    """

    def __init__(self, answer_s: float) -> None:
        """Wait for replies up to `answer_s` seconds."""
        self._answer_s = answer_s
        self._tasks: dict[int, asyncio.Task[T]] = {}

    async def round(self, requests: Mapping[int, Callable[[], Coroutine[Any, Any, T]]]) -> None:
        """Ask brokers, and wait for those that were not late before; requests must not raise."""
        late = self.late()
        for broker, ask in requests.items():
            # A reply that has come since the last round is too old to be of use.
            if broker not in late:
                self._tasks[broker] = asyncio.create_task(ask())
        asked = [self._tasks[broker] for broker in requests if broker not in late]
        if asked:
            await asyncio.wait(asked, timeout=self._answer_s)

    def take(self) -> dict[int, T]:
        """Return the replies that have come, by broker, each once."""
        done = {broker for broker in self._tasks if broker not in self.late()}
        return {broker: self._tasks.pop(broker).result() for broker in sorted(done)}

    def late(self) -> frozenset[int]:
        """Return the brokers that have not replied yet."""
        return frozenset(broker for broker, task in self._tasks.items() if not task.done())

    async def close(self) -> None:
        """End what is pending."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
