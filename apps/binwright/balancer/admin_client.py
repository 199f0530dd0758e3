"""Implements the port `Brokers`: reads a cluster's replicas and moves them."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from aiokafka.errors import NoError, for_code
from aiokafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DescribeConfigsRequest,
    ListPartitionReassignmentsRequest,
)
from aiokafka.protocol.types import Array, Boolean, Int8, Int16, Int32, String

from binwright.balancer.ports import (
    ClusterState,
    ConfigChanges,
    ConfigKind,
    ConfigResource,
    Configs,
    Disk,
    PartitionState,
    Reassignment,
    Replicas,
)
from binwright.kafka.client import NO_LEADER, ClusterClient
from binwright.kafka.frames import VersionedRequest, version
from binwright.kafka.log_dirs import (
    DescribeLogDirs,
    dead_directories,
    disk_bytes,
    is_refused,
    sizes,
)
from binwright.protocol.errors import BrokerUnavailable, ReassignmentRefused
from binwright.protocol.model import TopicPartition

SET, DELETE = 0, 1
"""Operations of an incremental change."""
PREFERRED = 0
"""The election in which a partition's first replica becomes its leader."""

_TEXT = String("utf-8")


_RESULT = (
    ("error_code", Int16),
    ("error_message", _TEXT),
    ("resource_type", Int8),
    ("resource_name", _TEXT),
)
_CHANGE = (
    ("resource_type", Int8),
    ("resource_name", _TEXT),
    ("configs", Array(("name", _TEXT), ("operation", Int8), ("value", _TEXT))),
)


T = TypeVar("T")
REQUEST_S = 30.0
"""How long a broker may work on a request before it returns."""
BATCH = 1_000
"""Topics or partitions in one request; Kafka appends at most 10,000 metadata records at once."""
DYNAMIC_DEFAULT, STATIC = 3, 4
"""Sources of a broker's value: the default of all brokers, and its own file."""
PREFERRED_LEADER_NOT_AVAILABLE, ELECTION_NOT_NEEDED, NO_REASSIGNMENT = 80, 84, 85
"""Error codes that aiokafka has no names for."""
_TYPES: Mapping[ConfigKind, int] = {"topic": 2, "broker": 4}
_KINDS: Mapping[int, ConfigKind] = {number: kind for kind, number in _TYPES.items()}


class IncrementalAlterConfigs(VersionedRequest):
    """Sets and removes single values of configurations: (type, name) -> name -> value or None."""

    VERSIONS = (
        version(
            44,
            0,
            [("resources", Array(*_CHANGE)), ("validate_only", Boolean)],
            [("throttle_time_ms", Int32), ("resources", Array(*_RESULT))],
        ),
    )

    def __init__(self, changes: Mapping[tuple[int, str], Mapping[str, str | None]]) -> None:
        self._changes = changes

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        resources = [
            (
                *resource,
                [(name, DELETE if new is None else SET, new) for name, new in values.items()],
            )
            for resource, values in self._changes.items()
        ]
        return request_struct_class(resources, False)  # noqa: FBT003 - the struct has no names


_ELECTED = ("partition", Int32), ("error_code", Int16), ("error_message", _TEXT)


class ElectLeaders(VersionedRequest):
    """Makes the first replicas of partitions their leaders: topic -> partitions."""

    VERSIONS = (
        version(
            43,
            1,
            [
                ("election_type", Int8),
                ("topics", Array(("topic", _TEXT), ("partitions", Array(Int32)))),
                ("timeout_ms", Int32),
            ],
            [
                ("throttle_time_ms", Int32),
                ("error_code", Int16),
                ("topics", Array(("topic", _TEXT), ("partitions", Array(*_ELECTED)))),
            ],
        ),
    )

    def __init__(self, partitions: Mapping[str, Sequence[int]], timeout_ms: int) -> None:
        self._partitions, self._timeout_ms = partitions, timeout_ms

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        topics = [(topic, list(numbers)) for topic, numbers in self._partitions.items()]
        return request_struct_class(PREFERRED, topics, self._timeout_ms)


