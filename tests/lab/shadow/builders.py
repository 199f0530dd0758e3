"""Recordings of groups whose members read at a known speed."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from binwright.lab.shadow.samples import GroupSample, MemberSample
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.streams.recording import FileRecordingWriter

EVERY_S = 10
Steps = Callable[[int], float]
"""Seconds since the beginning -> a number."""


def recorded_group(
    group: str,
    rate: Steps,
    members: Steps,
    *,
    capacity: float = 1_000.0,
    partitions: int = 4,
    seconds: int = 3_600,
    commit_s: float = 0.0,
    clients: Sequence[str] = (),
    begin_s: int = 0,
) -> Iterator[GroupSample | Measurement]:
    """Yield what a recorder sees of a group that reads a topic of its own name.

    Args:
        group: Its name.
        rate: Records/s of all partitions together.
        members: How many there are; partitions are dealt out to them in turn.
        capacity: Records/s that a member reads.
        partitions: Of the topic.
        seconds: How long it is recorded.
        commit_s: Age of what was read and is not committed yet.
        clients: Names of members; none: `GROUP-NUMBER`.
        begin_s: When it begins.
    """
    ends, done = [0.0] * partitions, [0.0] * partitions
    for at_s in range(0, seconds, EVERY_S):
        number = int(members(at_s))
        owners = [list(range(m, partitions, number)) for m in range(number)]
        if at_s:
            each = rate(at_s - EVERY_S) * EVERY_S / partitions
            ends = [end + each for end in ends]
            for owned in owners:
                room = capacity * EVERY_S
                for p in sorted(owned, key=lambda p: ends[p] - done[p]):
                    left = len(owned) - sorted(owned, key=lambda p: ends[p] - done[p]).index(p)
                    read = min(ends[p] - done[p], room / left)
                    done[p], room = done[p] + read, room - read
        late = rate(at_s) * commit_s / partitions
        names = [clients[m] if m < len(clients) else f"{group}-{m}" for m in range(number)]
        at_ms = 1000 * (begin_s + at_s)
        yield GroupSample(
            group=group,
            at_ms=at_ms,
            interval_s=EVERY_S,
            state="Stable" if number else "Empty",
            type="classic",
            assignor="range" if number else "",
            members=tuple(
                MemberSample(name, "10.0.0.1", None, tuple(TopicPartition(group, p) for p in owned))
                for name, owned in zip(names, owners, strict=True)
            ),
            committed={
                TopicPartition(group, p): max(0, round(done[p] - late)) for p in range(partitions)
            },
        )
        yield Measurement(
            topic=group,
            at_ms=at_ms,
            monitor="m",
            number=begin_s + at_s,
            interval_s=EVERY_S,
            count=partitions,
            partitions=tuple(
                PartitionRate(
                    p,
                    BytesPerSecond(100 * rate(at_s) / partitions),
                    30,
                    round(ends[p]),
                    0,
                    100.0,
                    records_per_s=rate(at_s) / partitions,
                )
                for p in range(partitions)
            ),
        )


def write(path: Path, *groups: Iterator[GroupSample | Measurement]) -> None:
    """Write a recording of groups, in the order of time."""
    messages = sorted((message for group in groups for message in group), key=lambda one: one.at_ms)
    FileRecordingWriter(path, BytesPerSecond(1.0)).write(messages)


def steady(number: float) -> Steps:
    """Return a number that stays."""
    return lambda _: number


def busy(quiet: float, most: float, begin_s: int = 600, end_s: int = 1_200) -> Steps:
    """Return a number that is higher for a time."""
    return lambda at_s: most if begin_s <= at_s < end_s else quiet
