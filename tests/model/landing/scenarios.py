"""The worlds to explore, with limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.model.explore import Limits, TransitionSystem
from tests.model.landing.canonical_form import canonical

from binwright.tables.columns import parse_columns

from .invariants import check, check_liveness
from .readers import new_reader
from .steps import PROCESSES, first_logs, system_steps
from .world import Bounds, DeltaTable, World

CLAIMED = (
    "writer 0 is granted",
    "writer 0 WriteLease",
    "writer 0 DeleteOtherLeases",
    "writer 0 claims",
    "Spark begins 0.0",
    "Spark ends 0.0",
)
STAMPED = (
    *CLAIMED,
    "writer 0 QueryKafka",
    "writer 0 appends a stamp",
    "Spark begins 0.1",
    "Spark reads 0.1",
    "Spark ends 0.1",
)
STARTED = ("partition 0 is started",)
ANNOUNCED = ("reader 0 fetches", "reader 0 stages", "reader 0 announces")
ONE_FILE = (*STAMPED, *STARTED, *ANNOUNCED)
TWO_FILES = (*ONE_FILE, *ANNOUNCED)
TWO_STAMPED = (
    "writer 0 is granted",
    *(
        step
        for n in (0, 1)
        for step in (
            f"writer 0 of table {n} WriteLease",
            f"writer 0 of table {n} DeleteOtherLeases",
            f"writer 0 of table {n} claims",
            f"Spark begins {n}.0",
            f"Spark ends {n}.0",
            f"writer 0 of table {n} QueryKafka",
            f"writer 0 of table {n} appends a stamp",
            f"Spark begins {n}.1",
            f"Spark reads {n}.1",
            f"Spark ends {n}.1",
        )
    ),
)
"""As `STAMPED`, of a topic with two tables."""
TWO_ANNOUNCED = (*STARTED, *ANNOUNCED, "reader 0 announces")
BOTH_ANNOUNCED = (
    *STAMPED,
    "partition 0 is started",
    "partition 1 is started",
    "reader 0 fetches t-0",
    "reader 0 fetches v-0",
    "reader 0 stages what it has t",
    "reader 0 announces",
    "reader 0 stages what it has v",
    "reader 0 announces",
)
"""A file of each of two topics of one table."""
LANDED = ("writer 0 appends", "Spark begins", "Spark reads", "Spark ends")


TYPED_STAMPED = (
    *CLAIMED[:4],
    "Spark begins 0.0 bad records",
    "Spark ends 0.0 bad records",
    "Spark begins 0.0",
    "Spark ends 0.0",
    *STAMPED[len(CLAIMED) :],
)
"""As `STAMPED`, of a table of decoded values."""
TYPED_FILE = (*TYPED_STAMPED, *STARTED, *ANNOUNCED)
TYPED_FILES = (*TYPED_FILE, *ANNOUNCED)
TWO_DECODINGS = ("id BIGINT", "id BIGINT")
REFUSED_THEN_FIT = ("id STRING", "id BIGINT")
BAD_RECORDS_LANDED = (
    *TYPED_FILE,
    "writer 0 appends",
    "Spark begins 0.2 bad records",
    "Spark reads 0.2 bad records",
    "Spark ends 0.2 bad records",
)
"""The rows behind them are sent."""

REPLAYED = (
    *BAD_RECORDS_LANDED,
    "Spark begins 0.2 rows",
    "Spark reads 0.2 rows",
    "Spark ends 0.2 rows",
    "the settings change to 1",
    "a replay is ordered",
)
"""Bad records are to be decoded again, by which they are good."""

CHANGES = ("Spark begins 0.2 changes", "Spark reads 0.2 changes", "Spark ends 0.2 changes")
DELETIONS = tuple(step.replace("changes", "deletions") for step in CHANGES)
REPLAY_ORDERED = ("the settings change to 1", "a replay is ordered")
OLDER_CHANGE = (*BAD_RECORDS_LANDED, *CHANGES, *REPLAY_ORDERED)
"""A bad record is to be decoded again that is older than the row of its key."""

BOTH_LANDED = (
    *ONE_FILE,
    *LANDED,
    "partition 1 is started",
    *ANNOUNCED,
    *LANDED,
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A world, its first steps, and the limits of its exploration."""

    bounds: Bounds
    limits: Limits = field(default_factory=Limits)
    after: tuple[str, ...] = ()  # prefixes of the labels of the first steps
    mutated_setup: bool = False  # the first steps, too, are taken with the mutation

    def system(self) -> TransitionSystem[World]:
        world = first_world(self.bounds)
        for wanted in self.after:
            found = (
                s for s in system_steps(world) if " ".join(map(str, s.label)).startswith(wanted)
            )
            step = next(found, None)
            if step is None:
                raise LookupError(f"there is no step {wanted!r}")
            world = step.successor()
        return TransitionSystem(world, system_steps, check, canonical, check_liveness)


