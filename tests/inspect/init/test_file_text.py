"""The file that `binwright init` writes is one that every program loads."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.inspect.init.file_text import LISTED, settings_text, toml_string
from binwright.inspect.init.topics import FoundTopic, Wanted, parse_wanted
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.programs import FILE_VARIABLE
from binwright.tables.columns import columns_text

from .builders import WEEK, figures, found

DAY = "2026-11-26"
SCHEMA_7 = b"\x00\x00\x00\x00\x07"
TOPICS = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True).filter(
    lambda name: name not in {".", "..", "_up", "_staging", "_delta_log"}
)
FIELDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(
    ['"', '"""', "\\", "`", "a\x7f", "a\nb", "#", "]", "_kafka", "\u2028", "\U0001f600"]
)
DOCUMENTS = st.lists(
    st.dictionaries(
        FIELDS,
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.just("x"),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(FIELDS, inner, max_size=2),
            max_leaves=4,
        ),
        max_size=4,
    ),
    max_size=3,
)
VALUES = DOCUMENTS.map(lambda documents: [orjson.dumps(each) for each in documents]) | st.lists(
    st.binary(max_size=8), max_size=3
)


def settings(**named: Any) -> Settings:
    return load_settings(
        kafka={"bootstrap_servers": "kafka:9092"} | named.pop("kafka", {}),
        lake={"path": "/lake"},
        **named,
    )


def text(*topics: FoundTopic, names: Sequence[str] = (), by: Settings | None = None) -> str:
    wanted = parse_wanted(names or [topic.name for topic in topics])
    return settings_text(by or settings(), wanted, topics, DAY)


def loaded(written: str, directory: Path) -> Settings:
    """Return what the file is to a program that starts with it."""
    file = directory / "binwright.toml"
    file.write_text(written, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FILE_VARIABLE, str(file))
        return load_settings()


def uncommented(written: str) -> str:
    """Return the file with the entries in force that it has as comments."""
    head = [line for line in written.splitlines() if not line.startswith("#spark")]
    lines = [line[1:] if line[:1] == "#" and line[1:2] != " " else line for line in head]
    return "\n".join(line[1:] if line.startswith("#  ") else line for line in lines)


def test_what_was_named_is_in_it(tmp_path: Path) -> None:
    by = settings(group="mine", exclude_topic_patterns=["test-.*"])
    read = loaded(text(found("orders"), names=["orders", "cl.*", "x{2,3}"], by=by), tmp_path)
    assert (read.group, read.topics) == ("mine", ("orders",))
    assert read.topic_patterns == ("cl.*", "x{2,3}")
    assert read.exclude_topic_patterns == ("test-.*",)
    assert (read.kafka.bootstrap_servers, read.lake.path) == ("kafka:9092", "/lake")
    assert "spark" not in read.lake.model_fields_set


def test_the_connection_is_in_it_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINWRIGHT_KAFKA__SASL_PASSWORD", "xyzzy")
    monkeypatch.setenv("BINWRIGHT_LAKE__SPARK", "sc://spark:15002")
    secure = {
        "security_protocol": "SASL_SSL",
        "sasl_username": "ann",
        "ssl_ca_file": "ca.crt",
        "request_timeout_s": 7.5,
        "allow_cleartext_password": True,
    }
    written = text(found("orders"), by=settings(kafka=secure))
    assert "xyzzy" not in written
    assert "# sasl_password: from the variable BINWRIGHT_KAFKA__SASL_PASSWORD" in written
    read = loaded(written, tmp_path)
    assert read.kafka.sasl_username == "ann"
    assert read.kafka.ssl_ca_file == Path("ca.crt").absolute()
    assert (read.kafka.request_timeout_s, read.kafka.allow_cleartext_password) == (7.5, True)
    assert read.lake.spark == "sc://spark:15002"


