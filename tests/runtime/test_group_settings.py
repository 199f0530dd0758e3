"""What the settings of a group say of its tables together with files, the registry and the lake."""

from pathlib import Path
from typing import Any

import pytest

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import parse_columns

ID = parse_columns("id BIGINT")
TEXT = {"topics": ["notes"], "format": "string"}


def avro(kind: str = "avro", **registry: Any) -> Any:
    tables = [{"topics": ["a"], "format": kind}]
    return load_settings(tables=tables, registry={"url": "https://registry/api/", **registry})


def test_an_address_ends_without_a_slash() -> None:
    assert avro().registry.url == "https://registry/api"


@pytest.mark.parametrize(
    ("kind", "shown"),
    [("avro", "avro"), ("protobuf", "protobuf"), ("json", "json without columns")],
)
def test_a_format_by_schema_needs_a_registry(kind: str, shown: str) -> None:
    with pytest.raises(SettingsError, match=f"a format is {shown}, and registry.url is not set"):
        avro(kind, url=None)


def test_keys_of_a_schema_need_a_registry() -> None:
    entry = {"topics": ["a"], "format": "string", "key": {"format": "avro"}}
    with pytest.raises(SettingsError, match="a format is avro, and registry"):
        load_settings(tables=[entry])


def test_ids_of_eight_bytes_need_an_address_of_apicurio_s() -> None:
    table, own = {"topics": ["a"], "format": "avro"}, {"eight_byte_ids": "globalId"}
    url = "https://registry/apis/ccompat/v7"
    assert load_settings(tables=[table], registry={"url": url, **own}).registry.is_apicurio
    with pytest.raises(SettingsError, match="url is that of its registry"):
        load_settings(tables=[table], registry={"url": "https://registry", **own})
    assert not load_settings(
        tables=[table], registry={"url": "https://registry"}
    ).registry.is_apicurio


@pytest.mark.parametrize(
    ("registry", "fault"),
    [
        ({"url": "registry:8081"}, "registry.url: must be an address of http or https"),
        ({"url": "http://u:p@registry"}, "registry.url: must hold no user"),
        ({"username": "u"}, "registry: username and password_file go together"),
        ({"username": "u", "password_file": "p", "token_file": "t"}, "leave one of them out"),
        ({"key_file": "k"}, "registry: certificate_file and key_file go together"),
        ({"url": "http://registry", "ca_file": "c"}, "would be ignored: url is not https"),
        ({"url": "http://registry", "token_file": "t"}, "lets the network read the password"),
    ],
)
def test_a_registry_is_refused_where_it_cannot_be_meant(
    registry: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault) as refused:
        avro(**registry)
    assert "u:p" not in str(refused.value)


def test_a_registry_on_this_machine_needs_no_tls() -> None:
    found = avro(url="http://127.0.0.1:8080", username="u", password_file="p")  # noqa: S106 - a path
    assert found.registry.username == "u"
    away = avro(url="http://registry", token_file="t", allow_cleartext_password=True)  # noqa: S106 - a path
    assert away.registry.allow_cleartext_password


def test_a_file_may_have_the_text_of_columns(tmp_path: Path) -> None:
    file = tmp_path / "orders.sql"
    file.write_text("id BIGINT\n")
    (entry,) = load_settings(
        tables=[{"topics": ["a"], "format": "json", "columns_file": file}]
    ).tables
    assert (entry.columns, entry.parsed) == ("id bigint", ID)


@pytest.mark.parametrize(
    "kept",
    [
        {"lake": {"keep_days": 7, "vacuum_interval_s": 0}},
        {"lake": {"vacuum_interval_s": 0}, "tables": [TEXT | {"keep_days": 7}]},
    ],
    ids=str,
)
def test_old_rows_cannot_be_deleted_without_a_vacuum(kept: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"lake\.vacuum_interval_s is 0, and old rows are"):
        load_settings(**kept)


@pytest.mark.parametrize(("own", "days"), [(None, 90), (7, 7), (0, 0)])
def test_a_table_keeps_rows_for_its_own_time_or_that_of_the_lake(
    own: float | None, days: float
) -> None:
    found = load_settings(lake={"keep_days": 90}, tables=[TEXT | {"keep_days": own}])
    (notes,), (others,) = found.targets("notes"), found.targets("others")
    assert found.keep_days(notes) == days
    assert found.keep_days(others) == 90


@pytest.mark.parametrize(
    ("own", "name"), [(None, "main.raw.notes"), ("sales.{table}_v2", "sales.notes_v2"), ("", "")]
)
def test_a_table_is_registered_by_its_own_template_or_that_of_the_lake(
    own: str | None, name: str
) -> None:
    found = load_settings(
        lake={"register_as": "main.raw.{table}"}, tables=[TEXT | {"register_as": own}]
    )
    (notes,), (others,) = found.targets("notes"), found.targets("others.eu")
    assert found.register_as(notes) == name
    assert found.register_as(others) == "main.raw.others_eu"


@pytest.mark.parametrize(
    "settings",
    [
        {"topics": ["a.b", "a-b"], "lake": {"register_as": "s.{table}"}},
        {"topics": ["a", "A"], "lake": {"register_as": "s.{table}"}},
        {"topics": ["a", "b"], "lake": {"register_as": "s.all"}},
        {
            "topics": ["a"],
            "lake": {"register_as": "s.{table}"},
            "tables": [TEXT | {"register_as": "s.a"}],
        },
    ],
    ids=str,
)
def test_two_tables_cannot_be_registered_by_one_name(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"register_as: tables .* would both have the name"):
        load_settings(**settings)


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        ("/not/there", r"tables\[0\]: columns_file /not/there cannot be read: No such file"),
        (7, "columns_file 7 cannot be read"),
    ],
)
@pytest.mark.parametrize("of_key", [False, True])
def test_a_file_of_columns_that_cannot_be_read_is_named(
    file: object, fault: str, of_key: bool
) -> None:
    part = {"format": "json", "columns_file": file}
    entry = {"format": "string", "key": part} if of_key else part
    with pytest.raises(SettingsError, match=fault):
        load_settings(tables=[{"topics": ["a"], **entry}])


def test_a_key_may_have_its_columns_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key.sql"
    file.write_text("id BIGINT")
    key = {"format": "json", "columns_file": str(file)}
    (entry,) = load_settings(tables=[{**TEXT, "key": key}]).tables
    assert entry.key is not None
    assert entry.key.parsed == ID
