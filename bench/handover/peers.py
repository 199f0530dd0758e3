"""Today's groups: members are processes of `member`, bounced as an operator would."""

import asyncio
import os
import sys
import time
from pathlib import Path

from bench.handover.marks import has_read
from bench.handover.scenario import DOWN_S, MEMBERS, BenchTopic, until
from binwright.local.child import Child, Command

START_S, END_S = 60.0, 30.0


class Peer:
    """A group of one kind; see `Subject`."""

    def __init__(self, kind: str, ground: BenchTopic, directory: Path) -> None:
        self.kind, self.marks = kind, directory
        self._ground = ground
        self._members: list[Child] = []

    async def begin(self) -> None:
        """Start all at once; return when each reads."""
        self._members = [self._spawn() for _ in range(MEMBERS)]
        for member in self._members:
            await self._reads(member)

    async def bounce(self, number: int) -> None:
        """End one in good order, and start it again."""
        await self._members[number].stop(grace_s=END_S)
        await asyncio.sleep(DOWN_S)
        self._members[number] = self._spawn()
        await self._reads(self._members[number])

    async def grow(self) -> None:
        """Add one."""
        self._members.append(self._spawn())
        await self._reads(self._members[-1])

    async def end(self) -> None:
        """End all."""
        await asyncio.gather(*(member.stop(grace_s=END_S) for member in self._members))

    async def _reads(self, member: Child) -> None:
        await until(lambda: has_read(self.marks, member.pid), START_S, "a new member reads")

    def _spawn(self) -> Child:
        argv = (sys.executable, "-m", "bench.handover.member", "--kind", self.kind)
        where = (
            *("--bootstrap", self._ground.kafka.bootstrap_servers),
            *("--topic", self._ground.topic),
            *("--group", f"bench-{self.kind}"),
            *("--marks", str(self.marks)),
        )
        return Child(
            Command(
                title=f"a member of {self.kind}",
                argv=(*argv, *where),
                directory=self.marks,
                log=self.marks / f"member-{time.monotonic_ns()}.log",
                environment={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        )
