"""The fake brokers do what Kafka does, as far as reassignments go."""

import asyncio

import pytest
from tests.balancer.fake_brokers import FakeBrokers

from binwright.balancer.decide.throttles import FOLLOWER_LIST, LEADER_RATE
from binwright.balancer.ports import ConfigResource, PartitionState
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition

pytestmark = pytest.mark.looptime

P0 = TopicPartition("orders", 0)
RACKS = dict.fromkeys((1, 2, 3))


def brokers() -> FakeBrokers:
    return FakeBrokers({P0: (1, 2)}, racks=RACKS, partition_bytes=10_000)


async def throttle(fake: FakeBrokers) -> None:
    await fake.set_configs(
        {
            ConfigResource("broker", ""): {LEADER_RATE: "1000"},
            ConfigResource("topic", "orders"): {FOLLOWER_LIST: "0:3"},
        }
    )


async def test_a_copy_takes_its_bytes_at_the_rate_of_the_throttle() -> None:
    fake = brokers()
    await throttle(fake)
    await fake.reassign({P0: (3, 2)})
    await asyncio.sleep(9.5)
    state = await fake.state()
    assert state.reassignments[P0].target == (3, 2)
    assert state.partitions[P0].in_sync == {1, 2}
    await asyncio.sleep(1)
    placed = (await fake.state()).partitions[P0]
    assert placed == PartitionState(3, (3, 2), frozenset({2, 3}))


async def test_an_order_changes_at_once_and_the_leader_by_an_election() -> None:
    fake = brokers()
    await fake.reassign({P0: (2, 1)})
    assert (await fake.state()).partitions[P0].leader == 1
    await fake.elect_preferred([P0])
    assert (await fake.state()).partitions[P0].leader == 2


async def test_a_cancelled_copy_is_given_up() -> None:
    fake = brokers()
    await throttle(fake)
    await fake.reassign({P0: (3, 2)})
    await fake.reassign({P0: None})
    state = await fake.state()
    assert state.reassignments == {}
    assert {*state.partitions[P0].replicas} == {1, 2}


async def test_a_dead_broker_copies_nothing_and_is_in_sync_with_nothing() -> None:
    fake = brokers()
    await fake.reassign({P0: (3, 2)})
    fake.kill_broker(3)
    fake.kill_broker(1)
    await asyncio.sleep(1_000)
    state = await fake.state()
    assert state.partitions[P0].leader == 2
    assert state.reassignments
    fake.start_broker(3)
    await asyncio.sleep(1)
    assert not (await fake.state()).reassignments


async def test_a_value_that_is_removed_is_gone() -> None:
    fake = brokers()
    await throttle(fake)
    await fake.set_configs({ConfigResource("broker", ""): {LEADER_RATE: None}})
    assert [*fake.throttled()] == [ConfigResource("topic", "orders")]


async def test_a_call_fails_when_it_is_asked_to() -> None:
    fake = brokers()
    fake.fail_next = [None, BrokerUnavailable("away")]
    await fake.state()
    with pytest.raises(BrokerUnavailable):
        await fake.state()
