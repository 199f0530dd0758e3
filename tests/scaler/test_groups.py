"""Committed offsets of many groups, from brokers that are late, old or no coordinators any more."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IncompatibleBrokerVersion

from binwright.kafka.client import UnsupportedVersion
from binwright.kafka.group_requests import FetchGroupOffsets, FindCoordinators, ListGroups
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.scaler.groups import GROUPS_PER_REQUEST, ConsumerGroups, DescribeMembers

pytestmark = pytest.mark.looptime
ANSWER_S = 2.0
NEW, OLD = {9: (1, 9), 10: (0, 6)}, {9: (0, 7), 10: (0, 3)}
NOT_COORDINATOR, NO_RIGHT = 16, 30


@dataclass
class FakeCluster:
    """Coordinators made of dictionaries; every group has committed 7 in one partition.

    Attributes:
        broker_of: Group -> its coordinator.
        codes: Group -> the error that its coordinator returns.
        late: Brokers that reply after so many seconds.
        gone: Brokers that do not reply.
        versions: That all brokers support.
        asked: The groups of each request for offsets, with the broker.
        searched: The groups of each request for coordinators.
    """

    broker_of: dict[str, int]
    codes: dict[str, int] = field(default_factory=dict)
    late: dict[int, float] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    versions: Mapping[int, tuple[int, int]] = field(default_factory=lambda: NEW)
    asked: list[tuple[int, int]] = field(default_factory=list)
    searched: list[int] = field(default_factory=list)

    async def brokers(self) -> int:
        return 3

    async def broker_ids(self) -> tuple[int, ...]:
        return (1, 2)

    async def ask_any(self, request: FindCoordinators) -> Any:
        groups = self._prepared(request)
        self.searched.append(len(groups))
        if self.versions is OLD:
            (group,) = groups
            return SimpleNamespace(node_id=self.broker_of[group], error_code=0)
        rows: list[Any] = [
            (g, self.broker_of.get(g, -1), "host", 1, 0 if g in self.broker_of else 15, "", {})
            for g in groups
        ]
        return SimpleNamespace(coordinators=rows)

    async def send_request(self, broker: int, request: FetchGroupOffsets) -> Any:
        groups = self._prepared(request)
        self.asked.append((broker, len(groups)))
        await asyncio.sleep(self.late.get(broker, 0))
        if broker in self.gone:
            raise BrokerUnavailable(f"ask broker {broker}: closed")
        if self.versions is OLD:
            return SimpleNamespace(error_code=0, topics=[("t", [(0, 7, "", 0)])])
        rows: list[Any] = [
            (g, [("t", [(0, 7, 1, "", 0, {})], {})], self.codes.get(g, 0), {}) for g in groups
        ]
        return SimpleNamespace(groups=rows)

    def _prepared(self, request: Any) -> Any:
        try:
            request.prepare(dict(self.versions))
        except IncompatibleBrokerVersion as exc:
            raise UnsupportedVersion(str(exc)) from exc
        return request._groups


def offsets(cluster: FakeCluster) -> ConsumerGroups:
    return ConsumerGroups(cluster, timeout_s=ANSWER_S)  # type: ignore[arg-type]


def groups(count: int, broker: int = 1) -> dict[str, int]:
    return {f"group-{number}": broker for number in range(count)}


SEVEN = {TopicPartition("t", 0): 7}


async def test_groups_of_a_broker_share_requests_and_coordinators_are_remembered() -> None:
    cluster = FakeCluster(groups(250))
    made = offsets(cluster)
    first = await made.committed(cluster.broker_of)
    await made.committed(cluster.broker_of)

    assert first.offsets == dict.fromkeys(cluster.broker_of, SEVEN)
    assert cluster.asked == [(1, GROUPS_PER_REQUEST), (1, GROUPS_PER_REQUEST), (1, 50)] * 2
    assert cluster.searched == [GROUPS_PER_REQUEST, GROUPS_PER_REQUEST, 50]


async def test_a_late_broker_delays_one_look_up_and_only_its_own_groups_have_a_fault() -> None:
    cluster = FakeCluster({"a": 1, "b": 2}, late={2: 100})
    made, loop = offsets(cluster), asyncio.get_running_loop()
    began = loop.time()
    first = await made.committed(["a", "b"])
    between = loop.time()
    second = await made.committed(["a", "b"])

    assert (between - began, loop.time() - between) == (ANSWER_S, 0)
    for found in (first, second):
        assert found.offsets == {"a": SEVEN}
        assert found.faults == {"b": "broker 2 has not replied within 2 s"}
    assert [broker for broker, _ in cluster.asked] == [1, 2, 1]
    await made.close()


async def test_a_reply_that_came_too_late_is_not_used() -> None:
    cluster = FakeCluster({"a": 1}, late={1: 3})
    made = offsets(cluster)
    await made.committed(["a"])
    await asyncio.sleep(30)
    cluster.late.clear()
    found = await made.committed(["a"])

    assert found.offsets == {"a": SEVEN}
    assert len(cluster.asked) == 2


async def test_a_group_whose_coordinator_has_moved_is_found_again() -> None:
    cluster = FakeCluster({"a": 1}, codes={"a": NOT_COORDINATOR})
    made = offsets(cluster)
    first = await made.committed(["a"])
    cluster.broker_of["a"], cluster.codes = 2, {}
    second = await made.committed(["a"])

    assert first.faults == {"a": "Kafka does not return its offsets: NotCoordinatorForGroupError"}
    assert (second.offsets, cluster.asked) == ({"a": SEVEN}, [(1, 1), (2, 1)])


async def test_a_group_without_the_right_to_describe_it_has_a_fault_alone() -> None:
    cluster = FakeCluster({"a": 1, "b": 1}, codes={"a": NO_RIGHT})
    found = await offsets(cluster).committed(["a", "b"])

    assert found.offsets == {"b": SEVEN}
    assert "GroupAuthorizationFailedError" in found.faults["a"]


async def test_a_group_without_a_coordinator_has_a_fault_alone() -> None:
    found = await offsets(FakeCluster({"b": 1})).committed(["a", "b"])

    assert found.offsets == {"b": SEVEN}
    assert found.faults == {"a": "its coordinator is not known: GroupCoordinatorNotAvailableError"}


async def test_a_broker_that_is_gone_is_looked_for_again() -> None:
    cluster = FakeCluster({"a": 1}, gone={1})
    made = offsets(cluster)
    first = await made.committed(["a"])
    cluster.broker_of["a"] = 2

    assert first.faults == {"a": "ask broker 1: closed"}
    assert (await made.committed(["a"])).offsets == {"a": SEVEN}


async def test_brokers_before_kafka_3_are_asked_group_by_group() -> None:
    cluster = FakeCluster({"a": 1, "b": 1}, versions=OLD)
    made = offsets(cluster)

    assert (await made.committed(["a", "b"])).offsets == {"a": SEVEN, "b": SEVEN}
    assert cluster.asked == [(1, 1), (1, 1)]


async def test_without_any_broker_every_group_has_a_fault() -> None:
    class Away(FakeCluster):
        async def brokers(self) -> int:
            raise BrokerUnavailable("no broker answers")

    found = await offsets(Away({})).committed(["a"])

    assert found.faults == {"a": "its coordinator is not known: no broker answers"}


async def test_a_member_of_kip_848_subscribes_to_what_its_pattern_matches() -> None:
    class Coordinator(FakeCluster):
        async def send_request(self, broker: int, request: Any) -> Any:
            if isinstance(request, DescribeMembers):
                return SimpleNamespace(groups=[(0, "a", "Dead", "", "", [], 0)])
            assert broker == 1
            read: list[Any] = [(None, "orders", [0, 1], {})]
            names = ("m", None, None, 1, "client", "/10.0.0.1", None, "^ord.*$")
            members: list[Any] = [(*names, read, {}, read, {}, {})]
            return SimpleNamespace(groups=[(0, "", "a", "Stable", 1, 1, "binwright", members, 0)])

    seen = await offsets(Coordinator({"a": 1})).describe("a")

    assert (seen.type, seen.protocol) == ("consumer", "binwright")
    assert seen.members["m"].topics == {"orders"}
    assert seen.members["m"].owned == {TopicPartition("orders", 0), TopicPartition("orders", 1)}


class Members(FakeCluster):
    """Coordinators of classic groups with one member each; others are of type "consumer"."""

    of_brokers: frozenset[str] = frozenset({"new"})

    async def send_request(self, broker: int, request: Any) -> Any:
        if isinstance(request, ListGroups):
            own = [(group, "consumer") for group, at in self.broker_of.items() if at == broker]
            code = self.codes.get(f"list {broker}", 0)
            return SimpleNamespace(error_code=code, groups=[*own, ("connect-a", "connect")])
        self.asked.append((broker, len(request._groups)))
        if broker in self.gone:
            raise BrokerUnavailable(f"ask broker {broker}: closed")
        if isinstance(request, DescribeMembers):
            member: Any = ("m", None, "client", "/10.0.0.1", b"", b"")
            return SimpleNamespace(
                groups=[
                    (self.codes.get(g, 0), g, "Dead", "", "", [], 0)
                    if g in {*self.of_brokers, "gone"}
                    else (self.codes.get(g, 0), g, "Stable", "consumer", "range", [member], 0)
                    for g in request._groups
                ]
            )
        none_69 = 69  # GROUP_ID_NOT_FOUND
        rows: list[Any] = [
            (none_69 if g == "gone" else 0, "", g, "Empty", 1, 1, "uniform", [], 0)
            for g in request._groups
        ]
        return SimpleNamespace(groups=rows)


async def test_many_groups_are_described_by_few_requests() -> None:
    cluster = Members(groups(250))
    found = await offsets(cluster).described(cluster.broker_of)

    assert {seen.state for seen in found.values() if not isinstance(seen, str)} == {"Stable"}
    assert cluster.asked == [(1, GROUPS_PER_REQUEST), (1, GROUPS_PER_REQUEST), (1, 50)]
    first = found["group-0"]
    assert not isinstance(first, str)
    assert (first.protocol, first.members["m"].host) == ("range", "10.0.0.1")


async def test_groups_that_brokers_assign_and_groups_that_are_gone_are_described_together() -> None:
    found = await offsets(Members({"new": 1, "gone": 1, "old": 1})).described(
        ["new", "gone", "old"]
    )

    seen = {
        group: (one.state, one.type) for group, one in found.items() if not isinstance(one, str)
    }
    assert seen == {
        "new": ("Empty", "consumer"),
        "gone": ("Dead", "classic"),
        "old": ("Stable", "classic"),
    }


async def test_a_group_that_cannot_be_described_has_a_fault_alone() -> None:
    cluster = Members({"a": 1, "b": 1, "c": 2}, codes={"a": NO_RIGHT}, gone={2})
    made = offsets(cluster)
    found = await made.described(["a", "b", "c", "d"])

    assert found["a"] == "describe group a: GroupAuthorizationFailedError"
    assert not isinstance(found["b"], str)
    assert found["c"] == "ask broker 2: closed"
    assert found["d"] == "its coordinator is not known: GroupCoordinatorNotAvailableError"
    with pytest.raises(BrokerUnavailable, match="describe group a"):
        await made.describe("a")
    cluster.broker_of["c"] = 1  # its coordinator has moved
    assert not isinstance((await made.described(["c"]))["c"], str)


async def test_a_coordinator_that_a_description_finds_moved_is_looked_for_again() -> None:
    cluster = Members({"a": 1}, codes={"a": NOT_COORDINATOR})
    made = offsets(cluster)
    assert (await made.described(["a"]))["a"] == "describe group a: NotCoordinatorForGroupError"
    cluster.broker_of["a"], cluster.codes = 2, {}
    assert not isinstance((await made.described(["a"]))["a"], str)
    assert [broker for broker, _ in cluster.asked] == [1, 2]


async def test_all_brokers_list_their_consumer_groups() -> None:
    cluster = Members({"a": 1, "b": 2})
    assert await offsets(cluster).names() == {"a", "b"}
    cluster.codes["list 2"] = NO_RIGHT
    with pytest.raises(BrokerUnavailable, match="list the groups of broker 2"):
        await offsets(cluster).names()
