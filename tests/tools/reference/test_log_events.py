"""Each log event is on the page once for each program, with a sentence."""

import re
from collections import Counter

from tools.reference.log_events import events, page

NAME = re.compile(r"[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*")


def test_an_event_has_a_name_of_a_noun_and_a_verb_and_a_sentence() -> None:
    declared = events()
    assert len(declared) > 200
    for event, _ in declared:
        assert NAME.fullmatch(event), event
        assert event.meaning.endswith((".", "?")), event


def test_no_program_declares_an_event_twice_at_the_same_level() -> None:
    declared = Counter(
        (event, event.level, one) for event, source in events() for one in source.split(", ")
    )
    assert {each: n for each, n in declared.items() if n > 1} == {}


def test_the_page_names_all_programs_that_know_an_event() -> None:
    sources = {str(event): source for event, source in events()}
    assert sources["state.changed"] == "controller"  # declared and logged in one module
    assert sources["certificates.renewed"] == "all, scaler"  # declared in a room for all
    assert sources["table.refused"] == "consumer"  # of a decision, logged by its shell
    controller = page().partition("\n## controller: info\n")[2].partition("\n## ")[0]
    assert "\n- `state.changed`: " in controller


def test_each_event_is_on_the_page_once_for_each_program() -> None:
    shown = Counter(re.findall(r"^- `([a-z_.]+)`: ", page(), re.MULTILINE))
    assert shown == Counter(str(event) for event, _ in events())
