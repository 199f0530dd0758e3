"""The guest that has a broker assign a KIP-848 group anew leaves, whatever happens."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from binwright.kafka.group_requests import ConsumerGroupHeartbeat, FindCoordinators
from binwright.protocol.errors import BrokerUnavailable
from binwright.scaler.rebalance_request import request_assignment

pytestmark = pytest.mark.looptime
JOIN, LEAVE = ConsumerGroupHeartbeat.JOIN, ConsumerGroupHeartbeat.LEAVE
UNKNOWN_MEMBER = 25


@dataclass
class FakeCoordinator:
    """A coordinator; a request that it does not answer in time it has carried out all the same.

    Attributes:
        answer_s: How long it takes for an answer to a join.
        is_lost: Whether that answer never comes.
        code: Of its answers.
        members: That have joined, and not left.
        guests: All that ever joined.
    """

    answer_s: float = 0.0
    is_lost: bool = False
    code: int = 0
    members: set[str] = field(default_factory=set)
    guests: list[str] = field(default_factory=list)

    async def ask_any(self, request: FindCoordinators) -> Any:
        del request
        return SimpleNamespace(coordinators=[("g", 1, "host", 1, 0, "", {})])

    async def send_request(self, broker: int, request: ConsumerGroupHeartbeat) -> Any:
        assert broker == 1
        _, guest, epoch = request._member
        if epoch == LEAVE:
            await asyncio.sleep(self.answer_s)
            self.members.discard(guest)
        else:
            self.members.add(guest)
            self.guests.append(guest)
            await asyncio.sleep(self.answer_s)
            if self.is_lost:
                raise BrokerUnavailable("no answer")
        return SimpleNamespace(error_code=self.code)


async def asked(coordinator: FakeCoordinator) -> None:
    await request_assignment(coordinator, "g")  # type: ignore[arg-type]


async def test_it_is_the_same_guest_each_time() -> None:
    coordinator = FakeCoordinator()
    await asked(coordinator)
    await asked(coordinator)
    assert coordinator.members == set()
    assert len(coordinator.guests) == 2
    assert len(set(coordinator.guests)) == 1


async def test_it_leaves_though_its_join_is_not_answered() -> None:
    coordinator = FakeCoordinator(is_lost=True)
    with pytest.raises(BrokerUnavailable, match="no answer"):
        await asked(coordinator)
    assert coordinator.members == set()


async def test_it_leaves_when_the_scaler_ends_meanwhile() -> None:
    coordinator = FakeCoordinator(answer_s=1.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await asked(coordinator)
    assert coordinator.members == set()


async def test_the_error_of_a_broker_is_raised() -> None:
    with pytest.raises(BrokerUnavailable, match="group g: UnknownMemberIdError"):
        await asked(FakeCoordinator(code=UNKNOWN_MEMBER))
