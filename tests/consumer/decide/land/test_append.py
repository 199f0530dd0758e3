"""How a batch lands: what is asked, in which order, and what follows each outcome."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from binwright.consumer.decide.land import append
from binwright.consumer.decide.land.append import GROW_S, REREAD_S, BatchCommit
from binwright.consumer.decide.land.states import (
    AddColumns,
    AddFiles,
    Append,
    AppendBad,
    AppendRequest,
    AppendRows,
    BadOffsetsFound,
    CheckLease,
    ColumnsRead,
    CommitStamp,
    Committed,
    Conflict,
    Done,
    FilesFound,
    FindBadOffsets,
    FindLowestBad,
    FindReadable,
    FootersRead,
    KafkaState,
    LeaseGone,
    LowestBadFound,
    MergeRows,
    NoteDeleted,
    Outcome,
    PublishColumns,
    QueryKafka,
    ReadColumns,
    ReadFooters,
    Refused,
    Unclear,
    Unreadable,
    WriterConfig,
)
from binwright.consumer.decide.new_columns import ADDED, MOST_ADDED
from binwright.protocol.log_events import Log
from binwright.protocol.model import TopicPartition
from binwright.tables.columns import Column, Columns, Simple, parse_columns, parse_row
from binwright.tables.operations import BACKFILL, REPLAY
from binwright.tables.ports import Batch, ColumnsThere, FileSlice, Footer, NotInPlace

from .scene import CONFIG, ID, TABLE, TOPIC, part, staged, topic_state

COLUMNS, MORE = parse_columns("id BIGINT"), parse_columns("id BIGINT, x INT")
OTHER = parse_columns("id STRING")
LEASE, STAMP, NUMBER = "lease", "stamp", 7
WALL_MS = 1_000
File = tuple[FileSlice, Footer]


def file(
    name: str = "a",
    first: int = 0,
    end: int = 4,
    *,
    bad: int = 0,
    skipped: int = 0,
    columns: Columns | None = COLUMNS,
    whole: bool = True,
    topic_id: str | None = ID,
    decoded_by: str = "",
    masked_by: str = "",
    proposed: Columns = (),
    newest_ms: int | None = None,
) -> File:
    """Return a staged file, and what its footer says."""
    ranges = {0: (first, end)}
    message = staged(name, ranges, topic_id=topic_id)
    footer = Footer(
        topic_id,
        end - first - skipped,
        ranges if whole else {0: (0, end + 10)},
        columns=columns,
        bad=bad,
        skipped=skipped,
        fault="its first bad record" if bad else "",
        decoded_by=decoded_by,
        masked_by=masked_by,
        newest_ms=newest_ms,
        proposed=proposed,
    )
    announced = message if whole else None
    return FileSlice(name, ranges, whole, 10, TOPIC, announced), footer


Reply = Outcome | Callable[[AppendRequest], Outcome]


class Table:
    """A table whose replies a test gives; whatever it does not give succeeds."""

    def __init__(self, config: WriterConfig = CONFIG, columns: Columns | None = COLUMNS) -> None:
        self.config = replace(config, table=replace(TABLE, columns=columns))
        self.known = append.knowledge_at_first(self.config)
        self.replies: dict[type[AppendRequest], list[Reply]] = {}
        self.footers: dict[str, Footer] = {}
        self.there = ColumnsThere(frozenset(), ())
        self.kafka: Outcome = topic_state({0: (0, 1_000)})
        self.asked: list[AppendRequest] = []
        self.logs: list[Log] = []
        self.now = 0.0

    def next_replies(self, kind: type[AppendRequest], *replies: Reply) -> None:
        self.replies[kind] = [*replies]

    def land(
        self,
        *files: File,
        lease: str = LEASE,
        committed: Mapping[TopicPartition, int] | None = None,
        late: bool = False,
        work: str = "",
    ) -> Outcome:
        """Land these files; return the verdict."""
        self.footers, self.asked = {slice_.file: footer for slice_, footer in files}, []
        rows = sum(end - first for slice_, _ in files for first, end in slice_.ranges.values())
        batch = Batch(tuple(slice_ for slice_, _ in files), rows=rows, work=work)
        request = Append(batch, lease, NUMBER, STAMP, late)
        commit = BatchCommit(request, self.known, self.config, committed or {})
        wanted: AppendRequest | None = commit.begin()
        while wanted is not None:
            self.asked.append(wanted)
            wanted = commit.apply_outcome(self._reply(wanted), self.now)
        self.known, self.logs = commit.known, [*self.logs, *commit.logs]
        assert commit.verdict is not None
        return commit.verdict

    def _reply(self, request: AppendRequest) -> Outcome:
        if given := self.replies.get(type(request)):
            reply = given.pop(0)
            return reply(request) if callable(reply) else reply
        match request:
            case ReadFooters():
                return FootersRead(self.footers, WALL_MS)
            case ReadColumns():
                return ColumnsRead(self.there)
            case QueryKafka():
                return self.kafka
            case FindBadOffsets() | FindLowestBad():
                of_all = isinstance(request, FindBadOffsets)
                return BadOffsetsFound({}) if of_all else LowestBadFound({})
            case FindReadable(files=files):
                return FilesFound(files)
            case (
                AppendBad()
                | AddFiles()
                | AppendRows()
                | NoteDeleted()
                | MergeRows()
                | CommitStamp()
            ):
                return Committed()
            case _:
                return Done()

    def kinds(self) -> list[type[AppendRequest]]:
        """Return what was asked, without what comes first each time."""
        assert self.asked[:1] == [CheckLease(LEASE)]
        assert [type(request) for request in self.asked[1:2]] in ([], [ReadFooters])
        return [type(request) for request in self.asked[2:]]

    def writes(self) -> list[type[AppendRequest]]:
        """Return what was written, in order."""
        writes = AppendBad | AddFiles | AppendRows | NoteDeleted | MergeRows | CommitStamp
        return [type(request) for request in self.asked if isinstance(request, writes)]

    def request(self, kind: type[AppendRequest]) -> AppendRequest:
        (request,) = (each for each in self.asked if isinstance(each, kind))
        return request


# --- what lands in which order -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "writes"),
    [
        ([], [CommitStamp]),
        ([file()], [AppendRows]),
        ([file(bad=1)], [AppendBad, AppendRows]),
        ([file(bad=4)], [AppendBad, CommitStamp]),
        ([file(skipped=4)], [CommitStamp]),
        ([file(whole=False)], [AppendRows, CommitStamp]),
        ([file(bad=1, whole=False)], [AppendBad, AppendRows, CommitStamp]),
        ([file(bad=4), file("b", 4, 8)], [AppendBad, AppendRows]),
    ],
    ids=["stamp", "rows", "some bad", "all bad", "skipped", "part", "part, bad", "two files"],
)
def test_bad_records_land_before_rows_and_the_stamp_last(
    files: list[File], writes: list[type[AppendRequest]]
) -> None:
    table = Table()
    bad = sum(footer.bad for _, footer in files)
    skipped = sum(footer.skipped for _, footer in files)
    assert table.land(*files) == Committed(bad, skipped)
    assert table.writes() == writes


@pytest.mark.parametrize("whole", [True, False])
def test_raw_records_land_in_one_commit(*, whole: bool) -> None:
    table = Table(columns=None)
    assert table.land(file(columns=None, whole=whole)) == Committed()
    assert table.kinds() == [AppendRows]


def test_a_stamp_alone_asks_for_nothing_of_files() -> None:
    table = Table(replace(CONFIG, fixed=COLUMNS))
    table.land()
    assert table.asked[2:] == [CommitStamp(LEASE, NUMBER, STAMP)]


def test_nothing_lands_once_the_lease_is_gone() -> None:
    table = Table()
    table.next_replies(CheckLease, LeaseGone())
    assert table.land(file()) == LeaseGone()
    assert table.asked == [CheckLease(LEASE)]


WITHOUT_ROWS = [Conflict("first"), Unclear("no reply"), Refused("no")]


@pytest.mark.parametrize("outcome", WITHOUT_ROWS, ids=lambda each: type(each).__name__)
def test_rows_wait_for_their_bad_records(outcome: Outcome) -> None:
    table = Table()
    table.next_replies(AppendBad, outcome)
    assert table.land(file(bad=1)) == outcome
    assert table.writes() == [AppendBad]


@pytest.mark.parametrize(
    "outcome",
    [*WITHOUT_ROWS, Unreadable(frozenset(), "gone")],
    ids=lambda each: type(each).__name__,
)
def test_a_stamp_behind_rows_that_does_not_land_leaves_them_unclear(
    outcome: Unclear | Conflict | Refused | Unreadable,
) -> None:
    table = Table()
    table.next_replies(CommitStamp, outcome)
    verdict = table.land(file(whole=False))
    assert isinstance(verdict, Unclear)
    assert verdict.reason.endswith(outcome.reason)


def test_a_lease_that_is_gone_behind_rows_is_another_writers_claim() -> None:
    table = Table()
    table.next_replies(CommitStamp, Unreadable(frozenset(), "gone"))
    table.next_replies(CheckLease, Done(), LeaseGone())
    assert table.land(file(whole=False)) == LeaseGone()


# --- files ---------------------------------------------------------------------------------------


def not_as_announced() -> Mapping[str, tuple[FileSlice, Footer | None]]:
    slice_, footer = file()
    part_, inside = file(whole=False)
    return {
        "gone": (slice_, None),
        "other rows": (slice_, replace(footer, rows=3)),
        "other ranges": (replace(slice_, announced=None), replace(footer, ranges={0: (0, 9)})),
        "another topic": (slice_, replace(footer, topic_id="id-2")),
        "a cut": (slice_, replace(footer, cut=frozenset({0}))),
        "a part begins before": (part_, replace(inside, ranges={0: (1, 9)})),
        "a part ends behind": (part_, replace(inside, ranges={0: (0, 3)})),
        "a part of another partition": (part_, replace(inside, ranges={1: (0, 9)})),
    }


@pytest.mark.parametrize("case", not_as_announced())
def test_files_that_are_not_as_announced_do_not_land(case: str) -> None:
    slice_, footer = not_as_announced()[case]
    table = Table()
    footers = {} if footer is None else {slice_.file: footer}
    table.next_replies(ReadFooters, FootersRead(footers, WALL_MS))
    verdict = table.land((slice_, Footer(ID, 0, {})), file("b", 4, 8))
    assert isinstance(verdict, Unreadable)
    assert slice_.file in verdict.files
    assert table.kinds() == []


@pytest.mark.parametrize(
    ("suspected", "readable", "lost"),
    [
        (frozenset("a"), [FilesFound([])], {"a"}),
        (frozenset("x"), [FilesFound([]), FilesFound(["a"])], {"b"}),
        (frozenset("a"), [FilesFound(["a"]), FilesFound(["a", "b"])], None),
        (frozenset("a"), [Unclear("no reply")], None),
        (frozenset(), [FilesFound([]), Unclear("no reply")], None),
    ],
)
def test_files_that_a_write_cannot_read_are_looked_for(
    suspected: frozenset[str], readable: list[Reply], lost: set[str] | None
) -> None:
    table = Table()
    table.next_replies(AppendRows, Unreadable(suspected, "torn"))
    table.next_replies(FindReadable, *readable)
    wanted = Refused("torn") if lost is None else Unreadable(frozenset(lost), "torn")
    assert table.land(file(), file("b", 4, 8)) == wanted


def test_files_that_another_writer_deleted_are_not_read_again() -> None:
    table = Table()
    table.next_replies(AppendRows, Unreadable(frozenset("a"), "gone"))
    table.next_replies(CheckLease, Done(), LeaseGone())
    assert table.land(file()) == LeaseGone()
    assert FindReadable not in table.kinds()


def test_the_newest_record_is_that_of_all_files_and_not_ahead_of_the_clock() -> None:
    table = Table()
    assert table.land(file(newest_ms=3), file("b", 4, 8, newest_ms=2)) == Committed(newest_ms=3)
    assert table.land(file("c", 8, 9, newest_ms=WALL_MS + 1)) == Committed(newest_ms=WALL_MS)


@pytest.mark.parametrize("kind", [CheckLease, AddColumns, QueryKafka, AppendRows])
def test_an_outcome_of_another_request_is_an_error(kind: type[AppendRequest]) -> None:
    table = Table(replace(CONFIG, bad_share=0.0))
    table.next_replies(kind, FilesFound([]))
    bad = int(kind is QueryKafka)
    with pytest.raises(ValueError, match="is not an outcome"):
        table.land(file(columns=MORE, bad=bad))


# --- columns of files ----------------------------------------------------------------------------


def test_a_table_is_asked_once_for_columns_that_it_takes() -> None:
    table = Table()
    for n in range(2):
        table.land(file(f"a{n}", n, n + 1, columns=MORE))
        adds = [request for request in table.asked if isinstance(request, AddColumns)]
        assert adds == ([] if n else [AddColumns(MORE)])
    rows = table.request(AppendRows)
    assert isinstance(rows, AppendRows)
    assert rows.batch.columns == MORE


def test_files_whose_columns_the_table_does_not_take_are_read_again_and_never_land() -> None:
    table = Table()
    for n in range(2):
        table.next_replies(AddColumns, Refused("another type"))
        verdict = table.land(file("a", columns=OTHER), file("b", 4, 8))
        assert verdict == Unreadable(frozenset("a"), "another type"), n
        assert table.writes() == []


@pytest.mark.parametrize("outcome", [Conflict("first"), Unclear("no reply")])
def test_whether_a_table_takes_columns_may_be_unclear(outcome: Outcome) -> None:
    table = Table()
    table.next_replies(AddColumns, outcome)
    assert table.land(file(columns=MORE)) == outcome
    assert table.land(file(columns=MORE)) == Committed()
    assert AddColumns in table.kinds()


@pytest.mark.parametrize(("of_table", "of_file"), [(None, COLUMNS), (COLUMNS, None)])
def test_raw_records_and_columns_do_not_mix(
    of_table: Columns | None, of_file: Columns | None
) -> None:
    table = Table(columns=of_table)
    verdict = table.land(file(columns=of_file))
    assert isinstance(verdict, Unreadable)
    assert table.kinds() == [QueryKafka]


def test_columns_of_a_registry_are_read_again_once_in_a_while() -> None:
    """Its schema may give the same ones again: then the table is refused until it is mended."""
    table, verdicts = Table(columns=()), []
    for now in (0.0, REREAD_S - 1, REREAD_S):
        table.now = now
        table.next_replies(AddColumns, Refused("another type"))
        verdicts.append(type(table.land(file(columns=OTHER))))
    assert verdicts == [Unreadable, Refused, Unreadable]


def test_files_of_types_of_which_none_holds_the_other_do_not_land_together() -> None:
    table = Table()
    files = file("a"), file("b", 4, 8, columns=OTHER)
    verdict = table.land(*files)
    assert isinstance(verdict, Unreadable)
    assert verdict.files == {"a"}
    assert table.land(files[1]) == Committed()


# --- reading again -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kafka",
    [
        topic_state({0: (3, 9)}),
        topic_state({1: (0, 9)}),
        topic_state({0: (0, 9)}, topic_id="id-2"),
        KafkaState({}, {part(0): (0, 9)}, None),
    ],
    ids=["deleted", "without a leader", "made anew", "no topic"],
)
def test_records_are_read_again_only_if_kafka_has_all_of_them(kafka: KafkaState) -> None:
    table = Table()
    table.kafka = kafka
    table.next_replies(AddColumns, Refused("another type"))
    verdict = table.land(file("a", 2, 4, columns=OTHER), file("b", 4, 8, columns=OTHER))
    assert isinstance(verdict, Refused)
    assert table.request(QueryKafka) == QueryKafka(frozenset({TOPIC}), begins_of=frozenset())


@pytest.mark.parametrize(
    ("kafka", "why"),
    [
        (Unclear("away"), "away"),
        (KafkaState({}, {}, None, unknown=frozenset({TOPIC})), "not describe all of them"),
        (replace(topic_state({}), leaderless=frozenset({part(0)})), "not describe all of them"),
    ],
    ids=["away", "unknown topic", "no leader"],
)
def test_while_it_is_not_known_what_kafka_has_no_file_is_given_up(
    kafka: KafkaState | Unclear, why: str
) -> None:
    table = Table()
    table.kafka = kafka
    verdict = table.land(file(columns=None))
    assert isinstance(verdict, Refused)
    assert verdict.reason.endswith(why)
    assert "is not known" in verdict.reason


# --- masks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_what_was_staged_under_another_mask_never_lands(columns: Columns | None) -> None:
    """An older version's file, which names none, is plain (†)."""
    table = Table(replace(CONFIG, masking="mail sha256"), columns)
    files = [
        file(name, number, number + 1, columns=columns, masked_by=mask)
        for number, (name, mask) in enumerate({"a": "mail sha256", "b": "", "c": "x"}.items())
    ]
    again = table.land(*files)
    assert isinstance(again, Unreadable)
    assert again.files == {"b", "c"}
    assert table.writes() == []
    table.now = REREAD_S - 1
    assert isinstance(table.land(*files), Refused)
    assert table.writes() == []
    assert table.land(files[0]) == Committed()
    assert Table(columns=columns).land(*files) == Committed()