class AdminClient(ClusterClient):
    """See `Brokers`; connects when first used, an async context manager."""

    async def state(self) -> ClusterState:
        """See `Brokers`."""
        # In this order: a move that ends in between is taken for one under way, and not for a
        # partition with more replicas than it is to have.
        under_way = await self._reassignments()
        metadata = await self._metadata(None)
        return ClusterState(
            racks={broker: rack for broker, _, _, rack in sorted(metadata.brokers)},
            partitions=dict(_partitions(metadata.topics)),
            reassignments=under_way,
        )

    async def _reassignments(self) -> dict[TopicPartition, Reassignment]:
        request = ListPartitionReassignmentsRequest(_milliseconds(REQUEST_S), None, {})
        answer = await self.send_to_controller(request)
        _check("list reassignments", answer.error_code, answer.error_message)
        return {
            TopicPartition(topic, number): Reassignment(
                tuple(replicas), tuple(adding), tuple(removing)
            )
            for topic, rows, _ in answer.topics or ()
            for number, replicas, adding, removing, _ in rows
        }

    async def disks(self) -> Mapping[int, Disk]:
        """See `Brokers`."""
        answer = await self._metadata(None)
        # Each broker is asked for what it holds: for all, it is megabytes for each of many brokers.
        held: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for partition, each in _partitions(answer.topics):
            for broker in each.replicas:
                held[broker][partition.topic].append(partition.partition)
        brokers = [broker for broker, *_ in sorted(answer.brokers)]
        disks = await asyncio.gather(*(self._disk(broker, held[broker]) for broker in brokers))
        return {broker: disk for broker, disk in zip(brokers, disks, strict=True) if disk}

    async def _disk(self, broker: int, wanted: Mapping[str, Collection[int]]) -> Disk | None:
        try:
            answer = await self.send_request(broker, DescribeLogDirs(wanted))
        except BrokerUnavailable:
            return None  # it went down since the metadata were read
        if is_refused(answer):
            raise ReassignmentRefused(
                f"Kafka does not describe the disks of broker {broker}: "
                "grant DESCRIBE on the cluster"
            )
        total, usable = disk_bytes(answer)
        held = {TopicPartition(*key): size for key, size in sizes(answer).items()}
        return Disk(total, usable, held, dead_directories(answer))

    async def configs(
        self, resources: Collection[ConfigResource], names: Collection[str]
    ) -> Configs:
        """See `Brokers`."""
        alive = {str(broker) for broker, *_ in (await self._metadata(())).brokers}
        own = [each for each in sorted(resources) if each.kind == "broker" and each.name in alive]
        common = [each for each in sorted(resources) if each.kind == "topic" or not each.name]
        configs: dict[ConfigResource, Mapping[str, str]] = {}
        for batch in _batches(common):
            configs |= await self._described(None, batch, names)
        for each in own:
            configs |= await self._described(int(each.name), [each], names)
        return configs

    async def _send_to(self, broker: int | None, request: Any) -> Any:
        """Send a request to a broker; None: to the controller."""
        if broker is None:
            return await self.send_to_controller(request)
        return await self.send_request(broker, request)

    async def _described(
        self, broker: int | None, resources: Sequence[ConfigResource], names: Collection[str]
    ) -> dict[ConfigResource, Mapping[str, str]]:
        wanted = [(_TYPES[each.kind], each.name, sorted(names)) for each in resources]
        request = DescribeConfigsRequest(wanted, include_synonyms=True)
        answer = await self._send_to(broker, request)
        configs: dict[ConfigResource, Mapping[str, str]] = {}
        for code, _, kind, name, entries in answer.resources:
            if for_code(code) is NoError:
                configs |= _values(ConfigResource(_KINDS[kind], name), entries)
        return configs

    async def set_configs(self, changes: ConfigChanges) -> None:
        """See `Brokers`."""
        common: dict[tuple[int, str], Mapping[str, str | None]] = {}
        for each, values in sorted(changes.items(), key=lambda item: item[0]):
            key = (_TYPES[each.kind], each.name)
            if each.kind == "broker" and each.name:  # a broker takes only its own
                await self._set(int(each.name), {key: values})
            else:
                common[key] = values
        for batch in _batches(common.items()):
            await self._set(None, dict(batch))

    async def _set(
        self, broker: int | None, changes: Mapping[tuple[int, str], Mapping[str, str | None]]
    ) -> None:
        request = IncrementalAlterConfigs(changes)
        answer = await self._send_to(broker, request)
        for code, message, kind, name in answer.resources:
            _check(f"change the configuration of {_KINDS[kind]} {name or 'default'}", code, message)

    async def reassign(self, targets: Mapping[TopicPartition, Replicas | None]) -> None:
        """See `Brokers`."""
        for batch in _batches(sorted(targets)):
            topics: Any = [
                (topic, [(n, _listed(targets[TopicPartition(topic, n)]), {}) for n in numbers], {})
                for topic, numbers in _by_topic(batch).items()
            ]
            request = AlterPartitionReassignmentsRequest(_milliseconds(REQUEST_S), topics, {})
            answer = await self.send_to_controller(request)
            _check("reassign partitions", answer.error_code, answer.error_message)
            for topic, rows, _ in answer.responses:
                for number, code, message, _ in rows:
                    if code != NO_REASSIGNMENT:
                        _check(f"reassign {TopicPartition(topic, number)}", code, message)

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> None:
        """See `Brokers`."""
        for batch in _batches(sorted(partitions)):
            request = ElectLeaders(_by_topic(batch), _milliseconds(REQUEST_S))
            answer = await self.send_to_controller(request)
            _check("elect leaders", answer.error_code, None)
            for topic, rows in answer.topics:
                for number, code, message in rows:
                    if code not in (PREFERRED_LEADER_NOT_AVAILABLE, ELECTION_NOT_NEEDED):
                        _check(f"elect {TopicPartition(topic, number)}", code, message)