def first_world(bounds: Bounds) -> World:
    """Return the initial world."""
    count = len(bounds.logs)
    columns = parse_columns(bounds.columns) if bounds.typed else ()
    return World(
        bounds=bounds,
        logs=first_logs(bounds.logs),
        readers=(new_reader(0, 0), new_reader(1, 0)),
        owners=(None,) * count,
        start_offsets=(None,) * count,
        grants=bounds.grants,
        faults=bounds.faults,
        produce=bounds.produce,
        rereads=bounds.rereads,
        tables=(DeltaTable(columns=columns),) * bounds.targets,
        writers=(None,) * (PROCESSES * bounds.targets),
    )


def scenario(
    kinds: str,
    states: int = 20_000,
    liveness_every: int = 50,
    after: tuple[str, ...] = (),
    **bounds: object,
) -> Scenario:
    found = frozenset(kinds.split(",")) - {""}
    return Scenario(
        Bounds(kinds=found, **bounds),  # type: ignore[arg-type]
        Limits(states, liveness_every),
        after,
    )


EVERY = (
    "crash,twice,unclear,refused,move,steal,reader crash,file lost,announcement lost,"
    "announced twice,compact,altered,lease lost,history cut,recreated,landing recreated,retention"
)
"""All faults except a cut of the log, after which rows land twice if two consumers read it."""