# --- bad_share -----------------------------------------------------------------------------------


def test_bad_records_beyond_the_share_are_read_again_once_in_a_while() -> None:
    table, verdicts = Table(replace(CONFIG, bad_share=0.0)), []
    assert table.land(file()) == Committed()
    for now in (0.0, REREAD_S - 1, REREAD_S):
        table.now = now
        verdicts.append(table.land(file("b", 4, 8), file("c", 8, 12, bad=3)))
        assert table.writes() == []
    reason = (
        "3 of the newest 1000 records are bad, and bad_share allows 0 of them, as "
        "its first bad record"
    )
    again = Unreadable(frozenset("c"), reason)
    assert verdicts == [again, Refused(reason), again]
    assert table.land(file("b", 4, 8)) == Committed()


def test_bad_records_of_other_settings_are_read_again_at_once() -> None:
    table = Table(replace(CONFIG, bad_share=0.0, decoding="now"))
    files = file("a", bad=1, decoded_by="before"), file("b", 4, 8, bad=1, decoded_by="now")
    for _ in range(2):
        verdict = table.land(*files)
        assert isinstance(verdict, Unreadable)
        assert verdict.files == {"a"}


def test_the_share_counts_from_commit_to_commit_what_has_landed() -> None:
    table = Table(replace(CONFIG, bad_share=0.002))
    assert table.land(file("a", 0, 9, bad=2)) == Committed(2)
    table.next_replies(AppendRows, Conflict())
    assert table.land(file("b", 9, 12)) == Conflict()
    assert table.land(file("b", 9, 12)) == Committed()
    assert isinstance(table.land(file("c", 12, 15, bad=1)), Unreadable)


