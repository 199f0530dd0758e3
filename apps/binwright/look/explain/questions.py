"""What a person may ask about a group: each question's answer, by a name."""

import re
from contextlib import suppress

from binwright.look.explain.answers import Explanation, GroupFacts
from binwright.look.explain.consumers import explain_consumer, explain_group
from binwright.look.explain.partitions import explain_partition
from binwright.look.explain.plans import explain_plan
from binwright.look.explain.tables import explain_table
from binwright.protocol.errors import UserError
from binwright.protocol.model import Slot, TopicPartition


def answer(group: GroupFacts, what: str) -> Explanation:
    """Return the answer about what a person names.

    Raises:
        UserError: There is no such thing.
    """
    if not what:
        return explain_group(group)
    if planned := re.fullmatch(r"plan(?:[- ](\d+))?", what):
        return explain_plan(group, int(planned[1]) if planned[1] else None)
    if numbered := re.fullmatch(r"(?:consumer[- ])?(\d+)", what):
        return explain_consumer(group, Slot(int(numbered[1])))
    return _about_topic(group, what)


def _about_topic(group: GroupFacts, what: str) -> Explanation:
    tables = group.status.tables
    names, topics = {t.name for t in tables}, {topic for t in tables for topic in t.topics}
    with suppress(ValueError):
        if (partition := TopicPartition.parse(what)).topic in topics:
            return explain_partition(group, partition)
    if what in names:
        return explain_table(group, what)
    if own := sorted(table.name for table in tables if what in table.topics):
        if len(own) == 1:
            return explain_table(group, own[0])
        raise UserError(f"topic {what} has several tables: name one of {', '.join(own)}")
    known = ", ".join(sorted(names)[:10]) or "none"
    raise UserError(
        f"{what}: no table, topic, partition, consumer or plan of group {group.status.group}; its "
        f"tables: {known}"
    )
