"""Lists in Markdown: what stands in many of them is described once."""

from tools.reference.markdown import Entry, but_common, common, entries

GROUP: Entry = ("`--group`", ("text", ""), "The group.")
OTHER: Entry = ("`--group`", ("text", "`all`"), "Groups.")
OWN: Entry = ("`--own`", ("", ""), "Of one.")


def test_an_entry_has_its_facts_in_parentheses_if_there_are_any() -> None:
    assert entries([GROUP, OWN]) == "- `--group` (text): The group.\n- `--own`: Of one.\n"


def test_of_a_name_the_entry_of_most_lists_is_common() -> None:
    lists = [[GROUP], [GROUP], [GROUP], [GROUP, OWN], [OTHER], [OTHER], [OTHER]]
    assert common(lists) == [GROUP]
    assert common([[GROUP], [GROUP]]) == []


def test_a_list_names_what_is_described_elsewhere() -> None:
    assert but_common([GROUP, OWN], [GROUP]) == "- `--own`: Of one.\n- also: `--group`\n"
    assert but_common([OTHER], [GROUP]) == entries([OTHER])