def test_json_has_an_entry_with_its_columns(tmp_path: Path) -> None:
    written = text(found("orders", [b'{"id": 1, "by": {"name": "x"}, "odd": 1}', b'{"odd": "x"}']))
    (table,) = loaded(written, tmp_path).tables
    assert (table.topics, table.format) == (("orders",), "json")
    assert table.columns == "id bigint, by struct<name:string>"
    assert "# orders: 2 partitions, 2.0 kB, kept 7 days\n" in written
    assert "# Its newest values: JSON, 2 columns (sample of 2)\n" in written
    assert "# left out: odd: bigint in 1, string in 1\n" in written


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([SCHEMA_7, SCHEMA_7 + b"\x02"], 'format = "avro"'),
        ([SCHEMA_7 + b'{"a": 1}'], 'format = "json"'),
        ([b'{"a": 1}', b"no JSON"], 'columns = """'),
    ],
)
def test_what_is_not_certain_is_a_comment_that_becomes_an_entry(
    values: list[bytes], line: str, tmp_path: Path
) -> None:
    written = text(found("orders", values))
    assert loaded(written, tmp_path).tables == ()
    assert f"#{line}" in written
    (table,) = loaded(uncommented(written), tmp_path).tables
    assert table.topics == ("orders",)


def test_a_registry_is_named_once_and_only_where_it_is_needed() -> None:
    one, two = found("a", [SCHEMA_7]), found("b", [SCHEMA_7])
    assert text(one, two).count("#[registry]") == 1
    assert "registry" not in text(found("a", [b'{"a": 1}']))


def test_a_topic_that_has_the_name_of_a_table_of_bad_records_prevents_an_entry(
    tmp_path: Path,
) -> None:
    """Such settings would be refused: the two tables would be one."""
    written = text(found("orders", [b'{"a": 1}']), found("orders__bad", [b'{"a": 1}']))
    (table,) = loaded(written, tmp_path).tables
    assert table.topics == ("orders__bad",)
    assert "the topic orders__bad has the name of the table of its bad records" in written


@pytest.mark.parametrize(
    ("topic", "line"),
    [
        (found("t"), "# Its newest values: no records\n"),
        (found("t", [None]), "# Its newest values: only records without a value\n"),
        (found("t", fault="denied"), "# Its newest values: not read: denied\n"),
        (found("t", [b"\xff"], fault="late"), "# Its newest values: binary (sample of 1); late\n"),
        (found("t", config=WEEK | {"cleanup.policy": "compact"}), "# It is compacted: "),
        (found("t", [b"{}"]), "# left out: all: only empty objects\n"),
    ],
)
def test_a_topic_has_a_comment_with_what_is_known_of_it(
    topic: FoundTopic, line: str, tmp_path: Path
) -> None:
    written = text(topic)
    assert line in written
    assert loaded(written, tmp_path).tables == ()


def test_long_lists_are_cut(tmp_path: Path) -> None:
    odd = b"{%s}" % b",".join(b'"n%d": null' % number for number in range(LISTED + 2))
    topics = [found("t", [odd]), *(FoundTopic(f"u{n}", figures()) for n in range(LISTED + 2))]
    written = text(*topics, names=["t", "u.*"])
    assert "# and 2 fields more\n" in written
    assert f"# {LISTED + 2} topics not looked at land as bytes: u0, " in written
    assert f"u{LISTED - 1}, …\n" in written
    assert loaded(written, tmp_path).tables == ()


@given(st.lists(st.tuples(TOPICS, VALUES), min_size=1, max_size=3, unique_by=lambda each: each[0]))
def test_whatever_topics_and_fields_are_called_it_loads(
    topics: list[tuple[str, list[bytes]]],
) -> None:
    every = [found(name, values) for name, values in topics]
    read = load_settings(**tomllib.loads(text(*every)))
    assert read.topics == tuple(name for name, _ in topics)
    columns = {table.topics[0]: table.columns for table in read.tables}
    for each in every:
        assert each.values
        if each.values.kind == "json" and f"{each.name}__bad" not in read.topics:
            inferred = each.values.inferred.columns
            assert columns.get(each.name, "") == columns_text(inferred)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_strings_are_quoted(content: str) -> None:
    assert tomllib.loads(f"a = {toml_string(content)}") == {"a": content}


def test_names_and_patterns_are_distinguished() -> None:
    assert parse_wanted(["a.b", "c.*", "a.b", "d|e"]) == Wanted(("a.b",), ("c.*", "d|e"))
    with pytest.raises(SettingsError, match="--topics: not a regular expression"):
        parse_wanted(["*"])