# --- bad records that have landed before ---------------------------------------------------------


def test_bad_records_are_looked_for_once_a_claim_from_what_is_committed() -> None:
    table, committed = Table(), {part(0): 10, part(1): 4}
    table.land(file("a", 10, 12), committed=committed)
    assert table.request(FindBadOffsets) == FindBadOffsets({part(0): 10, part(1): 4})
    table.land(file("b", 12, 14), committed=committed)
    assert FindBadOffsets not in table.kinds()
    table.land(file("c", 5, 6), committed=committed)  # behind a cut
    assert table.request(FindBadOffsets) == FindBadOffsets({part(0): 5, part(1): 4})


def test_a_new_claim_looks_for_bad_records_again() -> None:
    """Another writer may have landed some since, and no rows with them."""
    table = Table()
    table.land(file())
    table.land(file("b", 4, 8), lease="another")
    assert any(isinstance(request, FindBadOffsets) for request in table.asked)


@pytest.mark.parametrize("write", [AppendBad, AppendRows])
@pytest.mark.parametrize(
    "outcome", [Conflict(), Refused(), Unreadable(frozenset("a"))], ids=lambda o: type(o).__name__
)
def test_after_a_commit_that_did_not_land_whole_bad_records_are_looked_for_again(
    write: type[AppendRequest], outcome: Outcome
) -> None:
    table = Table()
    table.next_replies(write, outcome)
    assert not isinstance(table.land(file(bad=1)), Committed)
    table.land(file(bad=1))
    assert FindBadOffsets in table.kinds()


