"""What a writer reads from the stamps of a table's commits: what has landed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from binwright.consumer.decide.writer.chain import same_topic
from binwright.protocol.ports.lake import Commit, Table
from binwright.protocol.stamp import read_stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A table's state, by the stamps of its history."""

    topic_id: str | None  # of the topic that `committed` is of; None: unknown
    committed: Mapping[int, int]
    cuts: Mapping[int, int]
    landing_id: str | None
    needed_from: int
    whole: bool  # the history reaches back far enough: older commits would add nothing
    written_before: bool  # the group has landed rows, or decided where partitions begin


def resolve(commits: Iterable[Commit], table: Table, topic_id: str | None) -> Resolved:
    """Return what is committed, from the newest commit back to the last full stamp.

    The newest offset of each partition counts: after a truncation it is not the highest.

    Args:
        commits: Newest first.
        table: The table, whose stamps count.
        topic_id: The current topic's id; stamps of another topic end the search.
    """
    landing_id, needed_from, newest = None, 0, True
    committed: dict[int, int] = {}
    cuts: dict[int, int] = {}
    whole = before = False
    for commit in commits:
        stamp = read_stamp(commit.metadata, table)
        if stamp is None or not stamp.sequence:
            continue  # not of this group, or a claim
        before = True
        if newest:
            landing_id, needed_from, newest = stamp.landing_id, stamp.needed_from, False
        if not same_topic(stamp.topic_id, topic_id):
            whole = True  # all older stamps are of the previous topic
            break
        committed = {**stamp.committed, **committed}
        cuts = {**stamp.cuts, **cuts}
        if stamp.full:
            whole = True
            break
    return Resolved(
        topic_id=topic_id,
        committed=committed,
        cuts=cuts,
        landing_id=landing_id,
        needed_from=needed_from,
        whole=whole,
        written_before=before,
    )
