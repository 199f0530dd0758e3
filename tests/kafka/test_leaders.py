"""Which broker is asked about which partitions, and what a late broker delays."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from binwright.kafka.client import NO_LEADER
from binwright.kafka.leaders import PendingReplies, by_leader

LEADERS = {"orders": {0: 1, 1: 2, 2: NO_LEADER}, "clicks": {0: 2}}


def test_partitions_are_grouped_by_leader_and_those_without_one_are_left_out() -> None:
    assert by_leader(LEADERS) == {1: {"orders": [0]}, 2: {"orders": [1], "clicks": [0]}}


def test_only_the_named_partitions_are_grouped() -> None:
    named = [("orders", 0), ("orders", 2), ("orders", 9)]
    assert by_leader(LEADERS, named) == {1: {"orders": [0]}}


def replying(after_s: float) -> Callable[[], Coroutine[Any, Any, float]]:
    async def reply() -> float:
        await asyncio.sleep(after_s)
        return after_s

    return reply


@pytest.mark.looptime
async def test_a_late_broker_delays_one_round_and_is_not_asked_again_until_it_replies() -> None:
    loop, replies = asyncio.get_running_loop(), PendingReplies[float](2.0)
    requests = {1: replying(0.5), 2: replying(10.0)}
    begin = loop.time()
    await replies.round(requests)
    assert (loop.time() - begin, replies.take(), replies.late()) == (2.0, {1: 0.5}, frozenset({2}))
    await replies.round(requests)
    assert (loop.time() - begin, replies.take(), replies.late()) == (2.5, {1: 0.5}, frozenset({2}))
    await asyncio.sleep(10)
    assert replies.take() == {2: 10.0}
    await replies.close()
