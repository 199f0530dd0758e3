"""The sample whose values `binwright audit` compares."""

import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from binwright.consumer.decide.new_columns import ADDED
from binwright.consumer.stage.parquet import SCHEMA
from binwright.inspect.topic_extents import Range
from binwright.inspect.values import RUNS, landed_by_deltalake, sample
from binwright.protocol.errors import LakeUnavailable, SettingsError, UserError
from binwright.tables.columns import parse_columns

BOUNDS = st.dictionaries(
    st.integers(0, 9),
    st.tuples(st.integers(0, 1_000), st.integers(0, 5_000)).map(lambda p: (p[0], sum(p))),
    min_size=1,
)


@given(BOUNDS, st.integers(1, 5_000), st.integers())
def test_each_partition_has_its_share_and_no_offset_twice(
    bounds: dict[int, tuple[int, int]], wanted: int, seed: int
) -> None:
    share = max(wanted // len(bounds), 1)
    for partition, runs in sample(bounds, wanted, random.Random(seed)).items():
        start, end = bounds[partition]
        offsets = [n for run in runs for n in range(run.first, run.last + 1)]
        assert offsets == sorted({*offsets})
        assert all(start <= n < end for n in offsets)
        count = min(share, RUNS)
        assert len(offsets) == min(share // count * count, end - start) or end - start <= share


def test_another_run_draws_other_records() -> None:
    drawn = {str(sample({0: (0, 10**6)}, 100, random.Random(seed))) for seed in range(20)}
    assert len(drawn) == 20


# --- tables that deltalake reads ------------------------------------------------------------------

WANTED = {0: [Range(0, 1)], 3: [Range(5, 5)]}
COLUMNS = parse_columns("Id BIGINT, later INT")


def place(partition: int, offset: int, topic: str = "t") -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "offset": offset, "key": b"k"}


PLACES = [place(0, 0), place(0, 1), place(0, 2), place(3, 5), place(3, 5, "another")]


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> str:
    write_deltalake(path, pa.Table.from_pylist(rows, schema))
    return str(path)


def test_rows_and_bad_records_of_a_sample_are_those_of_the_topic(tmp_path: Path) -> None:
    kafka = pa.field("_kafka", pa.struct([f for f in SCHEMA if f.name != "value"]))
    rows = [{"_kafka": each, "id": each["offset"] * 10} for each in PLACES]
    path = write(tmp_path / "t", rows, pa.schema([kafka, pa.field("id", pa.int64())]))
    bad = [{"_kafka": place(0, 1), "value": b"no"}]
    write(tmp_path / "t__bad", bad, pa.schema([kafka, pa.field("value", pa.binary())]))

    landed, faults, _ = landed_by_deltalake(path, "t", COLUMNS, WANTED)
    assert {at: [row["row"] for row in each] for at, each in landed.items()} == {
        (0, 0): [{"Id": 0}],
        (0, 1): [{"Id": 10}],
        (3, 5): [{"Id": 50}],
    }
    assert {at: [row["value"] for row in each] for at, each in faults.items()} == {(0, 1): [b"no"]}
    assert landed[3, 5][0]["key"] == b"k"


def test_a_field_is_the_same_in_its_column_and_in_the_rest(tmp_path: Path) -> None:
    kafka = pa.field("_kafka", pa.struct([f for f in SCHEMA if f.name != "value"]))
    names = {"id": ADDED, "_rest": "", "x": ADDED, "own": "of a person"}
    others = [pa.field(n, pa.string(), metadata={"comment": c}) for n, c in names.items()]
    values = [{"_rest": '{"x": "1", "b": 2}'}, {"x": "1", "_rest": '{"b": 2}'}, {"own": "z"}]
    rows = [{"_kafka": p, **v} for p, v in zip([*PLACES[:2], PLACES[3]], values, strict=True)]
    path = write(tmp_path / "t", rows, pa.schema([kafka, *others]))

    columns = parse_columns("id STRING, _rest STRING")
    landed, *_ = landed_by_deltalake(path, "t", columns, WANTED)
    whole = {"id": None, "_rest": [["b", 2], ["x", "1"]]}
    assert [each[0]["row"] for _, each in sorted(landed.items())] == [
        whole, whole, {"id": None, "_rest": None}
    ]  # fmt: skip


def test_raw_rows_of_a_sample_have_their_value(tmp_path: Path) -> None:
    path = write(tmp_path / "t", [each | {"value": b"v"} for each in PLACES], SCHEMA)
    landed, faults, _ = landed_by_deltalake(path, "t", None, WANTED)
    assert {at: [row["row"] for row in each] for at, each in landed.items()} == {
        at: [{"value": b"v"}] for at in ((0, 0), (0, 1), (3, 5))
    }
    assert (landed_by_deltalake(path, "t", None, {}), faults) == (({}, {}, {}), {})


def test_erased_places_are_those_of_this_very_table(tmp_path: Path) -> None:
    path = write(tmp_path / "t", [PLACES[0] | {"value": b"v"}], SCHEMA)
    ids = (DeltaTable(path).metadata().id, DeltaTable(path).metadata().id, "earlier")
    noted = [each | {"table_id": id_} for each, id_ in zip(PLACES[1:4], ids, strict=True)]
    write(tmp_path / "t__erased", noted, SCHEMA.append(pa.field("table_id", pa.string())))
    _, _, erased = landed_by_deltalake(path, "t", None, WANTED)
    assert {at: len(each) for at, each in erased.items()} == {(0, 1): 1, (3, 5): 0}


def test_a_table_that_deltalake_does_not_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t", [each | {"value": b"v"} for each in PLACES], SCHEMA)
    with pytest.raises(UserError, match="no table at"):
        landed_by_deltalake(str(tmp_path / "none"), "t", None, WANTED)
    with pytest.raises(UserError, match="raw records"):
        landed_by_deltalake(path, "t", COLUMNS, WANTED)
    with pytest.raises(UserError, match="VARIANT"):
        landed_by_deltalake(path, "t", parse_columns("v VARIANT"), WANTED)
    for file in Path(path).glob("*.parquet"):
        file.unlink()
    with pytest.raises(LakeUnavailable, match="does not read"):
        landed_by_deltalake(path, "t", None, WANTED)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SettingsError, match="pip install deltalake"):
        landed_by_deltalake(path, "t", None, WANTED)
