"""What a writer reads from the stamps of a table's commits: what has landed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from binwright.consumer.decide.land.chain import same_topic
from binwright.protocol.model import TopicPartition
from binwright.tables.operations import Operation
from binwright.tables.ports import Commit, CutFiles, PartitionOffsets, Table
from binwright.tables.stamp import Stamp, later_kind, read_stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A table's state, by the stamps of its history."""

    topic_ids: Mapping[str, str | None]  # of the topics that `committed` is of
    committed: PartitionOffsets
    cuts: PartitionOffsets
    cut_files: CutFiles
    landing_id: str | None
    needed_from: int
    whole: bool  # the history reaches back far enough: older commits would add nothing
    written: frozenset[str]
    """Topics, or earlier ones of their names, of which the group has landed rows, or decided where
    partitions begin."""
    versions: Mapping[TopicPartition, int]  # of the table: where `committed` is from
    cut_versions: Mapping[TopicPartition, int]  # where `cuts` are from
    unfounded: int | None = None
    """The version of a stamp before which no claim has a full one, though no version is missing."""
    later: str = ""  # the kind of a stamp that only a later version reads; what landed is not known
    paused: str = ""  # who paused the table, when and why
    operation: Operation | None = None  # the last that a person ordered, and how far it is (†)


def resolve(
    commits: Iterable[Commit], table: Table, topic_ids: Mapping[str, str | None]
) -> Resolved:
    """Return what is committed, from the newest commit back to the last full stamp.

    The newest offset of each partition counts: after a truncation it is not the highest.

    Args:
        commits: Newest first.
        table: The table, whose stamps count.
        topic_ids: The ids of topics that exist. What stamps have of an earlier topic of the name
            does not count (†); of a topic that is not known here, the newest one counts.
    """
    newest: Stamp | None = None
    committed: dict[TopicPartition, int] = {}
    cuts: dict[TopicPartition, int] = {}
    cut_files: dict[TopicPartition, tuple[str, ...]] = {}
    ids: dict[str, str | None] = {}
    stamped: dict[str, str | None] = {}
    replaced: set[str] = set()
    versions: dict[TopicPartition, int] = {}
    cut_versions: dict[TopicPartition, int] = {}
    whole, later = False, ""
    oldest: int | None = None
    partial: int | None = None
    for commit in commits:
        oldest = commit.version
        stamp = read_stamp(commit.metadata, table)
        if stamp is None and (later := later_kind(commit.metadata, table)):
            break
        if stamp is None or not stamp.sequence:
            continue  # not of this group, or a claim
        newest = newest or stamp
        for topic, topic_id in stamp.topic_ids.items():
            ids.setdefault(topic, topic_ids.get(topic, topic_id))
            stamped.setdefault(topic, topic_id)
            if not same_topic(topic_id, ids[topic]):
                replaced.add(topic)
        partial = commit.version
        ends, at = _of_others(stamp.committed, replaced), _of_others(stamp.cuts, replaced)
        versions = {**dict.fromkeys(ends, commit.version), **versions}
        cut_versions = {**dict.fromkeys(at, commit.version), **cut_versions}
        committed, cuts = {**ends, **committed}, {**at, **cuts}
        files = {p: each for p, each in stamp.cut_files.items() if p.topic not in replaced}
        cut_files = {**files, **cut_files}
        # All older stamps of a table's one topic are of the previous topic, too.
        if stamp.full or (replaced and not stamp.several):
            whole = True
            break
    operation = newest.operation if newest else None
    if operation is not None:  # of a topic that was made anew since, nothing is left to do (†)
        meant = {*operation.ranges, *operation.given_up}
        recreated = [p for p in meant if not same_topic(stamped.get(p.topic), ids.get(p.topic))]
        operation = operation.without_ranges(recreated)
    return Resolved(
        topic_ids=ids,
        committed=committed,
        cuts=cuts,
        cut_files=cut_files,
        landing_id=newest.landing_id if newest else None,
        needed_from=newest.needed_from if newest else 0,
        whole=whole,
        written=frozenset(ids),
        versions=versions,
        cut_versions=cut_versions,
        unfounded=partial if oldest == 0 and not (whole or later) else None,
        later=later,
        paused=newest.paused if newest else "",
        operation=operation,
    )


def _of_others(offsets: PartitionOffsets, topics: set[str]) -> PartitionOffsets:
    return {p: offset for p, offset in offsets.items() if p.topic not in topics}