CORRECT_SCENARIOS: Mapping[str, Scenario] = {
    "no fault": scenario("", faults=0, liveness_every=1),
    **{f"one {kind}": scenario(kind) for kind in (*EVERY.split(","), "log cut")},
    "two faults": scenario(EVERY, 30_000, faults=2),
    "three records, singly": scenario(EVERY, 20_000, logs=("rrr",), fetch_singly=True),
    "control records": scenario(EVERY, logs=(".r.r.",), fetch_singly=True),
    "two partitions": scenario(EVERY, 20_000, logs=("rr", "r")),
    "landing, two faults": scenario(
        EVERY, 30_000, after=TWO_FILES, faults=2, fetch_singly=True, batch_bytes=1
    ),
    "two writers, two lost replies": scenario(
        "twice,unclear,crash",
        30_000,
        after=TWO_FILES,
        faults=3,
        fetch_singly=True,
        batch_bytes=1,
        grants=3,
    ),
    "refused after a lost reply": scenario(
        "unclear,refused,file lost",
        20_000,
        after=TWO_FILES,
        faults=2,
        fetch_singly=True,
        batch_bytes=1,
    ),
    "leases lost, tables altered": scenario(
        "lease lost,altered,unclear,twice",
        20_000,
        after=TWO_FILES,
        faults=3,
        grants=3,
        fetch_singly=True,
        batch_bytes=1,
    ),
    "late announcements": scenario(EVERY, late_announcements=True),
    "small batches": scenario(
        "crash,steal,announcement lost,file lost,announced twice",
        20_000,
        faults=2,
        fetch_singly=True,
        batch_bytes=1,
    ),
    "stale replies of Kafka": scenario(
        "recreated,landing recreated,announcement lost", faults=2, slow_facts=True
    ),
    "histories cut": scenario(
        "crash,history cut,compact", faults=2, fetch_singly=True, full_stamp_every=2, logs=("rrr",)
    ),
    "retention below what is staged": scenario(
        "retention,crash,unclear,twice",
        20_000,
        20,
        (*STARTED, *ANNOUNCED, *ANNOUNCED),
        faults=3,
        fetch_singly=True,
        keeps_staged=True,
        grants=3,
        late_announcements=True,
    ),
    "from the latest": scenario(
        "crash,twice,unclear,refused,history cut,compact", from_latest=True, produce=2
    ),
    "logs cut": scenario(
        "log cut,move,reader crash,announcement lost,crash", 20_000, 20, faults=2, produce=2
    ),
    "logs cut, small batches": scenario(
        "log cut", 20_000, 20, after=STAMPED, faults=2, produce=3, batch_bytes=1, fetch_singly=True
    ),
    "log cut, announced twice": scenario(
        "log cut,announced twice,crash", 20_000, 20, (*ONE_FILE, *LANDED), faults=3, produce=1
    ),
    "two tables": scenario(EVERY, targets=2),
    "two tables, small batches": scenario(
        "crash,twice,unclear,refused,reader crash,file lost,announcement lost,history cut",
        30_000,
        after=TWO_STAMPED,
        faults=2,
        targets=2,
        fetch_singly=True,
        batch_bytes=1,
    ),
    "two tables, recreated": scenario(
        "recreated,log cut,history cut,crash",
        after=(*TWO_STAMPED, *TWO_ANNOUNCED),
        faults=2,
        targets=2,
        produce=1,
    ),
    "two tables from the latest": scenario(
        "crash,unclear,history cut", from_latest=True, targets=2, produce=2
    ),
    "two topics into one table": scenario(
        "crash,twice,unclear,refused,move,reader crash,file lost,announcement lost,history cut",
        logs=("r", "r"),
        topics=2,
    ),
    "two topics, two writers, lost replies, a move": scenario(
        "twice,unclear,crash,move,altered",
        30_000,
        after=BOTH_ANNOUNCED,
        faults=3,
        grants=3,
        logs=("rr", "r"),
        topics=2,
        fetch_singly=True,
        batch_bytes=1,
    ),
    "a topic is added to a table": scenario(
        "crash,twice,unclear",
        20_000,
        0,
        after=(*ONE_FILE, *LANDED),
        faults=2,
        grants=3,
        logs=("r", "r"),
        topics=2,
        topic_added=True,
    ),
    "decoders' exceptions": scenario(
        "crash,twice,unclear,steal,reader crash,file lost,announcement lost",
        10_000,
        faults=2,
        logs=("rxr",),
        typed=True,
    ),
    "decoders' exceptions, singly": scenario(
        "crash,unclear,reader crash,file lost",
        10_000,
        logs=("xr", "x"),
        typed=True,
        fetch_singly=True,
    ),
    "a table of columns, two faults": scenario(
        f"{EVERY},settings,forged",
        15_000,
        faults=2,
        logs=("rxy",),
        typed=True,
        settings=("id BIGINT", "id BIGINT, x INT"),
    ),
    "a table of columns, from its files on": scenario(
        f"{EVERY},settings",
        15_000,
        after=TYPED_FILES,
        faults=3,
        logs=("xry",),
        typed=True,
        fetch_singly=True,
        batch_bytes=1,
        settings=("id BIGINT", "id BIGINT, x INT"),
    ),
    "in place and appended": scenario(
        f"{EVERY},not in place,settings",
        15_000,
        after=TYPED_STAMPED,
        faults=2,
        logs=("rxr",),
        typed=True,
        in_place=True,
        fetch_singly=True,
        settings=("id BIGINT", "id BIGINT, x INT"),
    ),
    "in place, from its files on": scenario(
        "crash,twice,unclear,altered,file lost,not in place,steal,lease lost,announced twice",
        15_000,
        after=TYPED_FILES,
        faults=3,
        grants=3,
        logs=("rrr",),
        typed=True,
        in_place=True,
        fetch_singly=True,
        batch_bytes=1,
    ),
    "in place, bad records beside": scenario(
        "crash,twice,unclear,altered,file lost,not in place,settings",
        15_000,
        after=TYPED_FILE,
        faults=3,
        grants=3,
        logs=("rx",),
        typed=True,
        in_place=True,
        settings=TWO_DECODINGS,
    ),
    "in place, cut": scenario(
        "log cut,crash,unclear,not in place,steal",
        10_000,
        after=TYPED_FILE,
        faults=3,
        logs=("rr",),
        produce=1,
        typed=True,
        in_place=True,
    ),
    "bad records and rows": scenario(
        "crash,twice,unclear,refused,altered,file lost,settings",
        15_000,
        after=TYPED_FILE,
        faults=3,
        grants=3,
        logs=("rx",),
        typed=True,
        settings=TWO_DECODINGS,
    ),
    "bad records, read again by other settings": scenario(
        "crash,twice,unclear,altered,file lost,settings,steal",
        15_000,
        after=BAD_RECORDS_LANDED,
        faults=4,
        grants=3,
        logs=("rxy",),
        typed=True,
        settings=TWO_DECODINGS,
    ),
    "a schema changes in mid-log": scenario(
        "crash,twice,unclear,altered,file lost,settings,reader crash",
        10_000,
        after=TYPED_STAMPED,
        faults=3,
        logs=("rr",),
        typed=True,
        fetch_singly=True,
        settings=("id BIGINT", "id BIGINT, x INT"),
    ),
    "columns for new fields": scenario(
        "crash,twice,unclear,altered,file lost,settings,reader crash",
        10_000,
        after=TYPED_STAMPED,
        faults=3,
        logs=("rrr",),
        typed=True,
        fetch_singly=True,
        batch_bytes=1,
        settings=TWO_DECODINGS,
        proposed=("x BIGINT", "x DOUBLE, y STRING"),
    ),
    "columns that a table refuses": scenario(
        "crash,twice,unclear,file lost,settings,reader crash",
        10_000,
        after=TYPED_FILE,
        faults=3,
        logs=("rr",),
        typed=True,
        fetch_singly=True,
        settings=REFUSED_THEN_FIT,
    ),
    "refused columns, and retention": scenario(
        "retention,crash,unclear,settings",
        5_000,
        0,  # it never lands
        (*TYPED_FILE, "log 0 begins at 1"),
        faults=3,
        logs=("rr",),
        typed=True,
        settings=REFUSED_THEN_FIT,
        keeps_staged=True,
    ),
    "a replay": scenario(
        "crash,twice,unclear,refused,altered,lease lost,history cut,compact,settings",
        15_000,
        after=REPLAYED,
        faults=3,
        grants=3,
        logs=("rxx",),
        typed=True,
        replay=True,
        settings=TWO_DECODINGS,
    ),
    "changes of a key": scenario(
        "crash,twice,unclear,refused,altered,lease lost,file lost,steal,log cut,recreated",
        20_000,
        after=TYPED_FILE,
        faults=3,
        grants=3,
        logs=("rdr",),
        produce=1,
        typed=True,
        keyed=True,
        fetch_singly=True,
    ),
    "changes of a key in a log that is cut": scenario(
        "log cut,crash,unclear",
        15_000,
        0,
        TYPED_FILE,
        faults=2,
        logs=("rdr",),
        produce=1,
        typed=True,
        keyed=True,
    ),
    "a replay of changes of a key": scenario(
        "crash,twice,unclear,altered,lease lost,settings",
        20_000,
        after=(*BAD_RECORDS_LANDED, *DELETIONS, *CHANGES, *REPLAY_ORDERED),
        faults=3,
        grants=3,
        logs=("xrxd",),
        typed=True,
        keyed=True,
        replay=True,
        settings=TWO_DECODINGS,
    ),
    "a replay of a deletion": scenario(
        "crash,twice,unclear,altered,lease lost,settings",
        20_000,
        after=OLDER_CHANGE,
        faults=3,
        grants=3,
        logs=("xrz",),
        typed=True,
        keyed=True,
        replay=True,
        settings=TWO_DECODINGS,
    ),
    "an erasure": scenario(
        "crash,twice,unclear,refused,altered,lease lost,history cut,compact,file lost,move",
        20_000,
        after=(*ONE_FILE, *LANDED, "an erasure is ordered"),
        faults=3,
        grants=3,
        logs=("rr",),
        produce=1,
        erase=True,
    ),
    "an erasure beside landing": scenario(
        "crash,unclear,reader crash,move,announcement lost,log cut,recreated",
        15_000,
        faults=2,
        logs=("rr",),
        after=STAMPED,
        fetch_singly=True,
        erase=True,
    ),
    "an erasure of bad records": scenario(
        "crash,unclear,file lost,settings,twice",
        15_000,
        after=BAD_RECORDS_LANDED,
        faults=3,
        logs=("rxy",),
        typed=True,
        erase=True,
        settings=TWO_DECODINGS,
    ),
    "a replay beside landing": scenario(
        "crash,unclear,file lost,settings,twice,move",
        15_000,
        after=BAD_RECORDS_LANDED,
        faults=3,
        logs=("rxy",),
        typed=True,
        replay=True,
        settings=TWO_DECODINGS,
    ),
    "a back-fill": scenario(
        "crash,twice,unclear,refused,altered,lease lost,history cut,compact,file lost,retention",
        20_000,
        after=(*STAMPED, "a back-fill is ordered"),
        faults=3,
        grants=3,
        logs=("rrr",),
        from_latest=True,
        backfill=True,
    ),
    "a back-fill beside landing": scenario(
        "crash,unclear,reader crash,move,announcement lost,recreated",
        15_000,
        after=STAMPED,
        faults=2,
        logs=("rr", "r"),
        produce=2,
        from_latest=True,
        backfill=True,
    ),
    "a back-fill of bad records": scenario(
        "crash,twice,unclear,refused,altered,file lost,settings,steal",
        20_000,
        after=(*TYPED_STAMPED, "a back-fill is ordered"),
        faults=3,
        grants=3,
        logs=("rxy",),
        typed=True,
        from_latest=True,
        backfill=True,
        in_place=True,
        settings=TWO_DECODINGS,
    ),
    "too many bad records": scenario(
        "crash,twice,unclear,file lost,settings",
        10_000,
        after=TYPED_FILE,
        faults=3,
        logs=("rxr",),
        typed=True,
        fetch_singly=True,
        settings=TWO_DECODINGS,
        bad_share=0.0,
    ),
    "announced as what it is not": scenario(
        "forged,crash,unclear,announcement lost",
        10_000,
        after=TYPED_STAMPED,
        faults=2,
        logs=("rr",),
        typed=True,
        fetch_singly=True,
    ),
    "recreated and cleaned up": scenario("recreated,history cut,crash", faults=3, produce=1),
}


