"""An object names only groups, places and Spark servers that the controller's settings allow."""

import re
from typing import Any

import pytest

from binwright.controller.group_objects.allowed import check_allowed, may_name
from binwright.controller.group_objects.spec import settings_of
from binwright.controller.settings import ControllerProgramSettings
from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.loading import load

LAKE = {"path": "s3a://lake/landing", "spark": "sc://spark-1:15002,sc://spark-2:443/;use_ssl=true"}


def base(staging: Obj | None = None, **kubernetes: Any) -> ControllerProgramSettings:
    return load(
        ControllerProgramSettings,
        kubernetes={"groups": True, **kubernetes},
        lake=LAKE,
        staging=staging or {},
    )


def check(settings: ControllerProgramSettings, group: str = "orders", **sink: str) -> None:
    """Check an object with this sink in the namespace `team-a`."""
    obj: Obj = {"metadata": {"name": group}, "spec": {"topics": ["orders"], "sink": sink}}
    check_allowed(settings_of(obj, settings), settings, "team-a")


@pytest.mark.parametrize(
    "sink",
    [
        {},
        {"path": "s3a://lake/landing"},
        {"path": "s3a://lake/landing/"},
        {"path": "S3://lake/landing/team"},
        {"path": "s3a://lake/landing/team", "staging": "s3a://lake/landing/other/"},
        {"staging": "s3a://lake/landing/_staging/orders"},
        {"spark": LAKE["spark"]},
        {"spark": "sc://spark-1:15002"},
        {"spark": "sc://spark-2:443/;use_ssl=true, sc://spark-1:15002"},
    ],
)
def test_the_settings_own_values_are_allowed(sink: dict[str, str]) -> None:
    check(base(), **sink)


def test_an_object_without_a_sink_has_the_settings_own_also_where_that_is_the_default() -> None:
    check(load(ControllerProgramSettings, kubernetes={"groups": True}))


@pytest.mark.parametrize(
    ("sink", "setting"),
    [
        ({"path": "s3a://lake"}, "kubernetes.sinks"),
        ({"path": "s3a://lake/landing2"}, "kubernetes.sinks"),
        ({"path": "s3a://lake/landing/../others"}, "kubernetes.sinks"),
        ({"path": "s3a://evil/landing"}, "kubernetes.sinks"),
        ({"path": "/lake"}, "kubernetes.sinks"),
        ({"path": "lake"}, "kubernetes.sinks"),
        ({"staging": "s3a://others/x"}, "kubernetes.sinks"),
        ({"spark": "sc://evil:443"}, "kubernetes.spark_servers"),
        ({"spark": "sc://spark-1:15002,sc://evil:443"}, "kubernetes.spark_servers"),
        ({"spark": "sc://spark-2:443"}, "kubernetes.spark_servers"),
        ({"spark": "sc://spark-1:15002/;use_ssl=false"}, "kubernetes.spark_servers"),
    ],
)
def test_others_are_refused_with_the_setting_that_would_allow_them(
    sink: dict[str, str], setting: str
) -> None:
    with pytest.raises(SettingsError, match=setting):
        check(base(), **sink)


@pytest.mark.parametrize(
    "sink",
    [
        {"path": "s3a://lake/landing/_staging/payments"},
        {"path": "s3a://lake/landing/orders/_delta_log"},
        {"path": "s3a://lake/landing/_staging"},
        {"staging": "s3a://lake/landing/_staging/payments"},
        {"staging": "s3a://lake/landing/_staging/payments/_staging/orders"},
    ],
)
def test_neither_deltas_directories_nor_other_groups_staged_files_are_a_sink(
    sink: dict[str, str],
) -> None:
    """Staged files are read and deleted by the group whose they are."""
    with pytest.raises(SettingsError, match="another group's staged files"):
        check(base(), **sink)


def test_the_settings_own_staging_path_is_a_prefix_and_so_is_its_lake() -> None:
    settings = base({"path": "s3a://stage/x"})
    check(settings)
    check(settings, staging="s3a://stage/x/orders")
    with pytest.raises(SettingsError, match=r"not below s3a://lake/landing or s3a://stage/x,"):
        check(settings, staging="s3a://stage/y")


