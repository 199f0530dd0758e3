"""The stamp in a commit's metadata: what is committed, by which writer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from binwright.protocol.fields import checked_offset
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import topic_name
from binwright.tables.operations import Operation, read_operation
from binwright.tables.ports import CutFiles, PartitionOffsets, Table

_NAME, _OLDER, _NEWEST = "binwright-stamp/", 3, 4
_OF_ONE, _OF_SEVERAL = f"{_NAME}{_OLDER}", f"{_NAME}{_NEWEST}"
_PARTITIONS = 1 << 31
_MOST_WORDS = 400  # characters of who paused a table, when and why
FIRST_TOPIC = "binwright.topic"
"""A table's property: the first topic that it took, of which those stamps are that name none.
Without it, that is the topic of the table's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The `userMetadata` of a commit by a table's writer.

    `committed` holds the partitions that the commit changed, or all partitions if it is `full`.
    Announcements before offset `needed_from` of the landing topic with id `landing_id` are no
    longer needed. A claim has sequence 0 and no offsets. The newest stamp says whether a person has
    paused the table, and which work on it was ordered last.

    A table that has taken one topic only has stamps of the form that older versions read, too.
    """

    group: str
    cluster: str
    writer: str  # unique to a claim
    sequence: int
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)  # of the topics below
    landing_id: str | None = None
    needed_from: int = 0
    committed: PartitionOffsets = field(default_factory=dict)
    cuts: PartitionOffsets = field(default_factory=dict)
    cut_files: CutFiles = field(default_factory=dict)  # that cuts were announced with
    full: bool = False
    several: bool = False  # the table has taken several topics, also if this names one
    paused: str = ""  # who paused the table, when and why; empty: it lands
    operation: Operation | None = None  # that a person ordered last, and how far it is

    def encode(self) -> str:
        """Return JSON text; equal stamps are equal text."""
        values: dict[str, Any] = {"kind": _OF_SEVERAL if self.several else _OF_ONE}
        values |= {name: getattr(self, name) for name in self.__slots__ if name != "several"}
        if not self.paused:
            del values["paused"]
        del values["operation"]
        if self.operation is not None:
            values["operation"] = self.operation.plain()
        del values["topic_ids"], values["committed"], values["cuts"], values["cut_files"]
        if self.several:
            return orjson.dumps(
                values | {"topics": {t: self._of(t) for t in sorted(self.topic_ids)}}
            ).decode()
        for topic in self.topic_ids:
            values["topic"] = topic
        return orjson.dumps(values | self._of(values.get("topic", ""))).decode()

    def _of(self, topic: str) -> dict[str, Any]:
        def own(offsets: Mapping[TopicPartition, Any]) -> dict[str, Any]:
            return {str(p.partition): o for p, o in sorted(offsets.items()) if p.topic == topic}

        values = {"committed": own(self.committed), "cuts": own(self.cuts)}
        if files := own(self.cut_files):
            values["cut_files"] = files
        return {"topic_id": self.topic_ids.get(topic), **values}


def read_stamp(text: str | None, table: Table) -> Stamp | None:
    """Parse a commit's `userMetadata`; None if it is not a stamp of this group and cluster.

    Never raises: other writers of the table may put anything into their commits. A stamp with a
    field of another type, or a number out of range, is none.
    """
    try:
        parsed = orjson.loads(text or "")
        kind = parsed["kind"]
        if (parsed["group"], parsed["cluster"]) != (table.group, table.cluster):
            return None
        if kind not in {_OF_ONE, _OF_SEVERAL}:
            return None
        topics: Mapping[str, Any] = (
            dict(parsed["topics"].items())
            if kind == _OF_SEVERAL
            else {_text(parsed.get("topic", table.unnamed_topic or table.topic)): parsed}
        )
        return Stamp(
            group=table.group,
            cluster=table.cluster,
            writer=_text(parsed["writer"]),
            sequence=checked_offset("sequence", parsed["sequence"]),
            topic_ids={topic_name(t): _optional_text(of["topic_id"]) for t, of in topics.items()},
            landing_id=_optional_text(parsed["landing_id"]),
            needed_from=checked_offset("needed_from", parsed["needed_from"]),
            committed=_offsets("committed", topics),
            cuts=_offsets("cuts", topics),
            cut_files=_cut_files(topics),
            full=parsed["full"] is True,
            several=kind == _OF_SEVERAL,
            paused=_text(parsed.get("paused", ""))[:_MOST_WORDS],
            operation=read_operation(parsed["operation"]) if "operation" in parsed else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def later_kind(text: str | None, table: Table) -> str:
    """Return the kind of a stamp of this group that a later version made; empty: it is none.

    What has landed is not known then. A claim, which has no offsets, does not count.
    """
    try:
        parsed = orjson.loads(text or "")
        kind = _text(parsed["kind"])
        own = (parsed["group"], parsed["cluster"]) == (table.group, table.cluster)
        number = int(kind.removeprefix(_NAME)) if kind.startswith(_NAME) else 0
        return kind if own and number > _NEWEST and parsed["sequence"] != 0 else ""
    except (ValueError, TypeError, KeyError):
        return ""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return tuple(map(_text, value))


def _offsets(name: str, topics: Mapping[str, Any]) -> PartitionOffsets:
    return {
        _partition(topic, p): checked_offset(p, offset)
        for topic, of in topics.items()
        for p, offset in of[name].items()
    }


def _cut_files(topics: Mapping[str, Any]) -> CutFiles:
    """Return the files of cuts; stamps of older versions have none."""
    return {
        _partition(topic, p): _texts(files)
        for topic, of in topics.items()
        for p, files in of.get("cut_files", {}).items()
    }


def _partition(topic: str, number: str) -> TopicPartition:
    if not (number.isascii() and number.isdecimal() and int(number) < _PARTITIONS):
        raise ValueError("not a partition")
    return TopicPartition(topic, int(number))
