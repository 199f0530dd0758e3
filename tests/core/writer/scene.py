"""A writer with its table in a few lines: what it asks is answered by hand, or as by a real one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from binwright.core.messages import OffsetRange, Staged
from binwright.core.model import Slot, TopicPartition
from binwright.core.ports import Commit, Table
from binwright.core.writer import machine
from binwright.core.writer.landing import Landing
from binwright.core.writer.machine import Writer
from binwright.core.writer.requests import (
    Append,
    AskKafka,
    Claim,
    Committed,
    Effect,
    Facts,
    Outcome,
    ReadHistory,
    Request,
    Told,
    WriterRules,
)
from binwright.core.writer.stamp import Stamp

TOPIC, ID = "orders", "id-1"
TABLE = Table(topic=TOPIC, group="g", cluster="c")
RULES = WriterRules(table=TABLE, writer="me", term=7)
CREATED = Commit(0, None)
EFFECT = TypeVar("EFFECT")


def part(number: int) -> TopicPartition:
    return TopicPartition(TOPIC, number)


def staged(  # noqa: PLR0913
    file: str,
    ranges: Mapping[int, tuple[int, int]],
    *,
    topic: str = TOPIC,
    topic_id: str | None = ID,
    cut: tuple[int, ...] = (),
    size: int = 10,
    age_s: float = 0.0,
) -> Staged:
    return Staged(
        topic=topic,
        topic_id=topic_id,
        file=file,
        rows=sum(end - first for first, end in ranges.values()),
        bytes=size,
        ranges={TopicPartition(topic, p): OffsetRange(*r) for p, r in ranges.items()},
        slot=Slot(0),
        epoch=1,
        age_s=age_s,
        cut=tuple(map(part, cut)),
    )


def stamp(  # noqa: PLR0913
    committed: Mapping[int, int] | None = None,
    *,
    epoch: int = 1,
    sequence: int = 1,
    writer: str = "other",
    topic_id: str | None = ID,
    full: bool = False,
    needed_from: int = 0,
    cuts: Mapping[int, int] | None = None,
    landing_id: str | None = "landing-1",
) -> Stamp:
    return Stamp(
        group=TABLE.group,
        cluster=TABLE.cluster,
        writer=writer,
        epoch=epoch,
        sequence=sequence,
        topic_id=topic_id,
        landing_id=landing_id,
        needed_from=needed_from,
        committed=committed or {},
        cuts=cuts or {},
        full=full,
    )


def claim(epoch: int = 1, writer: str = "other") -> Stamp:
    return Stamp(group="g", cluster="c", writer=writer, epoch=epoch, sequence=0)


def history(*stamps: Stamp | str | None) -> list[Commit]:
    """Return commits, newest first, of stamps in the order in which they were committed."""
    texts = [s.encode() if isinstance(s, Stamp) else s for s in stamps]
    return [Commit(version, text) for version, text in enumerate(texts)][::-1]


def facts(
    bounds: Mapping[int, tuple[int, int]] | None = None,
    topic_id: str | None = ID,
    landing_id: str | None = "landing-1",
    landing_end: int | None = None,
) -> Facts:
    return Facts(topic_id, bounds or {0: (0, 10)}, landing_id, landing_end)


class Scene:
    """One writer, the time, and what it has caused."""

    def __init__(self, rules: WriterRules = RULES) -> None:
        self.writer = Writer(rules)
        self.now = 0.0
        self.effects: list[Effect] = []
        self.heard = 0

    @property
    def landing(self) -> Landing:
        assert isinstance(self.writer.phase, Landing)
        return self.writer.phase

    @property
    def committed(self) -> dict[int, int]:
        return dict(self.landing.chain.committed)

    def ask(self, after_s: float = 0.0) -> Request | None:
        self.now += after_s
        self.writer, wanted = machine.request(self.writer, self.now)
        return wanted

    def answer(self, outcome: Outcome) -> list[Effect]:
        self.writer, effects = machine.answered(self.writer, outcome, self.now)
        self.effects += effects
        return list(effects)

    def hear(self, staged: Staged, offset: int | None = None) -> list[Effect]:
        offset = self.heard if offset is None else offset
        self.heard = offset + 1
        self.writer, effects = machine.heard(self.writer, offset, staged, self.now)
        self.effects += effects
        return list(effects)

    def appends(self, after_s: float = 10.0) -> Append:
        """Let time pass until a commit is asked for, with nothing new from Kafka."""
        wanted = self.ask(after_s)
        if isinstance(wanted, AskKafka):
            self.answer(Committed())  # no facts: asked again later
            wanted = self.ask()
        assert isinstance(wanted, Append), wanted
        return wanted

    def change(self, **fields: object) -> None:
        phase = replace(self.landing, **fields)  # type: ignore[arg-type]
        self.writer = replace(self.writer, phase=phase)


def caused(effects: list[Effect], kind: type[EFFECT]) -> list[EFFECT]:
    return [effect for effect in effects if isinstance(effect, kind)]


def claimed(rules: WriterRules = RULES) -> Scene:
    """Return a writer whose claim of epoch 1 is committed, on a table that is new."""
    scene = Scene(rules)
    assert isinstance(scene.ask(), ReadHistory)
    scene.answer(Told([CREATED], complete=True))
    assert isinstance(scene.ask(), Claim)
    scene.answer(Committed())
    return scene


def landing(
    bounds: Mapping[int, tuple[int, int]] | None = None, rules: WriterRules = RULES
) -> Scene:
    """Return a writer of a new table that has said in a stamp where it begins."""
    scene = claimed(rules)
    assert isinstance(scene.ask(), AskKafka)
    scene.answer(facts(bounds))
    assert isinstance(scene.ask(), ReadHistory)
    scene.answer(Told(history(None, claim(1, "me")), complete=True))
    assert isinstance(scene.ask(), Append)
    scene.answer(Committed())
    scene.effects.clear()
    return scene
