"""What a writer reads from the stamps of a table's commits: what has landed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from binwright.consumer.decide.writer.chain import same_topic
from binwright.protocol.ports.lake import Commit, Table
from binwright.protocol.stamp import NO_ORDER, Stamp, read_stamp


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
    paused: str = ""  # who paused the table, when and why
    order: int = NO_ORDER  # that says so, or that it lands


def resolve(commits: Iterable[Commit], table: Table, topic_id: str | None) -> Resolved:
    """Return what is committed, from the newest commit back to the last full stamp.

    The newest offset of each partition counts: after a truncation it is not the highest.

    Args:
        commits: Newest first.
        table: The table, whose stamps count.
        topic_id: The current topic's id; stamps of another topic end the search.
    """
    newest: Stamp | None = None
    committed: dict[int, int] = {}
    cuts: dict[int, int] = {}
    whole = False
    for commit in commits:
        stamp = read_stamp(commit.metadata, table)
        if stamp is None or not stamp.sequence:
            continue  # not of this group, or a claim
        newest = newest or stamp
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
        landing_id=newest.landing_id if newest else None,
        needed_from=newest.needed_from if newest else 0,
        whole=whole,
        written_before=newest is not None,
        paused=newest.paused if newest else "",
        order=newest.order if newest else NO_ORDER,
    )
