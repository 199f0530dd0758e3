"""Worlds to explore, and how far."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.model.explore import Limits, System

from .canon import canonical
from .invariants import check, settle
from .readers import new_reader
from .steps import first_logs, system_steps
from .world import Bounds, World

CLAIMED = ("writer 0 is granted", "writer 0 ReadHistory", "Spark begins 1.0", "Spark ends 1.0")
STAMPED = (
    *CLAIMED,
    "writer 0 AskKafka",
    "writer 0 appends a stamp",
    "Spark begins 1.1",
    "Spark ends 1.1",
)
STARTED = ("partition 0 is started",)
ANNOUNCED = ("reader 0 fetches", "reader 0 stages", "reader 0 announces")
ONE_FILE = (*STAMPED, *STARTED, *ANNOUNCED)
TWO_FILES = (*ONE_FILE, *ANNOUNCED)
LANDED = ("writer 0 appends", "Spark begins", "Spark ends")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A world, what happens in it first, and the limits of its exploration."""

    bounds: Bounds
    limits: Limits = field(default_factory=Limits)
    after: tuple[str, ...] = ()  # the beginnings of the labels of the first steps
    broken_first: bool = False  # these steps, too, are taken with the rule left out

    def system(self) -> System[World]:
        world = first_world(self.bounds)
        for wanted in self.after:
            found = (
                s for s in system_steps(world) if " ".join(map(str, s.label)).startswith(wanted)
            )
            step = next(found, None)
            if step is None:
                raise LookupError(f"there is no step {wanted!r}")
            world = step.take()
        return System(world, system_steps, check, canonical, settle)


def first_world(bounds: Bounds) -> World:
    """Return a world in which nothing has happened yet."""
    count = len(bounds.logs)
    return World(
        bounds=bounds,
        logs=first_logs(bounds.logs),
        readers=(new_reader(0, 0), new_reader(1, 0)),
        owners=(None,) * count,
        known=(None,) * count,
        grants=bounds.grants,
        faults=bounds.faults,
        produce=bounds.produce,
        rereads=bounds.rereads,
    )


def scenario(
    kinds: str,
    states: int = 20_000,
    settle_every: int = 50,
    after: tuple[str, ...] = (),
    **bounds: object,
) -> Scenario:
    found = frozenset(kinds.split(",")) - {""}
    return Scenario(
        Bounds(kinds=found, **bounds),  # type: ignore[arg-type]
        Limits(states, settle_every),
        after,
    )


EVERY = (
    "crash,twice,unclear,refused,move,steal,reader crash,file lost,announcement lost,"
    "announced twice,compact,history cut,made anew,landing made anew,retention"
)
"""All faults but a cut of the log, which lets rows land twice if two read at that time."""

HOLDS: Mapping[str, Scenario] = {
    "no fault": scenario("", faults=0, settle_every=1),
    **{f"one {kind}": scenario(kind) for kind in (*EVERY.split(","), "log cut")},
    "two faults": scenario(EVERY, 30_000, faults=2),
    "three records, singly": scenario(EVERY, 20_000, logs=("rrr",), singly=True),
    "control records": scenario(EVERY, logs=(".r.r",), singly=True),
    "two partitions": scenario(EVERY, 20_000, logs=("rr", "r")),
    "landing, two faults": scenario(
        EVERY, 30_000, after=TWO_FILES, faults=2, singly=True, batch_bytes=1
    ),
    "two writers, two lost answers": scenario(
        "twice,unclear,crash",
        30_000,
        after=TWO_FILES,
        faults=3,
        singly=True,
        batch_bytes=1,
        grants=3,
    ),
    "sent before, then refused": scenario(
        "unclear,refused,file lost", 20_000, after=TWO_FILES, faults=2, singly=True, batch_bytes=1
    ),
    "announcements heard late": scenario(EVERY, late=True),
    "small batches": scenario(
        "crash,steal,announcement lost,file lost,announced twice",
        20_000,
        faults=2,
        singly=True,
        batch_bytes=1,
    ),
    "old answers of Kafka": scenario(
        "made anew,landing made anew,announcement lost", faults=2, slow_facts=True
    ),
    "histories cut": scenario(
        "crash,history cut,compact", faults=2, singly=True, full_stamp_every=2, logs=("rrr",)
    ),
    "from the latest": scenario(
        "crash,twice,unclear,refused,history cut,compact", from_latest=True, produce=2
    ),
    "logs cut": scenario(
        "log cut,move,reader crash,announcement lost,crash", 20_000, 20, faults=2, produce=2
    ),
    "logs cut, small batches": scenario(
        "log cut", 20_000, 20, after=STAMPED, faults=2, produce=3, batch_bytes=1, singly=True
    ),
    "made anew and cleaned up": scenario("made anew,history cut,crash", faults=3, produce=1),
}


def broken(
    kinds: str, after: tuple[str, ...] = (), settle_every: int = 20, **bounds: object
) -> Scenario:
    """Return a scenario in which something must break."""
    return scenario(kinds, 20_000, settle_every, after, **bounds)