def broken(
    kinds: str, after: tuple[str, ...] = (), liveness_every: int = 20, **bounds: object
) -> Scenario:
    """Return a scenario in which a mutation must lead to a violation."""
    return scenario(kinds, 20_000, liveness_every, after, **bounds)


def small(kinds: str, faults: int = 1, after: tuple[str, ...] = ()) -> Scenario:
    """Return the same after two announced files of one record, with commits of one file each."""
    return broken(kinds, (*TWO_FILES, *after), 0, fetch_singly=True, batch_bytes=1, faults=faults)


GRANTED_TWICE = ("writer 0 appends", "writer 1 is granted, too")
CLAIM_SENT = (
    "writer 1 WriteLease",
    "writer 1 DeleteOtherLeases",
    "writer 1 claims",
    "Spark begins 1.0",
)
CONFLICT = (
    *("writer 1 is granted, too", *CLAIM_SENT, "the table is altered", "Spark ends 1.0"),
    *("writer 1 QueryKafka", "writer 0 appends"),
)
NO_REPLY = (
    *("Spark begins 0.2", "Spark reads 0.2", *CLAIM_SENT[:-1], "writer 1 gets no reply"),
    "writer 1 QueryKafka",
)


CUT = (
    *ONE_FILE,
    *LANDED,
    "log 0 is cut to 1",
    "reader 0 fetches",
    "a record is written",
    *ANNOUNCED,
)