@pytest.mark.parametrize(
    ("highest", "in_part"),
    [
        ({}, False),
        ({ID: {part(0): 1}}, False),
        ({ID: {part(0): 2}}, True),
        ({"id-2": {part(0): 2}}, False),
        ({ID: {part(1): 2}}, False),
    ],
)
def test_a_batch_from_a_bad_record_on_has_landed_in_part(
    highest: Mapping[str | None, Mapping[TopicPartition, int]], *, in_part: bool
) -> None:
    """Its bad records that are in the table already are left out, whatever they decode to now."""
    table = Table()
    table.next_replies(FindBadOffsets, BadOffsetsFound(highest))
    assert table.land(file("a", 2, 4)) == Committed()
    rows = table.request(AppendRows)
    assert isinstance(rows, AppendRows)
    assert rows.batch.landed_in_part is in_part
    assert rows.batch.topic_ids == {TOPIC: ID}
    assert table.writes() == ([AppendRows, CommitStamp] if in_part else [AppendRows])


@pytest.mark.parametrize("outcome", [Unclear("no reply"), Refused("gone")])
def test_without_the_bad_offsets_nothing_lands(outcome: Outcome) -> None:
    table = Table()
    table.next_replies(FindBadOffsets, outcome)
    assert table.land(file()) == outcome
    assert table.writes() == []