def small(kinds: str, faults: int = 1, after: tuple[str, ...] = ()) -> Scenario:
    """Return the same with two files announced, of a record each, and commits of one file each."""
    return broken(kinds, (*TWO_FILES, *after), 0, singly=True, batch_bytes=1, faults=faults)


GRANTED_TOO = ("writer 0 appends", "Spark begins 1.2", "writer 1 is granted, too")
CONFLICT = (
    *GRANTED_TOO,
    "writer 1 ReadHistory",
    "Spark begins 2.0",
    "Spark ends 1.2",
    "Spark ends 2.0",
    "writer 1 AskKafka",
)
NO_ANSWER = (*GRANTED_TOO, "writer 1 ReadHistory", "writer 1 gets no answer", "writer 1 AskKafka")


CUT = (
    *ONE_FILE,
    *LANDED,
    "log 0 is cut to 1",
    "reader 0 fetches",
    "a record is written",
    *ANNOUNCED,
)

CUT_BEHIND_A_GAP = (
    "partition 1 is started",
    *ANNOUNCED,
    "the announcement of",
    *ANNOUNCED,
    *STAMPED,
    "partition 0 is started",
    *ANNOUNCED,
    *LANDED,
    "log 0 is cut to 0",
    "reader 0 fetches t-0",
    "a record is written to 0",
    *ANNOUNCED,
    *LANDED,
)
TWO_BEGINS = (
    *CLAIMED,
    "a record is written",
    "writer 1 is granted, too",
    "writer 1 ReadHistory",
    "Spark begins 2.0",
    "Spark ends 2.0",
    "writer 1 AskKafka",
    "writer 1 appends a stamp",
    "Spark begins 2.1",
    "a record is written",
)
ROWS_BEHIND_A_GAP = (
    *STARTED,
    *ANNOUNCED,
    "the announcement of",
    *ANNOUNCED,
    *STAMPED,
    "reader 0 fetches",
)
ONE_AFTER_THE_OTHER = (
    *STAMPED,
    "partition 0 is started",
    *ANNOUNCED,
    *LANDED,
    "partition 1 is started",
    *ANNOUNCED,
    *LANDED,
)

BREAKS: Mapping[str, Scenario] = {
    "takes what does not join on": broken(
        "announcement lost", (*STARTED, *ANNOUNCED, *ANNOUNCED), singly=True
    ),
    "cuts nothing off": broken("steal", ONE_FILE, singly=True),
    "a cut counts each time": broken("log cut", CUT, produce=1),
    "deletes what is not landed whole": broken("announcement lost", logs=("rr", "r")),
    "topic ids do not count": broken("made anew"),
    "forgets files of a newer topic": broken("made anew", slow_facts=True),
    "a conflict is a claim": replace(small("twice", after=CONFLICT), broken_first=True),
    "no answer is a claim": replace(small("twice,unclear", 2, NO_ANSWER), broken_first=True),
    "claims nothing": small("twice", after=GRANTED_TOO),
    "reads, then claims": small("twice", after=GRANTED_TOO),
    "a conflict is a commit": small("twice"),
    "no answer is a commit": small("unclear"),
    "skipped is committed": small("twice"),
    "skipped is committed before": small("unclear,twice", faults=2),
    "goes again under another version": small("unclear"),
    "another batch after no answer": small("unclear"),
    "forgets what was sent before": small("unclear,refused", faults=2),
    "only the newest stamp counts": broken("crash", ONE_AFTER_THE_OTHER, logs=("r", "r")),
    "a short history is whole": broken("crash,history cut", TWO_FILES, faults=2, singly=True),
    "forgets which cuts it read": broken(
        "announcement lost,log cut,crash",
        CUT_BEHIND_A_GAP,
        faults=3,
        produce=1,
        logs=("r", "rr"),
        singly=True,
    ),
    "deletes before its begin is said": broken("twice", TWO_BEGINS, from_latest=True, produce=2),
    "a range begins at its first record": broken("", faults=0, logs=(".r.r",), settle_every=1),
    "a range begins too early": replace(small("file lost"), broken_first=True),
    "a range ends too late": broken("", faults=0, produce=1),
    "keeps rows of another place": broken(
        "announcement lost", ROWS_BEHIND_A_GAP, logs=("rrr",), singly=True
    ),
    "a cut is not said": replace(
        broken("log cut", (*ONE_FILE, *LANDED), 1, produce=1), broken_first=True
    ),
    "a record is left out": broken("", faults=0),
}
"""With a rule left out (`mutations`) each of these must come to a violation."""

UNSEEN: Mapping[str, Scenario] = {
    "a skipped claim is mine": small("twice", after=GRANTED_TOO),
    "any landing topic will do": small("crash,landing made anew", 2, LANDED),
    "says nothing of its begin": broken("crash", CLAIMED, from_latest=True, produce=1),
}
"""Rules that nothing found so far needs: another keeps what they guard."""
