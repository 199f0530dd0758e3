"""Settings of tables of columns."""

from pathlib import Path
from typing import Any

import pytest

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.loading import settings_environment
from binwright.tables.columns import columns_text, parse_columns

ID = parse_columns("id BIGINT")
SCHEMA = '\n {"type": "object", "properties": {"id": {"type": "integer"}, "any": {}}} \n'


def table(columns: str | None = "id BIGINT", **given: Any) -> dict[str, Any]:
    return {"format": "json", "columns": columns, **given}


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        ([table("id BIGINT, id INT", topics=["a"])], r"tables\[0\]\.columns: names id twice"),
        ([table("id THING", topics=["a"])], r"tables\[0\]\.columns: there is no type 'thing'"),
        ([table()], r"tables\[0\]: names neither topics nor topic_patterns"),
        ([table(topics=["a", "a"])], r"tables\[0\]\.topics: named twice: a"),
        ([table(topics=["a"]), table(topics=["a"])], "tables: topics named twice: a"),
        (
            [table(topics=["a"], format="xml")],
            r"tables\[0\]\.format: must be one of 'raw', 'json', 'variant', 'csv', 'avro', 'proto",
        ),
        ([table(topic_patterns=["a["])], r"tables\[0\]\.topic_patterns\[0\]: not a regular exp"),
        ([table('{"a": 1', topics=["a"])], r"tables\[0\]\.columns: a JSON Schema that is no JSON"),
        ([table("{}", topics=["a"])], "columns: a JSON Schema that describes no object with prop"),
        ([table(SCHEMA, topics=["a"], format="avro")], "a JSON Schema, which only JSON has"),
        ([table(topics=["a"], columns_file="x")], r"tables\[0\]: columns and columns_file are set"),
        ([table(topics=["a"], format="string")], r"names columns, and format string has one, `val"),
        ([table(topics=["a"], format="variant")], r"names columns, and format variant has one"),
        ([table(None, topics=["a"], format="csv")], "names no columns, which CSV needs"),
        ([table("a ARRAY<INT>", topics=["a"], format="csv")], "a has parts, and a field of CSV"),
        ([table(topics=["a"], delimiter=";")], "names a delimiter, which only CSV has"),
        ([table(topics=["a"], format="csv", delimiter=";;")], r"tables\[0\]\.delimiter"),
        ([table("a VARIANT", topics=["a"], format="avro")], "VARIANT, which only JSON has"),
        ([table(topics=["a"], subject="b")], r"tables\[0\]: names a subject, which only Avro"),
        ([table(topics=["a"], on_schema_fault="bad")], "on_schema_fault, and no schema of a reg"),
        ([table(topics=["a"], message="M")], r"tables\[0\]: names a message, which only Protobuf"),
        ([table(topics=["a"], format="protobuf", message="a..M")], r"tables\[0\]\.message: "),
        (
            [table(topics=["a"], cluster_by=["id", "ID.x"])],
            r"tables\[0\]: cluster_by, statistics: there is no column ID.x",
        ),
        (
            [table("a STRUCT<b: BOOLEAN>", topics=["a"], statistics=["A.b"])],
            r"statistics: A.b is boolean, which has no order",
        ),
        ([table(topics=["a"], cluster_by=["_kafka.key"])], "there is no column _kafka.key"),
        ([table(topics=["a"], cluster_by=["id", "id"])], r"cluster_by: named twice: id"),
        ([table(topics=["a"], cluster_by=["a."])], r"'a\.' is no column, nor a field"),
        ([table(topics=["a"], cluster_by=[*"abcde"])], r"cluster_by: .*at most 4"),
        (
            [table(None, topics=["a"], format="avro", statistics=["_kafka.headers"])],
            "there is no column _kafka.headers",
        ),
        ([table(topics=["a"])], "a__bad has the name of the table of bad records of a"),
    ],
)
def test_contradictions_are_refused_with_their_place(
    tables: list[dict[str, Any]], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        load_settings(tables=tables, topics=["a", "a__bad"])


def test_text_has_one_column() -> None:
    (entry,) = load_settings(tables=[{"topics": ["a"], "format": "string"}]).tables
    assert entry.parsed == parse_columns("value STRING")


def avro(kind: str = "avro", **registry: Any) -> Any:
    tables = [{"topics": ["a"], "format": kind}]
    return load_settings(tables=tables, registry={"url": "https://registry/api/", **registry})


def test_a_table_of_avro_has_the_columns_of_its_subject() -> None:
    (found,) = avro().tables
    assert (found.parsed, found.subject_of("a")) == ((), "a-value")
    assert avro().tables[0].parsed == ()


def test_a_table_of_protobuf_is_of_one_message_unless_it_names_columns() -> None:
    def entry(**given: Any) -> Any:
        tables = [{"topics": ["a"], "format": "protobuf", **given}]
        return load_settings(tables=tables, registry={"url": "https://registry"}).tables[0]

    assert (entry().message_read, entry(columns="id INT").message_read) == ("", None)
    assert entry(message="shop.Order").message_read == "shop.Order"
    assert entry(message="shop.Order", columns="id INT").message_read == "shop.Order"
    assert entry(message="shop.Order").decoding == "protobuf shop.Order: {topic}-value"
    assert entry(subject="orders").decoding == "protobuf: orders"


def test_a_table_of_named_columns_may_have_a_subject_whose_context_counts() -> None:
    one = {"topics": ["a"], "format": "avro", "columns": "id BIGINT"}
    tables = [one, {**one, "topics": ["b"], "subject": ":.staging:{topic}-value"}]
    plain, other = load_settings(tables=tables, registry={"url": "https://registry"}).tables
    assert other.subject_of("b") == ":.staging:b-value"
    assert not other.by_subject
    assert other.decoding != plain.decoding == "avro: id bigint"


def test_a_json_schema_names_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "orders.json"
    file.write_text(SCHEMA)
    inline = table(SCHEMA, topics=["a"], cluster_by=["any"])
    settings = load_settings(tables=[inline, table(None, topics=["b"], columns_file=file)])
    for entry in settings.tables:
        assert entry.parsed == parse_columns("id BIGINT, any STRING")
        assert columns_text(entry.as_read) == "id bigint, any json"
        assert entry.decoding == "json: id bigint, any json"
    file.unlink()  # consumers on other machines have no such file
    for name, value in settings_environment(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings().tables == settings.tables


def test_any_share_of_bad_records_lands_unless_an_entry_has_less() -> None:
    tables = [{"topics": [topic], "format": "string"} for topic in "ab"]
    less, other = load_settings(tables=[tables[0] | {"bad_share": 0.05}, tables[1]]).tables
    assert (less.bad_share, other.bad_share) == (0.05, 1.0)
    for share in (-0.1, 1.1):
        with pytest.raises(SettingsError, match="bad_share"):
            load_settings(tables=[{"topics": ["a"], "format": "string", "bad_share": share}])


def test_a_table_may_be_clustered_by_its_columns_and_their_place_in_kafka() -> None:
    entry = table(
        "id BIGINT, by STRUCT<`first-name`: STRING>, price DECIMAL(9,2)",
        topics=["a"],
        cluster_by=["ID", "by.`first-name`", "_kafka.timestamp"],
        statistics=["price"],
    )
    subject = {"topics": ["b"], "format": "avro", "cluster_by": ["not.known.yet"]}
    by_name, by_subject = load_settings(
        tables=[entry, subject], registry={"url": "https://registry"}
    ).tables
    assert by_name.cluster_by == ("ID", "by.`first-name`", "_kafka.timestamp")
    assert by_subject.cluster_by == ("not.known.yet",)


def keyed(key: dict[str, Any], **given: Any) -> Any:
    entry = {"topics": ["a"], "format": "json", "columns": "id BIGINT", "key": key, **given}
    return load_settings(tables=[entry], registry={"url": "https://registry"}).tables[0]


@pytest.mark.parametrize(
    ("key", "columns", "decoding"),
    [
        ({"format": "json", "columns": "k INT"}, "struct<k:int>", "json: k int"),
        ({"format": "csv", "columns": "k INT", "delimiter": ";"}, "struct<k:int>", "csv ;: k int"),
        ({"format": "string"}, "string", "string: {topic}-key"),
        ({"format": "variant"}, "variant", "variant: {topic}-key"),
    ],
)
def test_keys_have_a_column_in_front_of_those_of_values(
    key: dict[str, Any], columns: str, decoding: str
) -> None:
    entry = keyed(key)
    assert columns_text(entry.table_columns) == f"_kafka_key {columns}, id bigint"
    assert entry.decoding == f"json: id bigint; key {decoding}"


def test_a_table_whose_keys_are_of_a_subject_has_columns_of_a_registry() -> None:
    entry = keyed({"format": "avro"}, cluster_by=["_kafka_key.not.known", "id"])
    assert (entry.table_columns, entry.known) == ((), ID)
    assert entry.key.subject_of("a") == "a-key"
    assert entry.parts == (entry, entry.key)
    assert keyed({"format": "avro", "subject": "{topic}-k"}).key.subject_of("a") == "a-k"


@pytest.mark.parametrize(
    ("key", "given", "fault"),
    [
        ({"format": "json", "columns": "a VARIANT"}, {}, "of a key, only the whole can be one"),
        ({"format": "csv"}, {}, r"tables\[0\]\.key: names no columns, which CSV needs"),
        ({"format": "string", "message": "M"}, {}, r"key: names a message, which only Protobuf"),
        ({"format": "string", "tombstones": "row"}, {}, r"tables\[0\]\.key\.tombstones"),
        ({"format": "string"}, {"statistics": ["_kafka_key.k"]}, "there is no column _kafka_key.k"),
        ({"format": "string"}, {"columns": "_Kafka_Key INT"}, "_Kafka_Key is the record's key"),
        ({"format": "string"}, {"tombstones": "keep"}, r"tombstones: must be one of 'row', 'skip'"),
    ],
)
def test_keys_are_refused_where_they_cannot_be_meant(
    key: dict[str, Any], given: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        keyed(key, **given)


def test_columns_of_keys_cluster_a_table() -> None:
    entry = keyed({"format": "json", "columns": "k INT"}, cluster_by=["_kafka_key.K"])
    assert entry.cluster_by == ("_kafka_key.K",)


def test_what_becomes_of_tombstones_is_part_of_how_records_are_decoded() -> None:
    decoding = [keyed({"format": "string"}, tombstones=t).decoding for t in ("row", "skip", "bad")]
    assert len({*decoding}) == 3


def test_a_table_may_have_a_column_of_what_no_other_has() -> None:
    entry = {"topics": ["a"], "format": "json", "columns": "id INT"}
    ignored, *others = (
        load_settings(tables=[{**entry, "new_fields": each}]).tables[0]
        for each in ("ignore", "rest", "add")
    )
    assert columns_text(ignored.table_columns) == "id int"
    for kept in others:
        assert columns_text(kept.table_columns) == "id int, _rest string"
        assert columns_text(kept.as_read) == "id int"
        assert kept.decoding == f"{ignored.decoding}; new_fields {kept.new_fields}"


@pytest.mark.parametrize("new_fields", ["rest", "add"])
@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"format": "csv", "columns": "id INT"}, "new_fields, which only JSON with columns has"),
        ({"format": "raw"}, "names new_fields, and raw records"),
        ({"format": "json"}, "new_fields, which only JSON with columns has"),
        ({"format": "avro"}, "new_fields, which only JSON with columns has"),
        ({"format": "variant"}, "new_fields, which only JSON with columns has"),
        ({"format": "json", "columns": "_Rest INT"}, "_rest is the column of new_fields"),
    ],
)
def test_only_json_with_columns_has_fields_that_are_kept(
    entry: Any, fault: str, new_fields: str
) -> None:
    registry = {"url": "https://registry"}
    with pytest.raises(SettingsError, match=fault):
        load_settings(
            tables=[{"topics": ["a"], "new_fields": new_fields, **entry}], registry=registry
        )


def test_whether_columns_widen_is_part_of_how_records_are_decoded() -> None:
    assert keyed({"format": "string"}, widen=True).decoding.endswith("; widen")


def test_a_table_is_partitioned_by_the_day_and_not_clustered_beside() -> None:
    assert keyed({"format": "string"}, partition_by="_kafka_date").partition_by == "_kafka_date"
    with pytest.raises(SettingsError, match="partition_by and cluster_by are set: Delta takes one"):
        keyed({"format": "string"}, partition_by="_kafka_date", cluster_by=["id"])
    with pytest.raises(SettingsError, match="there is no column _kafka_date"):
        keyed({"format": "string"}, columns=None, statistics=["_kafka_date"])
    with pytest.raises(SettingsError, match="partition_by: must be one of '_kafka_date'"):
        keyed({"format": "string"}, partition_by="id")
