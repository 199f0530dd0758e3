"""The commands that grant rights have each one once, and few write to each topic."""

from dataclasses import replace

import pytest

from binwright.protocol.rights import Names, Right, commands, other_rights, rights

NAMES = Names(
    group="g",
    data=("orders", "clicks"),
    metadata="g.metadata",
    commands="g.commands",
    landing="g.landing",
    orders="g.group-orders",
    metrics="m",
    needs="m.needs",
    scaled=("billing",),
    assigned=("billing",),
)
EVERY = [*rights(NAMES), *other_rights(NAMES)]


def holders(operation: str, *names: str) -> set[str]:
    return {each.service for each in EVERY if each.operation == operation and each.name in names}


@pytest.mark.parametrize(
    ("topic", "writers"),
    [
        ("m", {"monitor"}),
        ("m.needs", {"controller"}),
        ("g.metadata", {"controller", "consumer"}),
        ("g.group-orders", {"controller", "operator"}),
        ("g.commands", {"controller"}),
        ("g.landing", {"consumer"}),
        ("binwright.brokers", {"balancer", "approver"}),
        ("binwright.plans", {"scaler"}),
        ("binwright.probe", {"balancer"}),
        ("orders", set()),
    ],
)
def test_a_topic_is_written_by_few(topic: str, writers: set[str]) -> None:
    assert holders("Write", topic) == writers


def test_only_the_balancer_s_probe_may_be_deleted_and_only_commands_grow() -> None:
    assert {(each.service, each.name) for each in EVERY if each.operation == "Delete"} == {
        ("balancer", "binwright.probe")
    }
    assert {each.name for each in EVERY if each.operation == "Alter"} == {
        "g.commands",
        "kafka-cluster",
    }


def test_every_right_is_in_one_command() -> None:
    lines = [*commands(EVERY)]
    reads = (
        "--operation Read --topic orders --topic clicks --topic g.commands --topic g.group-orders"
    )
    assert f"allow User:consumer {reads}" in lines
    assert "allow User:monitor --operation Describe --cluster" in lines
    assert lines.count("") == 7
    above = lines.index("# with brokers.mode approve or act: also")
    assert lines[above + 1].startswith("allow User:balancer --operation Alter ")
    granted = 0
    for line in lines:
        operations, things = (
            line.count("--operation"),
            line.count("--topic") + line.count("--group"),
        )
        granted += operations * (things + line.count("--cluster"))
    assert granted == len(EVERY) == len(set(EVERY))


def test_a_scaler_that_assigns_no_group_writes_nothing() -> None:
    found = other_rights(replace(NAMES, assigned=()))
    assert {each.operation for each in found if each.service == "scaler"} == {
        *("Create", "Read", "Describe"),
    }


def test_no_rights_are_no_commands() -> None:
    assert list(commands([])) == []
    assert list(commands([Right("viewer", "topic", "t", "Read")])) == [
        "allow User:viewer --operation Read --topic t"
    ]
