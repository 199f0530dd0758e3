"""The fake log sampler reports growth, failures and missing sizes."""

import asyncio

import pytest

from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import LogSample, LogSampler
from binwright.testing.data_topics import FakeTopics
from binwright.testing.log_sampler import FakeLogSampler, sample_topics

pytestmark = pytest.mark.looptime

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


async def growing() -> FakeLogSampler:
    topics = FakeTopics({"t": 2})
    topics.grow(P0, bytes_per_s=1000, record_bytes=100)
    return FakeLogSampler(topics)


async def test_it_implements_the_port_on_the_loops_clock() -> None:
    logs: LogSampler = await growing()
    await asyncio.sleep(3)
    assert await sample_topics(logs, "t", "u") == {
        "t": {0: LogSample(1, 0, 30, 3000), 1: LogSample(1, 0, 0, 0)},
        "u": {},
    }


async def test_brokers_may_be_late_or_return_no_sizes() -> None:
    logs = await growing()
    logs.late.add(P0)
    logs.reports_sizes = False
    assert await sample_topics(logs, "t") == {"t": {0: None, 1: LogSample(1, 0, 0, None)}}


async def test_retention_and_new_leaders_are_visible() -> None:
    logs = await growing()
    await asyncio.sleep(3)
    logs.topics.delete_records(P0, before=10)
    logs.topics.log(P0).leader = 2
    logs.topics.log(P1).leader = None
    assert await sample_topics(logs, "t") == {"t": {0: LogSample(2, 10, 30, 2000), 1: None}}


async def test_a_pass_has_a_latency_and_may_fail() -> None:
    logs = await growing()
    logs.latency_s = 2
    logs.fail_next()
    with pytest.raises(BrokerUnavailable):
        await sample_topics(logs, "t")
    await sample_topics(logs, "t")
    assert (asyncio.get_running_loop().time(), logs.passes) == (4, 1)
