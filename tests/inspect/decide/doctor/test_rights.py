"""Rights that a service needs and its user lacks are named, with the command that grants them."""

from dataclasses import replace
from typing import Any

from tests.integration.authorization import OPERATIONS

from binwright.inspect.decide.doctor.findings import Finding
from binwright.inspect.decide.doctor.rights import SERVICES, Permitted, missing_rights
from binwright.inspect.decide.doctor.topics import VisibleTopic
from binwright.protocol.rights import Names, Service, rights

NAMES = Names(
    group="binwright",
    data=("orders", "clicks"),
    metadata="binwright.metadata",
    commands="binwright.commands",
    landing="binwright.landing",
    orders="binwright.group-orders",
    metrics="binwright.metrics",
    needs="binwright.metrics.needs",
)
WANTED = [*rights(NAMES)]
ALL = frozenset(OPERATIONS)


def topics(**changed: Any) -> dict[str, VisibleTopic]:
    names = {right.name for right in WANTED if right.kind == "topic"}
    return {name: VisibleTopic(name, 8, permitted=ALL, **changed) for name in names}


EVERYTHING = Permitted(
    cluster=ALL,
    topics=topics(),
    groups={"binwright": ALL, "binwright.controllers": ALL},
    uncreatable=frozenset(),
)


def lacking(service: Service, **changed: Any) -> list[Finding]:
    return [*missing_rights(WANTED, replace(EVERYTHING, **changed), [service])]


def with_topic(name: str, **changed: Any) -> dict[str, dict[str, VisibleTopic]]:
    return {"topics": {**EVERYTHING.topics, name: replace(EVERYTHING.topics[name], **changed)}}


def test_with_all_rights_each_service_is_one_line() -> None:
    found = [*missing_rights(WANTED, EVERYTHING, SERVICES)]
    assert [(each.check, each.status) for each in found] == [
        (f"rights of the {service}", "ok") for service in SERVICES
    ]


def test_operations_on_one_thing_are_one_line_with_the_command_that_grants_them() -> None:
    (found,) = lacking("consumer", **with_topic("binwright.landing", permitted=frozenset()))
    assert found.status == "fault"
    assert found.what == "this user lacks Read and Write on topic binwright.landing"
    assert found.do.endswith("--operation Read --operation Write --topic binwright.landing")


def test_a_topic_that_may_not_be_described_lacks_all_rights() -> None:
    hidden = with_topic("orders", hidden=True, permitted=None, partitions=0)
    (found,) = lacking("monitor", **hidden)
    assert found.what == "this user lacks Describe on topic orders"


def test_rights_on_the_cluster_and_what_goes_on_without_them_is_a_warning() -> None:
    (found,) = lacking("monitor", cluster=frozenset())
    assert found.status == "warning"
    assert found.what.startswith("this user lacks Describe on the cluster: rates are estimated")
    assert found.do.endswith("--operation Describe --cluster")


def test_a_group_that_may_not_be_read_is_a_fault() -> None:
    (found,) = lacking("consumer", groups={"binwright": frozenset({"Describe"})})
    assert found.what == "this user lacks Read on group binwright"


def test_a_topic_that_may_not_be_created_counts_where_it_is_missing() -> None:
    missing = with_topic("binwright.metrics", permitted=None, partitions=0)
    found = lacking("monitor", uncreatable={"binwright.metrics"}, **missing)
    assert [each.status for each in found] == ["fault", "skipped"]
    assert found[0].what == "this user lacks Create on topic binwright.metrics"


def test_rights_that_brokers_do_not_name_are_unknown() -> None:
    silent = {name: replace(topic, permitted=None) for name, topic in EVERYTHING.topics.items()}
    for service in SERVICES:
        (found,) = lacking(service, cluster=None, topics=silent, groups={})
        assert found.status == "skipped"
        assert "not known" in found.what