# --- columns for new fields ----------------------------------------------------------------------

GROWING = replace(CONFIG, fixed=COLUMNS)
X, Y = parse_row("x bigint"), parse_row("y string")


def growing() -> Table:
    return Table(GROWING)


def published(table: Table) -> Columns:
    request = table.request(PublishColumns)
    assert isinstance(request, PublishColumns)
    return request.columns


def test_a_table_gets_the_columns_that_files_propose_and_publishes_them() -> None:
    table = growing()
    table.there = ColumnsThere(frozenset({"id", "y"}), Y)
    table.land(file(proposed=(*X, *Y)))
    assert table.kinds()[:3] == [ReadColumns, AddColumns, PublishColumns]
    assert table.request(AddColumns) == AddColumns(X, ADDED)
    assert published(table) == (*Y, *X)
    assert [log.event for log in table.logs] == ["table.columns_added"]


def test_a_table_is_looked_at_again_for_other_columns_or_after_a_while() -> None:
    table, looks = growing(), []
    for now, proposed in ((0.0, X), (1.0, X), (1.0, Y), (2.0, X), (GROW_S + 2, X)):
        table.now = now
        table.land(file(proposed=proposed))
        looks.append(ReadColumns in table.kinds())
    assert looks == [True, False, True, False, True]


def test_a_table_of_enough_columns_gets_no_more_and_logs_that_once() -> None:
    table = growing()
    full = tuple(Column(f"c{n:03}", Simple("bigint")) for n in range(MOST_ADDED))
    table.there = ColumnsThere(frozenset(column.name for column in full), full)
    table.land(file(proposed=X))
    assert published(table) == full
    table.land(file("b", 4, 8, proposed=Y))
    assert ReadColumns not in table.kinds()
    table.now = GROW_S
    table.land(file("c", 8, 9, proposed=Y))
    assert ReadColumns in table.kinds()
    assert [log.event for log in table.logs] == ["table.columns_full"]


