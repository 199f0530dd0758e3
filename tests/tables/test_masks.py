"""Masks and filters of tables, as settings have them: what they make of columns."""

from pathlib import Path
from typing import Any

import pytest

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import columns_text, parse_columns
from binwright.tables.masks import MaskSettings, masked_columns
from binwright.tables.settings import TableSettings

COLUMNS = (
    "id BIGINT, mail STRING, raw BINARY, by STRUCT<name: STRING, n: INT>, "
    "tags ARRAY<STRING>, more ARRAY<STRUCT<phone: STRING, ok: BOOLEAN>>, m MAP<STRING, INT>"
)
KEY_FILE = "/run/secrets/mask"


def entry(mask: Any = None, **given: Any) -> TableSettings:
    table = {"topics": ["a"], "format": "json", "columns": COLUMNS, "mask": mask, **given}
    registry = {"url": "https://registry"}
    (made,) = load_settings(tables=[table], registry=registry).tables
    return made


def masked(**fields: str) -> str:
    return columns_text(masked_columns(parse_columns(COLUMNS), rules(**fields)))


def rules(**fields: str) -> Any:
    named = {name.replace("__", "."): how for name, how in fields.items()}
    return MaskSettings(
        fields=named, key_file=Path(KEY_FILE) if "sha256" in fields.values() else None
    ).rules