def test_objects_that_inherit_a_staging_path_do_not_share_a_place() -> None:
    settings = base({"path": "s3a://scratch/staging"})
    places = set()
    for group in ("a", "b"):
        sink = {"path": f"s3a://lake/landing/{group}"}
        spec: Obj = {"topics": ["orders"], "group": group, "sink": sink}
        found = settings_of({"metadata": {"name": group}, "spec": spec}, settings)
        check_allowed(found, settings, "team-a")
        places.add(found.staging_path)
    assert places == {"s3a://scratch/staging/a", "s3a://scratch/staging/b"}


def test_listed_sinks_replace_the_settings_own_and_may_be_of_the_namespace() -> None:
    settings = base(sinks=["s3a://teams/{namespace}", "s3a://{namespace}-scratch"])
    check(settings)  # what an object leaves out comes from the settings
    check(settings, path="s3a://teams/team-a/x", staging="s3a://team-a-scratch/y")
    for path in ("s3a://lake/landing/x", "s3a://teams/team-b", "s3a://teams/team-a2/x"):
        with pytest.raises(SettingsError, match="is not below s3a://teams/team-a or "):
            check(settings, path=path)


def test_listed_servers_replace_the_settings_own_and_may_be_of_the_namespace() -> None:
    settings = base(spark_servers=["sc://spark.{namespace}:15002"])
    check(settings)
    check(settings, spark="sc://spark.team-a:15002")
    with pytest.raises(SettingsError, match=r"spark\.team-b:15002 is not sc://spark\.team-a:15002"):
        check(settings, spark="sc://spark.team-b:15002")


def test_a_groups_name_begins_with_the_prefix_of_its_namespace() -> None:
    settings = base(group_prefix="{namespace}.")
    check(settings, "team-a.orders")
    for group in ("orders", "team-b.orders", "team-a2.orders"):
        with pytest.raises(SettingsError, match=r"kubernetes\.group_prefix.*spec\.group: team-a\."):
            check(settings, group)
    assert may_name("orders", base().kubernetes, "team-a")


def test_all_that_is_not_allowed_is_named_at_once() -> None:
    with pytest.raises(SettingsError, match=r"group .*; sink\.path .*; sink\.spark "):
        check(base(group_prefix="x."), path="s3a://evil/a", spark="sc://evil:443")


@pytest.mark.parametrize(
    ("kubernetes", "fault"),
    [
        ({"sinks": ["lake"]}, "expected an absolute path"),
        ({"sinks": ["s3a://lake/../x"]}, "expected an absolute path"),
        ({"sinks": ["s3a://lake/{name}"]}, "expected an absolute path"),
        ({"spark_servers": ["spark:15002"]}, "expected one Spark Connect address"),
        ({"spark_servers": ["sc://a,sc://b"]}, "expected one Spark Connect address"),
        ({"spark_servers": ["sc://a/;token=s3cret"]}, "holds a token"),
        ({"group_prefix": "{namespace}"}, "expected {namespace}. or {namespace}_"),
        ({"group_prefix": "{namespace}-x."}, "expected {namespace}. or {namespace}_"),
        ({"group_prefix": "{team}."}, "expected {namespace}. or {namespace}_"),
        ({"group_prefix": "a/b"}, "group_prefix"),
    ],
)
def test_settings_that_would_allow_something_else_are_refused(
    kubernetes: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault) as refused:
        base(**kubernetes)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "topic",
    [
        *("__consumer_offsets", "others.metadata", "others.commands", "others.group-orders"),
        *("others.landing", "binwright.metrics", "binwright.metrics.needs"),
    ],
)
def test_a_topic_with_what_other_groups_do_is_no_object_s_to_land(topic: str) -> None:
    obj: Obj = {"metadata": {"name": "orders"}, "spec": {"topics": ["orders", topic]}}
    with pytest.raises(SettingsError, match=f"topics {re.escape(topic)}: Kafka's own, or"):
        check_allowed(settings_of(obj, base()), base(), "team-a")