def _values(resource: ConfigResource, entries: Iterable[Any]) -> Configs:
    """Return the values of a resource by who set them; see `Brokers.configs`."""
    if resource.kind == "topic" or not resource.name:
        return {resource: {key: value for key, value, *_ in entries if value}}
    own: dict[str, str] = {}
    static: dict[str, str] = {}
    for key, value, _, source, _, synonyms, *_ in entries:
        if value and source not in (DYNAMIC_DEFAULT, STATIC):
            own[key] = value
        for name, each, of in synonyms or ():  # it is among them itself
            if name == key and of == STATIC and each:
                static[key] = each
    configs = {resource: own}
    return {**configs, replace(resource, is_static=True): static} if static else configs


def _partitions(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, PartitionState]]:
    for code, topic, _, rows in topics:
        if for_code(code) is NoError:
            for row in rows:
                number, leader, replicas, in_sync = _row(row)
                yield (
                    TopicPartition(topic, number),
                    PartitionState(
                        None if leader == NO_LEADER else leader, replicas, frozenset(in_sync)
                    ),
                )


def _row(row: Sequence[Any]) -> tuple[int, int, Replicas, Replicas]:
    """Return number, leader, replicas and in-sync replicas; see `kafka.frames` for both forms."""
    _, number, leader, head, *rest = row
    if isinstance(head, int):
        return number, leader, tuple(rest[:head]), tuple(rest[head + 1 :])
    return number, leader, tuple(head), tuple(rest[0])


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        numbers[partition.topic].append(partition.partition)
    return dict(numbers)


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _listed(replicas: Replicas | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _check(doing: str, code: int, message: str | None) -> None:
    error = for_code(code)
    if error is NoError:
        return
    reason = f"Kafka does not {doing}: {error.__name__}: {message or error.description}"
    raise BrokerUnavailable(reason) if error.retriable else ReassignmentRefused(reason)