CUT_ANNOUNCED_TWICE = (*CUT, *LANDED)
"""A file that begins after a cut has landed."""
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
    *CLAIM_SENT,
    "Spark ends 1.0",
    "writer 1 QueryKafka",
    "writer 1 appends a stamp",
    "Spark begins 1.1",
    "Spark reads 1.1",
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

STAMP_BEHIND_ROWS = (
    *BAD_RECORDS_LANDED,
    "Spark begins 0.2 rows",
    "the table is altered",
    "Spark reads 0.2 rows",
    "Spark ends 0.2 rows",
    "writer 0 waits, QueryKafka",
    "writer 0 appends",
    *(f"Spark {step} 0.3 bad records" for step in ("begins", "reads", "ends")),
    *(f"Spark {step} 0.3 rows" for step in ("begins", "reads", "ends")),
)
"""Their bad records had landed before: where no row may be left the stamp is committed, too."""

DETECTED_MUTATIONS: Mapping[str, Scenario] = {
    "a range lands across a gap": broken(
        "announcement lost", (*STARTED, *ANNOUNCED, *ANNOUNCED), fetch_singly=True
    ),
    "landed offsets are not cut off": broken("steal", ONE_FILE, fetch_singly=True),
    "a cut is applied each time": broken("log cut", CUT, produce=1),
    "a cut counts each time that its file is announced": replace(
        broken("log cut,announced twice", CUT_ANNOUNCED_TWICE, 0, faults=2, produce=1),
        mutated_setup=True,
    ),
    "stamps have no cuts": replace(
        broken(
            "announcement lost,log cut,crash",
            CUT_BEHIND_A_GAP,
            faults=3,
            produce=1,
            logs=("r", "rr"),
            fetch_singly=True,
        ),
        mutated_setup=True,
    ),
    "stamps have no files of cuts": replace(
        broken("log cut,announced twice,crash", CUT_ANNOUNCED_TWICE, 0, faults=3, produce=1),
        mutated_setup=True,
    ),
    "partly landed files are deleted": broken("announcement lost", logs=("rr", "r")),
    "topic ids are ignored": broken("recreated"),
    "files of a newer topic are dropped": broken("recreated", slow_facts=True),
    "the metadata are committed before leases go": small("twice", after=GRANTED_TWICE),
    "other leases stay": small("twice", after=GRANTED_TWICE),
    "no metadata are committed": small("twice", after=GRANTED_TWICE),
    "an unclear result is a claim": replace(
        small("twice,unclear", 2, (*GRANTED_TWICE, *NO_REPLY)), mutated_setup=True
    ),
    "the history is read before the claim": small("twice", after=GRANTED_TWICE),
    "no lease is read": small("twice", after=GRANTED_TWICE),
    "a conflict is a commit": small("altered"),
    "an unclear result is a commit": small("unclear"),
    "another batch after an unclear result": small("unclear"),
    "the chain survives an unclear result": small("unclear"),
    "a new claim has the same lease": small("unclear"),
    "only the newest stamp counts": broken("crash", ONE_AFTER_THE_OTHER, logs=("r", "r")),
    "a short history is whole": broken("crash,history cut", TWO_FILES, faults=2, fetch_singly=True),
    "applied cuts are forgotten": broken(
        "announcement lost,log cut,crash",
        CUT_BEHIND_A_GAP,
        faults=3,
        produce=1,
        logs=("r", "rr"),
        fetch_singly=True,
    ),
    "files are deleted before the stamp": broken("twice", TWO_BEGINS, from_latest=True, produce=2),
    "a partition begins at Kafka's first record, whatever is staged": broken(
        "retention",
        (*STARTED, *ANNOUNCED, *ANNOUNCED),
        keeps_staged=True,
        fetch_singly=True,
        late_announcements=True,
    ),
    "a range begins at its first record": broken("", faults=0, logs=(".r.r.",), liveness_every=1),
    "a range begins too early": replace(small("file lost"), mutated_setup=True),
    "a range ends too late": broken("", faults=0, produce=1),
    "rows survive a reset": broken(
        "announcement lost", ROWS_BEHIND_A_GAP, logs=("rrr",), fetch_singly=True
    ),
    "a cut is not announced": replace(
        broken("log cut", (*ONE_FILE, *LANDED), 1, produce=1), mutated_setup=True
    ),
    "a record is left out": broken("", faults=0),
    "one table's offsets are committed": broken("", TWO_STAMPED, faults=0, targets=2),
    "offsets of a table are committed that others do not know": broken("", faults=0, targets=2),
    "ranges are those of the table's first topic": broken(
        "", BOTH_ANNOUNCED, faults=0, logs=("r", "r"), topics=2
    ),
    "stamps have no topics": broken("crash", BOTH_LANDED, logs=("r", "r"), topics=2),
    "a full stamp has the topics of its batch": replace(
        broken("crash", BOTH_LANDED, logs=("r", "r"), topics=2, full_stamp_every=1),
        mutated_setup=True,
    ),
    "rows land before their bad records": broken(
        "", TYPED_FILE, 0, faults=0, logs=("rx",), typed=True
    ),
    "a claim leaves the table of bad records": broken(
        "twice", TYPED_FILE, 0, logs=("rx",), typed=True
    ),
    "bad offsets are not found again after a conflict": broken(
        "altered", BAD_RECORDS_LANDED, 0, logs=("rx",), typed=True
    ),
    "bad records that have landed are not left out": broken(
        "altered", BAD_RECORDS_LANDED, 0, logs=("rx",), typed=True
    ),
    "rows have not landed if the stamp behind them has not": broken(
        "altered", STAMP_BEHIND_ROWS, 0, faults=2, logs=("rx",), typed=True
    ),
    "files are taken for what is announced": broken(
        "forged", TYPED_STAMPED, 0, logs=("rr",), typed=True, fetch_singly=True
    ),
    "any files are committed as they are": broken(
        "steal", TYPED_FILE, 0, logs=("rr",), typed=True, in_place=True, fetch_singly=True
    ),
    "records that have landed as bad ones are committed as rows": broken(
        "file lost,settings",
        BAD_RECORDS_LANDED,
        0,
        faults=2,
        logs=("rx",),
        typed=True,
        in_place=True,
        settings=TWO_DECODINGS,
    ),
    "files that were not committed as they are have landed": broken(
        "not in place", TYPED_FILE, 1, typed=True, in_place=True
    ),
    "files that do not fit land": broken(
        "", TYPED_FILE, 0, faults=0, typed=True, settings=REFUSED_THEN_FIT
    ),
    "records are read again that Kafka has no more": broken(
        "retention,settings",
        (*TYPED_FILE, "log 0 begins at 1"),
        0,
        faults=2,
        typed=True,
        settings=REFUSED_THEN_FIT,
        keeps_staged=True,
    ),
    "bad records leave before their rows land": broken(
        "settings", REPLAYED, 0, logs=("rx",), typed=True, replay=True, settings=TWO_DECODINGS
    ),
    "a stamp's unsettled records are decoded again": broken(
        "settings,crash",
        REPLAYED,
        0,
        faults=2,
        logs=("rx",),
        typed=True,
        replay=True,
        settings=TWO_DECODINGS,
    ),
    "bad records are replayed that may land again": broken(
        "settings,crash,file lost",
        (*BAD_RECORDS_LANDED, "writer 0 crashes", "the settings change to 1"),
        0,
        faults=3,
        logs=("rx",),
        typed=True,
        replay=True,
        settings=TWO_DECODINGS,
    ),
    "a change that is older becomes the row of its key": broken(
        "settings",
        OLDER_CHANGE,
        0,
        logs=("xr",),
        typed=True,
        keyed=True,
        replay=True,
        settings=TWO_DECODINGS,
    ),
    "a batch has what is before a cut and what is behind it": broken(
        "log cut", TYPED_FILE, 0, logs=("rr",), produce=1, typed=True, keyed=True
    ),
    "changes of a topic made anew are older": broken(
        "recreated", (*TYPED_FILE, "writer 0 appends", *CHANGES), 0, typed=True, keyed=True
    ),
    "a deletion is compared with its own note": broken(
        "settings",
        OLDER_CHANGE,
        0,
        logs=("rz",),
        typed=True,
        keyed=True,
        replay=True,
        settings=TWO_DECODINGS,
    ),
    "deletions are not noted": replace(
        broken(
            "settings",
            OLDER_CHANGE,
            0,
            logs=("xd",),
            typed=True,
            keyed=True,
            replay=True,
            settings=TWO_DECODINGS,
        ),
        mutated_setup=True,
    ),
    "deletions are noted after the changes are applied": replace(
        broken(
            "settings,crash",
            (*BAD_RECORDS_LANDED, *CHANGES, "writer 0 crashes", *REPLAY_ORDERED),
            0,
            faults=3,
            logs=("xd",),
            typed=True,
            keyed=True,
            replay=True,
            settings=TWO_DECODINGS,
        ),
        mutated_setup=True,
    ),
    "rows are erased before their places are noted": broken(
        "", (*ONE_FILE, *LANDED, "an erasure is ordered"), 0, faults=0, erase=True
    ),
    "an erasure does not wait for what has not landed": broken(
        "", (*STAMPED, "an erasure is ordered"), 0, faults=0, erase=True
    ),
    "a stamp does not say that the table begins before a portion": broken(
        "crash",
        (*STAMPED, "a back-fill is ordered"),
        0,
        logs=("rrr",),
        from_latest=True,
        backfill=True,
    ),
    "what a table has is back-filled": broken(
        "",
        (*STAMPED, *STARTED, "a record is written", *ANNOUNCED, *LANDED, "a back-fill is ordered"),
        0,
        faults=0,
        produce=1,
        from_latest=True,
        backfill=True,
    ),
    "bad records of a portion that did not land are not left out": broken(
        "crash",
        (*TYPED_STAMPED, "a back-fill is ordered"),
        0,
        logs=("x",),
        typed=True,
        from_latest=True,
        backfill=True,
    ),
    "a table begins with bad records that landed alone": broken(
        "crash",
        (*TYPED_STAMPED, "a back-fill is ordered"),
        0,
        logs=("xr",),
        typed=True,
        from_latest=True,
        backfill=True,
    ),
    "a topic that was recreated is back-filled": broken(
        "recreated",
        (*STAMPED, "a back-fill is ordered"),
        0,
        logs=("rr",),
        from_latest=True,
        backfill=True,
    ),
    "too many bad records land": broken(
        "", TYPED_FILE, 0, faults=0, logs=("rx",), typed=True, bad_share=0.0
    ),
    "an exception of one value is one of its file": broken(
        "", STARTED, 1, faults=0, logs=("rx",), typed=True
    ),
    "an exception makes all values bad": broken("", faults=0, logs=("rx",), typed=True),
    "announcements of another table are taken": broken("", TWO_STAMPED, faults=0, targets=2),
}
"""Mutation -> a scenario in which it must lead to a violation."""

UNDETECTED_MUTATIONS: Mapping[str, Scenario] = {
    "a conflict is a claim": replace(small("twice,altered", 2, CONFLICT), mutated_setup=True),
    "landing topic ids are ignored": small("crash,landing recreated", 2, LANDED),
    "begins are not stamped": broken("crash", CLAIMED, from_latest=True, produce=1),
}
"""Mutation -> a scenario without a violation: other rules are sufficient there."""