def test_columns_that_a_table_refuses_are_tried_singly_and_then_never_again() -> None:
    table = growing()
    table.next_replies(AddColumns, Refused("no"), Refused("no x"), Done())
    assert table.land(file(proposed=(*X, *Y))) == Committed()
    assert published(table) == Y
    logged = ["table.column_refused", "table.columns_added"]
    assert [log.event for log in table.logs] == logged
    table.now = GROW_S
    table.there = ColumnsThere(frozenset("y"), Y)
    table.land(file("b", 4, 8, proposed=(*X, *Y)))
    assert table.kinds()[:2] == [ReadColumns, PublishColumns]


@pytest.mark.parametrize("kind", [ReadColumns, AddColumns, PublishColumns])
def test_while_columns_are_unclear_nothing_lands_and_they_are_looked_at_again(
    kind: type[AppendRequest],
) -> None:
    table = growing()
    table.next_replies(kind, Unclear("no reply"))
    assert table.land(file(proposed=X)) == Unclear("no reply")
    assert table.writes() == []
    assert table.land(file(proposed=X)) == Committed()
    assert ReadColumns in table.kinds()


@pytest.mark.parametrize("config", [CONFIG, GROWING])
def test_a_table_with_columns_for_new_fields_that_refuses_is_looked_at_again(
    config: WriterConfig,
) -> None:
    """A person may have altered a column that no settings name."""
    table = Table(config)
    table.land(file(columns=MORE, proposed=X))
    table.next_replies(AppendRows, Refused("another type"))
    assert table.land(file("b", 4, 8, columns=MORE, proposed=X)) == Refused("another type")
    table.land(file("b", 4, 8, columns=MORE, proposed=X))
    looks = [kind for kind in table.kinds() if kind in {ReadColumns, AddColumns}]
    assert looks == ([] if config is CONFIG else [ReadColumns, AddColumns])


# --- in place ----------------------------------------------------------------------------------


IN_PLACE = replace(CONFIG, in_place=True)
NO_TABLE = NotInPlace("the table has constraints", of_table=True)
NO_FILE = NotInPlace("a: column id is string", of_table=False)


def laid_out(name: str = "a", first: int = 0, end: int = 4, **how: Any) -> File:
    """Return a file whose rows are laid out as the table's."""
    slice_, footer = file(name, first, end, **how)
    return slice_, replace(footer, as_table=True)


@pytest.mark.parametrize("columns", [COLUMNS, None])
def test_files_are_committed_as_they_are(columns: Columns | None) -> None:
    table = Table(IN_PLACE, columns)
    files = [laid_out("a", columns=columns), laid_out("b", 4, 6, columns=columns)]
    assert table.land(*files) == Committed()
    assert table.writes() == [AddFiles]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([laid_out(), file("b", 4, 6)], [AppendRows]),
        ([laid_out(), file("b", 4, 6, bad=1)], [AppendBad, AppendRows]),
        ([laid_out(whole=False, bad=1)], [AppendBad, AppendRows, CommitStamp]),
        ([laid_out(whole=False)], [AppendRows, CommitStamp]),
        ([laid_out(skipped=4)], [CommitStamp]),
    ],
    ids=["of another layout", "bad records", "bad records of a part", "a part", "no rows"],
)
def test_rows_of_other_files_are_appended(
    files: list[File], expected: list[type[AppendRequest]]
) -> None:
    table = Table(IN_PLACE)
    assert isinstance(table.land(*files), Committed)
    assert table.writes() == expected


@pytest.mark.parametrize(("bad", "rows"), [(1, [AddFiles]), (4, [CommitStamp])])
def test_bad_records_beside_a_file_land_before_it(bad: int, rows: list[Any]) -> None:
    table = Table(IN_PLACE)
    assert table.land(laid_out(bad=bad), laid_out("b", 4, 4)) == Committed(bad=bad)
    assert table.writes() == [AppendBad, *rows]
    batch = next(each.batch for each in table.asked if isinstance(each, AppendBad))
    assert (batch.as_table, batch.beside) == (frozenset("ab"), frozenset("a"))


def test_rows_are_appended_where_bad_records_of_theirs_may_have_landed() -> None:
    table = Table(IN_PLACE)
    p = part(0)
    table.next_replies(FindBadOffsets, BadOffsetsFound({ID: {p: 2}}))
    table.land(laid_out(), committed={p: 0})
    assert table.writes() == [AppendRows, CommitStamp]


def test_rows_are_appended_by_choice() -> None:
    table = Table(replace(IN_PLACE, in_place=False))
    table.land(laid_out())
    assert table.writes() == [AppendRows]


