"""The page of log events finds all of them, and each has a meaning."""

from pathlib import Path

import pytest
from tools.reference.log_events import SOURCES, found
from tools.reference.log_meanings import MEANINGS
from tools.reference.log_scan import Event, Unnamed, events

ROOT = Path(__file__).parents[3]


def test_every_event_has_a_meaning_and_every_meaning_an_event() -> None:
    assert found().keys() == MEANINGS.keys()


def test_every_package_that_logs_is_searched() -> None:
    logging = {
        path
        for where in ("shared", "services")
        for path in (ROOT / where).rglob("*.py")
        if "get_logger()" in path.read_text()
    }
    searched = [Path(*name.split(".")) for name in SOURCES]
    assert logging
    for path in logging:
        assert any(str(each) in str(path) for each in searched), path


def scanned(tmp_path: Path, source: str) -> dict[str, Event]:
    (tmp_path / "module.py").write_text(source)
    return events({tmp_path: "consumer"})


def test_an_event_has_its_levels_and_fields_from_wherever_it_is_logged(tmp_path: Path) -> None:
    source = """
def a():
    log.info("table.landed", rows=1)
def b(failed):
    bound = log.bind(table="t")
    bound.error("table.landed", reason="r")
    (log.warning if failed else log.debug)("write.ended" if failed else "write.begun")
"""
    found = scanned(tmp_path, source)
    assert found["table.landed"].levels == {"info", "error"}
    assert found["table.landed"].fields == {"rows", "table", "reason"}
    assert found["write.ended"].levels == found["write.begun"].levels == {"warning", "debug"}


def test_an_event_that_the_caller_names_is_found_there(tmp_path: Path) -> None:
    source = """
def tell(event, **told):
    log.warning(event, reason="r")
def both(names):
    late, over = names
    log.error(late)
    log.info(over)
tell("broker.late", broker=1)
both(("file.late", "file.written"))
"""
    found = scanned(tmp_path, source)
    assert found["broker.late"].fields == {"reason", "broker"}
    assert (found["file.late"].levels, found["file.written"].levels) == ({"error"}, {"info"})


def test_what_the_core_logs_has_its_facts_and_what_the_shell_adds(tmp_path: Path) -> None:
    source = """
def decide():
    facts = {"plan": 1}
    return Log("plan.made", {**facts, "by": 2})
def act(actions):
    match actions:
        case Log(event=event, facts=facts):
            log.info(event, group="g", **facts)
"""
    assert scanned(tmp_path, source)["plan.made"].fields == {"plan", "by", "group"}


def test_an_event_without_a_literal_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unnamed, match=r"module\.py:2: the event is not a literal"):
        scanned(tmp_path, "def tell(event):\n    log.info(event)\n")
