"""A table with Delta's rules, and with ours: it refuses to land a row twice or to skip one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from binwright.core.model import TopicPartition
from binwright.core.ports import Commit

Rows = Mapping[TopicPartition, tuple[int, int]]  # -> first offset, end


@dataclass(eq=False)
class Write:
    """A transaction on its way; it ends whether or not its client still waits."""

    topic: str
    app: str
    number: int
    seen: int  # the app id's number when it began
    rows: Rows
    stamp: str | None
    stuck: bool = False  # on a slow server: it ends much later
    verdict: Literal["", "conflict"] | int | None = ""  # or the version it made, None: skipped


@dataclass
class Table:
    """What Delta knows of one topic."""

    commits: list[Commit] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    landed: dict[TopicPartition, int] = field(default_factory=dict)

    def end(self, write: Write) -> None:
        """Commit, or fail since somebody else wrote under this app id meanwhile."""
        if self.numbers.get(write.app, -1) != write.seen:
            write.verdict = "conflict"
            return
        for partition, (first, end) in write.rows.items():
            landed = self.landed.get(partition, 0)
            assert first >= landed, f"{partition}: {first}..{end} lands twice (is at {landed})"
            assert first <= landed, f"{partition}: {landed}..{first} is skipped"
            self.landed[partition] = end
        self.numbers[write.app], write.verdict = write.number, len(self.commits)
        self.commits.append(Commit(len(self.commits), write.stamp))