@pytest.mark.parametrize("why", [NO_TABLE, NO_FILE])
def test_rows_are_appended_for_a_while_where_files_are_not_taken(why: NotInPlace) -> None:
    table = Table(IN_PLACE)
    table.next_replies(AddFiles, why)
    assert table.land(laid_out()) == Committed()
    assert table.writes() == [AddFiles, AppendRows]
    assert table.logs == [Log(append.TABLE_APPENDED, {"reason": why.reason})]
    table.now += append.APPEND_S[why.of_table] - 1
    table.land(laid_out("b", 4, 6))
    assert table.writes() == [AppendRows]
    table.now += 1
    table.next_replies(AddFiles, why)
    table.land(laid_out("c", 6, 8))
    assert table.writes() == [AddFiles, AppendRows]
    assert len(table.logs) == 1, "the reason is the same"
    table.now += append.APPEND_S[why.of_table]
    table.land(laid_out("d", 8, 9))
    assert table.writes() == [AddFiles]
    assert table.logs[1:] == [Log(append.TABLE_IN_PLACE, {})]


def test_a_file_that_is_gone_is_one_of_the_batch() -> None:
    table = Table(IN_PLACE)
    table.next_replies(AddFiles, Unreadable(frozenset({"a"}), "missing: a"))
    table.next_replies(FindReadable, FilesFound([]))
    assert table.land(laid_out()) == Unreadable(frozenset({"a"}), "missing: a")


def test_a_lease_that_is_gone_ends_the_commit() -> None:
    table = Table(IN_PLACE)
    table.next_replies(AddFiles, Unreadable(frozenset({LEASE}), "the lease is gone"))
    table.next_replies(CheckLease, Done(), LeaseGone())
    assert table.land(laid_out()) == LeaseGone()


MB = 1_000_000


