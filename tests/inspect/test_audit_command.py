"""What `binwright audit` says of offsets and values together."""

from dataclasses import replace

import pytest
from tests.inspect.audits import partition_audit
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.cli.terminal import Console
from binwright.inspect.audit import AuditResult, TableAudit
from binwright.inspect.audit_command import LISTED, Audited
from binwright.inspect.decide.differences import Comparison, ValueDifference

CLEAN = AuditResult(
    tables=(
        TableAudit(
            topic="orders", name="orders", path="/o", exists=True, partitions=(partition_audit(),)
        ),
    )
)
SAME = Comparison(compared=3, bad=1)
OTHER = Comparison(
    compared=2, differences=[ValueDifference(0, n, "id", "1", "2") for n in range(30)]
)


def shown(found: Audited) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        for page in found.pages():
            console.print(page)
    return captured.get()


@pytest.mark.parametrize(
    ("found", "clean"),
    [
        (Audited(CLEAN, None), True),
        (Audited(CLEAN, {"orders": {"orders": SAME}}), True),
        (Audited(CLEAN, {"orders": {"orders": SAME, "more": OTHER}}), False),
        (Audited(None, {"orders": {"orders": OTHER}}), False),
        (Audited(None, {"orders": {"orders": replace(SAME, waiting=7)}}), True),
    ],
)
def test_all_that_was_asked_must_be_as_it_should(found: Audited, *, clean: bool) -> None:
    assert found.clean is clean
    assert found.to_json()["clean"] is clean


def test_json_has_what_was_asked_only() -> None:
    values = {"orders": {"orders": SAME}}
    assert "values" not in Audited(CLEAN, None).to_json()
    assert Audited(None, values).to_json().keys() == {"values", "clean"}
    both = Audited(CLEAN, values).to_json()
    assert both["tables"][0]["name"] == "orders"
    assert both["values"]["orders"]["orders"]["compared"] == 3


def test_the_first_differences_are_listed_and_all_are_counted() -> None:
    text = shown(Audited(None, {"orders": {"eu": SAME, "us": OTHER}}))
    assert text.count("orders: us-0") == LISTED
    assert "orders: us: 30 values differ" in text
    assert "orders: eu: 3 records compared, 1 of them bad ones" in text


def test_without_a_topic_or_a_table_there_is_nothing_to_compare() -> None:
    done = CliRunner().invoke(app, ["audit", "--compare", "values"])
    assert done.exit_code == 2
    assert "no topics: name them with --topics" in done.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--table", "/lake/t"], "name the path and the --columns"),
        (["--columns", "partition=p,offset=o", "--topic", "t"], "with --table"),
        (["--columns", "partition=p,offset=o", "--table", "/t"], "its --topic"),
        (
            ["--columns", "partition=p,offset=o", "--table", "/t", "--topics", "a,b"],
            "names no topic",
        ),
        (
            [
                *("--columns", "partition=p,offset=o", "--table", "/t"),
                *("--topic", "a", "--compare", "both"),
            ],
            "only offsets are compared",
        ),
        (["--topics", "t", "--compare", "values", "--metrics-file", "m"], "--metrics-file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str], words: str) -> None:
    done = CliRunner().invoke(app, ["audit", *options])
    assert done.exit_code == 2
    assert words in done.output
