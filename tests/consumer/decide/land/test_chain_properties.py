"""For any order and division of announcements each offset lands exactly once, in order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from binwright.consumer.decide.land.chain import (
    Announcement,
    Chain,
    add_announcements,
    landed,
    next_batch,
    without_files,
)
from binwright.tables.ports import PartitionOffsets

from .scene import ID, TOPIC, at, staged

PARTITIONS, END = 2, 8


@st.composite
def ranges(draw: st.DrawFn) -> dict[int, tuple[int, int]]:
    """Return a range in each of some partitions."""
    found = {}
    for partition in draw(st.sets(st.integers(0, PARTITIONS - 1), min_size=1)):
        first = draw(st.integers(0, END - 1))
        found[partition] = (first, draw(st.integers(first + 1, END)))
    return found


def covering(cuts: list[set[int]]) -> list[dict[int, tuple[int, int]]]:
    """Return ranges that cover every partition, split at these offsets."""
    return [
        {partition: (first, end)}
        for partition, at in enumerate(cuts)
        for first, end in zip([0, *sorted(at)], [*sorted(at), END], strict=True)
    ]


def numbers(offsets: PartitionOffsets) -> dict[int, int]:
    return {p.partition: offset for p, offset in offsets.items()}


BREAKS = st.lists(st.sets(st.integers(1, END - 1)), min_size=PARTITIONS, max_size=PARTITIONS)


@settings(max_examples=60, deadline=None)
@given(BREAKS, st.lists(ranges(), max_size=4), st.data())
def test_every_offset_lands_exactly_once(
    breaks: list[set[int]],
    extra: list[dict[int, tuple[int, int]]],
    data: st.DataObject,
) -> None:
    """Every offset is announced at least once, in any order, between any commits."""
    files = [*covering(breaks), *extra]
    order = data.draw(st.permutations(range(len(files))))
    most = data.draw(st.integers(1, 5))
    chain = Chain(topic_ids={TOPIC: ID}, committed=at(dict.fromkeys(range(PARTITIONS), 0)))
    rows: dict[int, list[int]] = {p: [] for p in range(PARTITIONS)}
    deleted: set[str] = set()
    for offset, number in enumerate(order):
        announced = Announcement(offset, staged(f"f{number}", files[number]), offset)
        chain, (finished, _) = add_announcements(chain, [announced])
        deleted |= {a.staged.file for a in finished}
        if data.draw(st.booleans()):
            chain = _commit(chain, most, rows, deleted)
    while next_batch(chain, 10_000, most) is not None:
        chain = _commit(chain, most, rows, deleted)
    assert rows == {p: list(range(END)) for p in range(PARTITIONS)}
    assert chain.pending == ()
    assert deleted == {f"f{n}" for n in range(len(files))}


def _commit(chain: Chain, most: int, rows: dict[int, list[int]], deleted: set[str]) -> Chain:
    found = next_batch(chain, 10_000, most)
    if found is None:
        return chain
    batch, then = found
    assert len(batch.slices) <= most
    before = numbers(chain.committed)
    taken = sorted((p, *r) for s in batch.slices for p, r in s.ranges.items())
    for partition, first, end in taken:
        assert first == before[partition]
        before[partition] = end
        rows[partition] += range(first, end)
    assert batch.ends == at({p.partition: before[p.partition] for p in batch.ends})
    assert deleted.isdisjoint(batch.files)
    chain, finished = landed(chain, then)
    deleted |= {a.staged.file for a in finished}
    return chain


@settings(max_examples=60, deadline=None)
@given(st.lists(ranges(), min_size=1, max_size=6), st.data())
def test_lost_files_are_read_again_from_the_committed_offsets(
    files: list[dict[int, tuple[int, int]]], data: st.DataObject
) -> None:
    """After any loss of files, one file from `committed` on lands all the rest."""
    chain = Chain(topic_ids={TOPIC: ID}, committed=at(dict.fromkeys(range(PARTITIONS), 0)))
    rows: dict[int, list[int]] = {p: [] for p in range(PARTITIONS)}
    for offset, some in enumerate(files):
        chain, _ = add_announcements(
            chain, [Announcement(offset, staged(f"f{offset}", some), offset)]
        )
    lost = data.draw(st.sets(st.sampled_from([f"f{n}" for n in range(len(files))])))
    chain, again = without_files(chain, lost)
    assert all(chain.committed[p] == offset for p, offset in again.items())
    whole = {p: (offset, END) for p, offset in numbers(chain.committed).items()}
    chain, _ = add_announcements(chain, [Announcement(len(files), staged("again", whole), 0)])
    while next_batch(chain, 10_000) is not None:
        chain = _commit(chain, 1_000, rows, set())
    assert rows == {p: list(range(END)) for p in range(PARTITIONS)}
