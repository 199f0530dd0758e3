"""All groups of a cluster are recorded, through what goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog

from binwright.lab.shadow.recorder import LIST_S, GroupRecorder
from binwright.lab.shadow.samples import GroupSample, decode_recorded
from binwright.monitor.passes import GONE_PASSES, Measurer
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.scaler.decide.lags import Committed
from binwright.scaler.decide.members import GroupDescription, GroupMember
from binwright.scaler.ports import CommittedOffsets
from binwright.streams.recording import FileRecordingWriter, RecordingReader
from binwright.testing.data_topics import FakeTopics
from binwright.testing.log_sampler import FakeLogSampler

pytestmark = pytest.mark.looptime
EVERY_S = 10.0
ORDERS = TopicPartition("orders", 0)


@dataclass
class FakeGroups:
    """Consumer groups made of dictionaries, which tests change."""

    offsets: dict[str, Committed] = field(default_factory=dict)
    members: dict[str, GroupDescription] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    unlisted: str = ""

    async def names(self) -> frozenset[str]:
        if self.unlisted:
            raise BrokerUnavailable(self.unlisted)
        return frozenset(self.offsets)

    async def committed(self, groups: Collection[str]) -> CommittedOffsets:
        known = {g: self.offsets.get(g, {}) for g in groups if g not in self.faults}
        return CommittedOffsets(known, {g: self.faults[g] for g in groups if g in self.faults})

    async def described(self, groups: Collection[str]) -> dict[str, GroupDescription | str]:
        return {g: self.members.get(g, GroupDescription("Empty", "")) for g in groups}


class Scene:
    """A recorder of two groups that read one topic each."""

    def __init__(self, file: Path, *patterns: str) -> None:
        self.file = file
        self.topics = FakeTopics({"orders": 1, "clicks": 2})
        self.topics.grow(ORDERS, 1_000.0, record_bytes=100)
        self.logs = FakeLogSampler(self.topics)
        reads = GroupMember(
            topics=frozenset({"clicks"}), owned=frozenset({TopicPartition("clicks", 1)}),
            client="billing-0", host="10.0.0.1",
        )  # fmt: skip
        self.groups = FakeGroups(
            {"billing": {}, "ledger": {ORDERS: 7}},
            {"billing": GroupDescription("Stable", "range", {"m-1": reads})},
        )
        self.recorder = GroupRecorder(
            self.groups,
            Measurer(self.logs, Selection(), interval_s=EVERY_S, window_s=30.0),
            FileRecordingWriter(file, BytesPerSecond(1.0)),
            EVERY_S,
            tuple(map(compile_pattern, patterns)),
        )

    def recorded(self) -> list[Measurement | GroupSample]:
        with self.file.open("rb") as file:
            return list(RecordingReader(file).messages(decode_recorded))

    def samples(self, group: str) -> list[GroupSample]:
        messages = self.recorded()
        return [one for one in messages if isinstance(one, GroupSample) and one.group == group]

    def measured(self, topic: str) -> list[Measurement]:
        messages = self.recorded()
        return [one for one in messages if isinstance(one, Measurement) and one.topic == topic]


@asynccontextmanager
async def recording(scene: Scene) -> AsyncIterator[None]:
    task = asyncio.create_task(scene.recorder.run())
    try:
        yield
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError)


async def test_each_pass_has_every_group_and_then_the_topics_that_they_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "groups.jsonl")
    async with recording(scene):
        await asyncio.sleep(2.5 * EVERY_S)

    assert len(scene.samples("billing")) == len(scene.samples("ledger")) == 3
    (member,) = scene.samples("billing")[0].members
    assert member == ("billing-0", "10.0.0.1", None, (TopicPartition("clicks", 1),))
    assert scene.samples("ledger")[0].committed == {ORDERS: 7}
    assert [one.count for one in scene.measured("clicks")] == [2, 2, 2]
    assert scene.measured("orders")[-1].partitions[0].records_per_s == pytest.approx(10.0)
    kinds = [type(one) for one in scene.recorded()]
    assert kinds == [GroupSample, GroupSample, Measurement, Measurement] * 3


async def test_lab_reads_the_measurements_as_of_any_recording(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "groups.jsonl")
    async with recording(scene):
        await asyncio.sleep(1.5 * EVERY_S)
    with scene.file.open("rb") as file:
        reader = RecordingReader(file)
        assert {one.topic for one in reader} == {"clicks", "orders"}
    assert reader.skipped == 4


async def test_a_recording_is_continued_where_a_kill_left_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "groups.jsonl")
    async with recording(scene):
        await asyncio.sleep(0.5 * EVERY_S)
    with scene.file.open("ab") as file:
        file.write(b'{"kind": "group-sample/1", "gro')
    again = Scene(scene.file)
    async with recording(again):
        await asyncio.sleep(0.5 * EVERY_S)
    assert len(again.samples("ledger")) == 2


async def test_groups_come_and_go(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "groups.jsonl")
    async with recording(scene):
        await asyncio.sleep(1.5 * EVERY_S)
        with structlog.testing.capture_logs() as logged:
            del scene.groups.offsets["ledger"]
            scene.groups.offsets["new"] = {ORDERS: 1}
            await asyncio.sleep(LIST_S + EVERY_S)
    assert scene.samples("new")
    assert [(one["event"], one["group"]) for one in logged] == [
        ("group.recorded", "new"),
        ("group.vanished", "ledger"),
    ]


async def test_what_a_broker_does_not_reply_is_missing_until_it_does(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "groups.jsonl")
    with structlog.testing.capture_logs() as logged:
        async with recording(scene):
            await asyncio.sleep(0.5 * EVERY_S)
            scene.groups.faults["ledger"] = "broker 1 has not replied"
            scene.logs.fail_next(2)
            await asyncio.sleep(2 * EVERY_S)
            scene.groups.faults.clear()
            await asyncio.sleep(EVERY_S)
    assert [len(scene.samples(group)) for group in ("billing", "ledger")] == [4, 2]
    assert len(scene.measured("orders")) == 2
    about = [(one["event"], one["about"]) for one in logged if "about" in one]
    assert about == [
        ("sample.failed", "ledger"),
        ("sample.failed", "the logs of topics"),
        ("sample.recovered", "ledger"),
        ("sample.recovered", "the logs of topics"),
    ]


async def test_groups_that_cannot_be_listed_are_recorded_as_far_as_they_are_known(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path / "groups.jsonl")
    scene.groups.unlisted = "no right"
    with structlog.testing.capture_logs() as logged:
        async with recording(scene):
            await asyncio.sleep(1.5 * EVERY_S)
            assert not scene.recorded()
            scene.groups.unlisted = ""
            await asyncio.sleep(EVERY_S)
            scene.groups.unlisted = "no right"
            await asyncio.sleep(2 * LIST_S)
    assert len(scene.samples("ledger")) > 2 * LIST_S / EVERY_S
    about = [one["event"] for one in logged if one.get("about") == "the list of groups"]
    assert about == ["sample.failed", "sample.recovered", "sample.failed"]


async def test_a_topic_that_vanishes_ends_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "groups.jsonl")
    async with recording(scene):
        await asyncio.sleep(1.5 * EVERY_S)
        scene.topics.delete("orders")
        await asyncio.sleep((GONE_PASSES + 1) * EVERY_S)
    assert scene.measured("orders")[-1].count == 0
    assert scene.measured("clicks")[-1].count == 2


async def test_only_groups_of_a_pattern_are_recorded(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "groups.jsonl", "bill.*")
    async with recording(scene):
        await asyncio.sleep(0.5 * EVERY_S)
    assert scene.recorder.recorded == {"billing"}
    assert not scene.samples("ledger")


async def test_groups_that_fail_for_one_reason_are_one_line_of_the_log(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "groups.jsonl")
    scene.groups.offsets |= {f"group-{number}": {ORDERS: 7} for number in range(7)}
    with structlog.testing.capture_logs() as logged:
        async with recording(scene):
            await asyncio.sleep(0.5 * EVERY_S)
            scene.groups.faults = dict.fromkeys(scene.groups.offsets, "broker 1 is away")
            await asyncio.sleep(EVERY_S)
            scene.groups.faults = {}
            await asyncio.sleep(EVERY_S)
    about = [(one["event"], one["about"]) for one in logged if "about" in one]
    assert about == [
        ("sample.failed", "billing, group-0, group-1, group-2, group-3 and 4 more"),
        ("sample.recovered", "billing, group-0, group-1, group-2, group-3 and 4 more"),
    ]