@pytest.mark.parametrize(
    ("sizes", "columns", "in_place"),
    [
        ([MB // 2], None, True),
        ([MB // 8] * 4, None, True),
        ([MB // 30] * 10, None, True),
        ([MB // 30] * 20, None, False),
        ([MB // 200] * 60, COLUMNS, False),
        ([14 * MB] * 8, None, True),
        ([6 * MB] * 8, COLUMNS, True),
        ([40 * MB] * 3, None, True),
        ([], None, True),
    ],
    ids=[
        *("one", "of four consumers", "of ten", "of twenty", "of sixty, decoded"),
        *("a backlog", "a decoded backlog", "large files", "none"),
    ],
)
def test_files_land_in_place_where_that_takes_less_cpu_with_their_compaction(
    sizes: list[int], columns: Columns | None, *, in_place: bool
) -> None:
    slices = tuple(
        FileSlice(f"{n}", {}, whole=True, bytes=size, topic=TOPIC) for n, size in enumerate(sizes)
    )
    assert append.saves_in_place(Batch(slices, columns=columns), 32 * MB) is in_place


def test_many_small_files_are_appended_and_a_few_are_not() -> None:
    table = Table(IN_PLACE)
    many = [laid_out(f"f{n}", n, n + 1) for n in range(40)]
    table.land(*many)
    assert table.writes() == [AppendRows]
    appending = table.known.appending
    assert appending
    assert appending.because == append.MANY_SMALL
    table.land(laid_out("g", 40, 41))
    assert table.writes() == [AddFiles]
    assert table.known.appending is None
    assert not table.logs, "it is no fault"


def test_many_small_files_that_are_late_land_in_place() -> None:
    table = Table(IN_PLACE)
    table.land(*(laid_out(f"f{n}", n, n + 1) for n in range(20)), late=True)
    assert table.writes() == [AddFiles]


# --- a replay ------------------------------------------------------------------------------------


def test_rows_of_bad_records_are_appended_alone_under_the_lease() -> None:
    """They are among the bad records still, so none is looked for there; nor are they new."""
    table = Table(config=replace(CONFIG, bad_share=0.0, in_place=True))
    assert table.land(file(end=2), work=REPLAY) == Committed()
    assert [type(each) for each in table.asked] == [CheckLease, ReadFooters, AppendRows]
    (wanted,) = (each for each in table.asked if isinstance(each, AppendRows))
    assert (wanted.lease, wanted.stamp) == (LEASE, STAMP)
    assert (wanted.batch.columns, wanted.batch.rows, wanted.batch.bad) == (COLUMNS, 2, 0)
    assert not wanted.batch.landed_in_part
    assert table.known.share.counts == append.knowledge_at_first(table.config).share.counts


def test_rows_of_bad_records_do_not_land_without_the_lease() -> None:
    table = Table()
    table.next_replies(CheckLease, LeaseGone())
    assert table.land(file(), work=REPLAY) == LeaseGone()
    table.next_replies(CheckLease, Done(), LeaseGone())
    table.next_replies(AppendRows, Unreadable(frozenset({LEASE})))
    assert table.land(file(), work=REPLAY) == LeaseGone()


# --- a back-fill ---------------------------------------------------------------------------------


def test_bad_records_of_a_portion_are_left_out_if_some_may_have_landed() -> None:
    table = Table(IN_PLACE)
    table.next_replies(FindLowestBad, LowestBadFound({part(0): 7}))
    assert table.land(file(first=4, end=8, bad=1), work=BACKFILL) == Committed(1)
    assert table.kinds() == [FindLowestBad, AppendBad, AppendRows, CommitStamp]
    wanted = table.request(AppendRows)
    assert isinstance(wanted, AppendRows)
    assert wanted.batch.landed_in_part
    assert table.land(laid_out("b", 0, 4), work=BACKFILL) == Committed()
    assert table.kinds() == [AddFiles], "none is below, and that is known"
    table.land(laid_out("c", 0, 4), work=BACKFILL, lease="another")
    assert isinstance(table.asked[2], FindLowestBad), "a new claim looks again"


def test_after_a_commit_that_fails_bad_records_of_portions_are_found_again() -> None:
    table = Table()
    table.next_replies(AppendRows, Conflict())
    assert table.land(file(bad=1), work=BACKFILL) == Conflict()
    table.next_replies(FindLowestBad, LowestBadFound({part(0): 0}))
    table.land(file(bad=1), work=BACKFILL)
    wanted = table.request(AppendRows)
    assert isinstance(wanted, AppendRows)
    assert wanted.batch.landed_in_part


def test_bad_records_of_before_do_not_count_for_what_is_read_today() -> None:
    table = Table(replace(CONFIG, bad_share=0.002))
    before = table.known.share
    assert table.land(file(end=2, bad=2), work=BACKFILL) == Committed(2)
    assert table.known.share == before
    refused = table.land(file(end=3, bad=3), work=BACKFILL)
    assert isinstance(refused, Unreadable)
    assert "bad_share allows" in refused.reason


# --- rows of keys --------------------------------------------------------------------------------


def deleting(name: str = "a", first: int = 0, end: int = 4, *, bad: int = 0) -> File:
    """Return a staged file of which one row deletes."""
    part, footer = file(name, first, end, bad=bad)
    return part, replace(footer, deleted=1)


def keyed() -> Table:
    """Return a table of keys whose files could be committed as they are."""
    table = Table(replace(CONFIG, in_place=True))
    table.config = replace(table.config, table=replace(table.config.table, primary_key=("id",)))
    return table


@pytest.mark.parametrize(
    ("files", "writes"),
    [
        ([], [CommitStamp]),
        ([file()], [MergeRows]),
        ([deleting()], [NoteDeleted, MergeRows]),
        ([file(), deleting("b", 4, 8)], [NoteDeleted, MergeRows]),
        ([deleting(bad=1)], [AppendBad, NoteDeleted, MergeRows]),
        ([file(bad=4)], [AppendBad, CommitStamp]),
        ([file(skipped=4)], [CommitStamp]),
        ([file(bad=4, whole=False)], [AppendBad, MergeRows]),
    ],
    ids=["stamp", "rows", "deleted", "files", "bad", "all bad", "skipped", "part"],
)
def test_changes_are_applied_once_what_they_delete_is_noted(
    files: list[File], writes: list[type[AppendRequest]]
) -> None:
    table = keyed()
    assert isinstance(table.land(*files), Committed)
    assert table.writes() == writes
    for request in table.asked:
        if isinstance(request, MergeRows):
            assert (request.lease, request.number, request.stamp) == (LEASE, NUMBER, STAMP)


def test_changes_of_bad_records_are_applied_with_what_they_delete() -> None:
    """Their file does not say whether they delete."""
    table = keyed()
    assert table.land(file(end=2), work=REPLAY) == Committed()
    assert table.writes() == [NoteDeleted, MergeRows]


@pytest.mark.parametrize("before", ["", "json id BIGINT", "json id BIGINT; upsert id; by lsn"])
def test_what_was_staged_under_other_settings_of_keys_is_never_merged(before: str) -> None:
    """Its tombstones would be rows, and its rows those of any key (†)."""
    table, own = keyed(), "json id BIGINT; upsert id"
    table.config = replace(table.config, decoding=own, keying="; upsert id")
    other = file("b", 4, 8, decoded_by=before)
    again = table.land(file(decoded_by=own), other)
    assert isinstance(again, Unreadable)
    assert again.files == {"b"}
    assert isinstance(table.land(other), Refused)
    assert table.writes() == []
    assert table.land(file(decoded_by="json id BIGINT, v INT; upsert id")) == Committed()


@pytest.mark.parametrize("kind", [NoteDeleted, MergeRows])
@pytest.mark.parametrize("outcome", [Conflict("c"), Unclear("u"), Refused("r")])
def test_changes_that_are_not_committed_have_not_landed(
    kind: type[AppendRequest], outcome: Outcome
) -> None:
    table = keyed()
    table.next_replies(kind, outcome)
    assert table.land(deleting()) == outcome
    assert table.writes()[-1] == kind