def test_columns_are_dropped_and_what_is_no_text_becomes_text() -> None:
    found = masked(
        **dict.fromkeys(("ID", "mail", "raw", "by__n", "tags"), "sha256"),
        by__name="drop",
        more__phone="last 4",
        m="null",
    )
    assert found == (
        "id string, mail string, raw binary, by struct<n:string>, tags array<string>, "
        "more array<struct<phone:string,ok:boolean>>, m map<string,int>"
    )


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"x": "null"}, "no column or field x"),
        ({"by__x": "null"}, "by: there is no column or field x"),
        ({"mail__x": "null"}, "mail: is string, which has no fields"),
        ({"by": "sha256"}, "by: is struct<name:string,n:int>, which can be null or dropped"),
        ({"m": "last 1"}, "m: is map<string,int>, which can be null or dropped"),
        ({"by__name": "drop", "by__n": "drop"}, "by: nothing would be left"),
    ],
)
def test_a_mask_that_a_column_cannot_have_is_refused(fields: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        masked(**fields)


def test_a_variant_can_be_null_or_dropped() -> None:
    columns = parse_columns("id INT, v VARIANT")
    assert masked_columns(columns, {"v": "null"}) == columns
    assert masked_columns(columns, {"v": "drop"}) == columns[:1]
    with pytest.raises(ValueError, match="v is variant, which can be null or dropped"):
        masked_columns(columns, {"v": "sha256"})
    assert masked_columns((), {}) == ()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"mask": {}}, r"tables\[0\]\.mask: names no fields, no key and no headers"),
        ({"mask": {"fields": {"mail": "md5"}}}, r"tables\[0\]\.mask\.fields"),
        ({"mask": {"fields": {"mail": "last 0"}}}, r"tables\[0\]\.mask\.fields"),
        ({"mask": {"key": "sha256"}}, "names sha256, and no key_file"),
        ({"mask": {"key": "null", "bad": "sha256"}}, "names sha256, and no key_file"),
        ({"mask": {"key": "null", "key_file": KEY_FILE}}, "names a key_file, and no sha256"),
        ({"mask": {"fields": {"a.": "null"}}}, r"'a\.' is no column"),
        (
            {"mask": {"fields": {"by": "null", "by.n": "null"}}},
            "by.n lies in a column that is masked",
        ),
        ({"mask": {"fields": {"by.n": "null", "by": "null"}}}, "by is named twice, or has fields"),
        ({"mask": {"fields": {"mail": "null", "MAIL": "drop"}}}, "MAIL is named twice"),
        ({"mask": {"fields": {"nil": "null"}}}, r"tables\[0\]: mask.fields: there is no column .*"),
        ({"mask": {"fields": {"_kafka_key": "null"}}}, "there is no column or field _kafka_key"),
        (
            {"mask": {"key": "null"}, "key": {"format": "string"}},
            "a key that is decoded is in _kafka.key",
        ),
        (
            {"mask": {"fields": {"_kafka_key": "null"}}, "key": {"format": "string"}},
            "a key that is decoded is in _kafka.key",
        ),
        (
            {"mask": {"fields": {"value": "drop"}}, "format": "raw", "columns": None},
            "the value of a raw table can be null",
        ),
        (
            {"mask": {"fields": {"mail": "null"}}, "format": "raw", "columns": None},
            "there is no column or field mail",
        ),
        ({"where": ["id = 1"], "format": "raw", "columns": None}, "names where, and raw records"),
        ({"where": ["id ~ 1"]}, r"tables\[0\]\.where: 'id ~ 1' is no comparison"),
        ({"where": ["nil = 1"]}, r"""tables\[0\]: where: 'nil = 1': there is no column"""),
        ({"where": ["id = 'x'"]}, "id is bigint, and 'x' is no number"),
        (
            {"mask": {"fields": {"mail": "drop"}}, "cluster_by": ["mail"]},
            "cluster_by, statistics: there is no column mail",
        ),
    ],
)
def test_contradictions_are_refused_with_their_place(given: Any, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        entry(**given)


def test_what_is_compared_is_what_was_decoded_and_what_is_named_what_lands() -> None:
    found = entry(
        {"fields": {"mail": "drop", "id": "sha256"}, "key_file": KEY_FILE},
        where=["mail is not null", "id > 3"],
    )
    assert columns_text(found.known[:2]) == "id bigint, mail string"
    assert columns_text(found.table_columns[:2]) == "id string, raw binary"
    assert found.decoding.endswith("; where mail is not null and id > 3")
    assert [each.path for each in found.comparisons] == [("mail",), ("id",)]


def test_columns_of_a_subject_are_not_known_to_the_settings() -> None:
    avro = {"format": "avro", "columns": None, "where": ["any = 1"]}
    found = entry({"fields": {"any.at": "drop"}}, **avro)
    assert (found.masked, found.table_columns) == ((), ())
    key = {"key": {"format": "string"}}
    masks = {"fields": {"any": "null", "_kafka_key": "sha256"}, "key": "drop"}
    found = entry({**masks, "key_file": KEY_FILE}, **avro, **key)
    assert columns_text(found.masked) == "_kafka_key string"


def test_the_text_of_a_mask_differs_where_the_mask_does_and_has_no_key_file() -> None:
    fields = {"mail": "sha256"}
    masks = [
        {"fields": fields, "key_file": KEY_FILE},
        {"fields": fields, "key_file": "/other", "bad": "null"},
        {"fields": fields, "key_file": KEY_FILE, "bad": "keep"},
        {"fields": {"mail": "last 4"}},
        {"headers": {"mail": "drop"}},
        {"fields": fields, "key_file": KEY_FILE, "key": "drop"},
    ]
    one, same, *others = [entry(mask).masking for mask in masks]
    assert one == same
    assert len({one, *others}) == 5
    assert entry().masking == ""
    assert entry({"key": "drop"}).masking != entry({"key": "null"}).masking


def test_a_topic_of_no_entry_has_no_mask() -> None:
    mask = {"key": "null"}
    settings = load_settings(tables=[{"topics": ["a"], "format": "raw", "mask": mask}])
    found = [target.masking for topic in ("a", "b") for target in settings.targets(topic)]
    assert found == ["bad null; key null", ""]


@pytest.mark.parametrize(
    ("mask", "twice"),
    [
        ({"fields": {"id": "sha256"}, "key_file": "/key"}, False),
        ({"key": "drop"}, False),
        ({"headers": {"h": "null"}}, False),
        ({"key": "last 4"}, True),
        ({"headers": {"h": "last 2", "*": "drop"}}, True),
    ],
)
def test_keys_and_headers_that_are_masked_already_may_be_masked_to_something_else(
    mask: dict[str, object], *, twice: bool
) -> None:
    assert MaskSettings.model_validate(mask).hides_twice is twice
