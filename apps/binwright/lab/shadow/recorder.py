"""Records all consumer groups of a cluster: commits, members, and the logs of what they read.

A recording is a file of measurements that `lab` reads as any other, with a `GroupSample` of each
group before the measurements of each pass. It grows by a line for each group and topic; in memory
is one pass. What cannot be looked up is logged when that begins and when it ends, and is missing in
the recording meanwhile.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Protocol

from binwright.lab.shadow.samples import GroupSample, MemberSample
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metrics import Measurement
from binwright.protocol.patterns import Pattern
from binwright.protocol.selection import Selection
from binwright.protocol.texts import first_of
from binwright.protocol.wire import AnyMessage
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.logs import log
from binwright.scaler.decide.members import in_order
from binwright.scaler.ports import GroupLookup

GROUP_RECORDED = LogEvent.info("group.recorded", "A consumer group is recorded from now on.")
GROUP_VANISHED = LogEvent.warning(
    "group.vanished", "A recorded consumer group does not exist any more; what it did is kept."
)
SAMPLE_FAILED = LogEvent.warning(
    "sample.failed",
    "What is in `about` could not be recorded; it is missing in the recording until it can.",
)
SAMPLE_RECOVERED = LogEvent.info("sample.recovered", "What is in `about` is recorded again.")

LIST_S = 60.0
"""Between two lists of the cluster's groups."""
GROUPS, LOGS = "the list of groups", "the logs of topics"
SHOWN = 5
"""Names of groups in one line of the log."""


class GroupNames(GroupLookup, Protocol):
    """Consumer groups in Kafka, as `groups.ConsumerGroups` looks them up."""

    async def names(self) -> frozenset[str]:
        """Return the consumer groups that there are; raise `BrokerUnavailable`."""


class TopicMeasurer(Protocol):
    """Measures topics, as the monitor's `Measurer` does."""

    def set_selection(self, selection: Selection) -> None:
        """Measure this selection from the next pass on."""

    async def measure(self) -> list[Measurement]:
        """Return the measurements of one pass; raise an `ExternalError`."""


class MessageWriter(Protocol):
    """Keeps a recording, as `recording.FileRecordingWriter` does."""

    def write(self, messages: Iterable[AnyMessage]) -> None:
        """Append messages; raise `StreamError`."""


@dataclass
class GroupRecorder:
    """Records groups until it is cancelled.

    Attributes:
        groups: Looks them up.
        measurer: Measures the topics that they read.
        writer: Keeps the recording.
        interval_s: From one pass to the next, seconds.
        patterns: Of the names of groups; none: all are recorded.
        list_s: Between two lists of the cluster's groups, seconds.
        passes: How many were written.
        recorded: The groups of the last list.
    """

    groups: GroupNames
    measurer: TopicMeasurer
    writer: MessageWriter
    interval_s: float
    patterns: Sequence[Pattern] = ()
    list_s: float = LIST_S
    passes: int = 0
    recorded: frozenset[str] = frozenset()
    _listed_s: float = -inf
    _topics: frozenset[str] = frozenset()
    _faults: dict[str, str] = field(default_factory=dict)  # what cannot be recorded -> why

    async def run(self) -> None:
        """Make a pass every `interval_s`, on a grid of them; raise `StreamError`."""
        begin_s, count = loop_s(), 0
        while True:
            await self.record()
            count = max(count + 1, ceil((loop_s() - begin_s) / self.interval_s))
            await asyncio.sleep(begin_s + count * self.interval_s - loop_s())

    async def record(self) -> None:
        """Make one pass: groups first, so that no commit lies beyond the end of its log."""
        if loop_s() - self._listed_s >= self.list_s:
            await self._list()
        samples = await self._sample()
        topics = frozenset(
            {p.topic for sample in samples for p in sample.committed}
            | {p.topic for sample in samples for member in sample.members for p in member.reads}
        )
        if topics - self._topics:  # one that has no reader now may have one again
            self._topics |= topics
            self.measurer.set_selection(Selection(self._topics))
        measured: list[Measurement] = []
        try:
            measured = await self.measurer.measure()
        except BrokerUnavailable as exc:
            self._note({LOGS: str(exc)})
        else:
            self._note({LOGS: ""})
        self.writer.write([*samples, *measured])
        self.passes += 1

    async def _list(self) -> None:
        try:
            names = await self.groups.names()
        except BrokerUnavailable as exc:
            self._note({GROUPS: str(exc)})
            return
        self._note({GROUPS: ""})
        self._listed_s = loop_s()
        patterns = self.patterns
        found = {n for n in names if not patterns or any(p.matches(n) for p in patterns)}
        for group in sorted(found - self.recorded):
            log(GROUP_RECORDED, group=group)
        for group in sorted(self.recorded - found):
            log(GROUP_VANISHED, group=group)
            self._faults.pop(group, None)
        self.recorded = frozenset(found)

    async def _sample(self) -> list[GroupSample]:
        """Return a sample of each group of which both offsets and members are known."""
        at_ms = wall_ms()
        committed = await self.groups.committed(self.recorded)
        described = await self.groups.described(committed.offsets)
        samples: list[GroupSample] = []
        faults: dict[str, str] = {}
        for group in sorted(self.recorded):
            seen = described.get(group, committed.faults.get(group, ""))
            faults[group] = seen if isinstance(seen, str) else ""
            if isinstance(seen, str):
                continue
            members = [seen.members[name] for name in in_order(seen.members)]
            samples.append(
                GroupSample(
                    group=group,
                    at_ms=at_ms,
                    interval_s=self.interval_s,
                    state=seen.state,
                    type=seen.type,
                    assignor=seen.protocol,
                    members=tuple(
                        MemberSample(one.client, one.host, one.instance, tuple(sorted(one.owned)))
                        for one in members
                    ),
                    committed=committed.offsets[group],
                )
            )
        self._note(faults)
        return samples

    def _note(self, faults: Mapping[str, str]) -> None:
        """Log faults that begin, those of one reason together, and those that are over."""
        begun: defaultdict[str, list[str]] = defaultdict(list)
        over: list[str] = []
        for about, fault in faults.items():
            before = self._faults.pop(about, "")
            if fault:
                self._faults[about] = fault
            if fault and not before:
                begun[fault].append(about)
            elif before and not fault:
                over.append(about)
        for reason, names in begun.items():
            log(SAMPLE_FAILED, about=first_of(names, SHOWN), reason=reason)
        if over:
            log(SAMPLE_RECOVERED, about=first_of(over, SHOWN))
