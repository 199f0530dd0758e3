"""How a ConsumerGroup object is read as settings."""

from pathlib import Path

import pytest
import yaml

from binwright.controller.group_context import group_context
from binwright.controller.group_objects.groups import kubernetes_groups
from binwright.controller.group_objects.spec import (
    KEY,
    TABLE,
    environment,
    given_settings,
    settings_of,
)
from binwright.controller.settings import ControllerProgramSettings
from binwright.group.controls import adoptable
from binwright.kafka.metrics_topic import Measurements
from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import SettingsError
from binwright.protocol.patterns import compile_pattern
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import load
from binwright.tables.columns import columns_text, parse_columns
from binwright.testing.control_topics import FakeControlTopics

CRD = Path(__file__).parents[3] / "deploy" / "base" / "consumergroups.yaml"


def consumer_group(**spec: object) -> Obj:
    return {"metadata": {"name": "orders"}, "spec": {"topics": ["orders"], **spec}}


def test_a_group_has_its_own_price_of_zones() -> None:
    assert settings_of(consumer_group(zonePrice=1.5), load_settings()).controller.zone_price == 1.5
    with pytest.raises(SettingsError, match="needs the packing sticky"):
        settings_of(consumer_group(zonePrice=1.5, packing="mwf"), load_settings())


def test_a_group_may_split_partitions() -> None:
    assert settings_of(consumer_group(split=True), load_settings()).controller.split
    with pytest.raises(SettingsError, match="split needs the mode act, not observe"):
        settings_of(consumer_group(split=True, mode="observe"), load_settings())


def test_a_table_has_the_mask_of_its_object_and_no_part_of_it_is_left_out() -> None:
    mask = {"fields": {"mail": "sha256"}, "keyFile": "/run/secrets/mask"}
    table = {"topics": ["orders"], "format": "json", "columns": "mail STRING"}

    def settings(**given: object) -> Settings:
        where = {"where": ["mail is not null"]}
        return settings_of(consumer_group(tables=[{**table, **where, **given}]), load_settings())

    (made,) = settings(mask=mask).tables
    assert made.mask is not None
    assert (made.mask.fields, str(made.mask.key_file)) == (mask["fields"], mask["keyFile"])
    assert made.where == ("mail is not null",)
    assert settings().tables[0].mask is None
    with pytest.raises(SettingsError, match="header: Extra inputs"):
        settings(mask={**mask, "header": {"a": "drop"}})


def test_every_budget_of_the_schema_reaches_the_settings() -> None:
    crd = yaml.safe_load(CRD.read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    names = sorted(schema["properties"]["budgets"]["properties"])
    budgets = {name: 40.0 + number for number, name in enumerate(names)}
    found = settings_of(consumer_group(budgets=budgets), load_settings()).controller
    values = [
        found.catch_up_s,
        found.command_retry_s,
        found.consumer_timeout_s,
        found.plan_timeout_s,
        found.replan_interval_s,
        found.start_timeout_s,
    ]
    assert values == list(budgets.values())


def test_every_control_of_the_schema_reaches_the_settings() -> None:
    crd = yaml.safe_load(CRD.read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields = schema["properties"]["control"]["properties"]
    control = {
        "frozenHours": ["22:00-06:00"],
        "movesPerHour": 5,
        "movesAtATime": 2,
        "movingBytesPerSecond": 1e6,
        "pins": [{"topic": "orders", "partitions": [3], "consumer": 2}],
    }
    assert fields.keys() == control.keys()
    assert fields["pins"]["items"]["properties"].keys() == {"topic", "partitions", "consumer"}
    found = settings_of(consumer_group(control=control), load_settings()).controller
    assert found.frozen_hours == ("22:00-06:00",)
    assert (found.moves_per_hour, found.moves_at_a_time, found.moving_bytes_per_s) == (5, 2, 1e6)
    assert [pin.model_dump() for pin in found.pins] == [
        {"topic": "orders", "partitions": (3,), "slot": 2}
    ]


def test_an_object_without_controls_has_those_of_the_settings() -> None:
    base = load_settings(controller={"moves_per_hour": 7, "pins": [{"topic": "a", "slot": 0}]})
    found = settings_of(consumer_group(control={"movesAtATime": 1}), base).controller
    assert (found.moves_per_hour, found.moves_at_a_time, len(found.pins)) == (7, 1, 1)
    assert settings_of(consumer_group(control={"pins": []}), base).controller.pins == ()


@pytest.mark.parametrize(
    ("control", "fault"),
    [
        ({"pins": [{"topic": "../x", "consumer": 1}]}, "a topic's name"),
        ({"pins": [{"topic": "a", "consumer": 100}]}, r"pins: no slots \[100\]"),
        ({"pins": "a"}, "control.pins"),
        ({"frozenHours": ["late"]}, "not a window of a day"),
        ({"movesPerHour": -1}, "greater than or equal to 0"),
    ],
)
def test_controls_that_do_not_hold_are_refused(control: object, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        settings_of(consumer_group(control=control), load_settings())


@pytest.mark.parametrize("mode", ["observe", "approve", "act"])
def test_a_pause_observes_whatever_the_mode(mode: str) -> None:
    assert settings_of(consumer_group(mode=mode), load_settings()).controller.mode == mode
    assert (
        settings_of(consumer_group(mode=mode, paused=True), load_settings()).controller.mode
        == "observe"
    )


def test_a_new_limit_discards_the_settings_capacity() -> None:
    base = load_settings(controller={"limit_bytes_per_s": 100.0, "capacity_bytes_per_s": 90.0})
    found = settings_of(consumer_group(limitBytesPerSecond=60.0), base).controller
    assert found.capacity == 50.0


def test_slots_may_have_limits_of_their_own() -> None:
    base = load_settings(controller={"slot_limits": {"1": 5.0}})
    found = settings_of(consumer_group(slotLimits={"0": 80, "12": 20.5}), base).controller
    assert found.slot_limits == {0: 80.0, 12: 20.5}
    assert settings_of(consumer_group(), base).controller.slot_limits == {1: 5.0}
    assert settings_of(consumer_group(limitBytesPerSecond=60), base).controller.slot_limits == {}
    with pytest.raises(SettingsError, match="no slots \\[4\\], max_slots is 3"):
        settings_of(consumer_group(slotLimits={"4": 80}, maxConsumers=3), base)


def test_a_group_may_have_a_least_number_of_consumers() -> None:
    found = settings_of(consumer_group(minConsumers=2, maxConsumers=3), load_settings())
    assert group_context(found).config.settings.min_slots == 2
    with pytest.raises(SettingsError, match=r"min_slots \(4\) must not exceed max_slots \(3\)"):
        settings_of(consumer_group(minConsumers=4, maxConsumers=3), load_settings())


def test_topics_may_be_given_by_patterns_and_replace_those_of_the_settings() -> None:
    base = load_settings(topics=["base"], topic_patterns=["b.*"])
    both = group_context(settings_of(consumer_group(topicPatterns=["cl.*", "tea"]), base)).config
    assert [t for t in ("orders", "clicks", "tea", "base") if both.includes(t)] == [
        "orders",
        "clicks",
        "tea",
    ]
    only: Obj = {"metadata": {"name": "x"}, "spec": {"topicPatterns": ["cl.*"]}}
    alone = group_context(settings_of(only, base)).config.topics
    assert alone is not None
    assert (alone.topics, alone.patterns) == (frozenset(), (compile_pattern("cl.*"),))
    assert not group_context(settings_of(consumer_group(), base)).config.includes("base")


def test_an_invalid_pattern_is_named_with_its_index() -> None:
    with pytest.raises(SettingsError, match=r"topicPatterns\.1: .*not a regular expression: '\('"):
        settings_of(consumer_group(topicPatterns=["cl.*", "("]), load_settings())


def test_topics_are_left_out_by_patterns() -> None:
    given = consumer_group(topicPatterns=[".*"], excludeTopicPatterns=["test-.*"])
    config = group_context(settings_of(given, load_settings())).config
    assert [t for t in ("clicks", "test-1") if config.includes(t)] == ["clicks"]


def test_an_object_names_no_files() -> None:
    """The controller would read a file with its own rights."""
    assert not {"columns_file"} & {*TABLE.values(), *KEY.values()}


def test_keys_of_a_table_have_columns_of_their_own() -> None:
    table = {"topics": ["a"], "format": "string", "key": {"format": "csv", "columns": "k INT"}}
    (entry,) = settings_of(consumer_group(tables=[table]), load_settings()).tables
    assert columns_text(entry.table_columns) == "_kafka_key struct<k:int>, value string"


def test_tables_of_columns_replace_those_of_the_settings_and_reach_the_consumers() -> None:
    table = {
        "topicPatterns": ["or.*"],
        "name": "raw_{topic}",
        "format": "json",
        "columns": "id BIGINT",
        "badShare": 0.25,
        "clusterBy": ["id"],
        "statistics": ["_kafka.offset"],
    }
    base = load_settings(tables=[{"topics": ["x"], "format": "json", "columns": "a INT"}])
    found = settings_of(consumer_group(tables=[table]), base)
    (target,) = found.targets("orders")
    entry = target.decoded
    assert entry is not None
    assert target.name == "raw_orders"
    assert entry.parsed == parse_columns("id BIGINT")
    assert entry.bad_share == 0.25
    assert (entry.cluster_by, entry.statistics) == (("id",), ("_kafka.offset",))
    assert "topic_patterns" in environment(found)["BINWRIGHT_TABLES"]
    assert settings_of(consumer_group(), base).tables == base.tables
    with pytest.raises(SettingsError, match=r"columns: .*there is no type 'thing'"):
        settings_of(consumer_group(tables=[table | {"columns": "id THING"}]), base)


@pytest.mark.parametrize("field", ["topicPatterns", "excludeTopicPatterns"])
def test_patterns_of_exponential_time_are_refused_with_a_way_out(field: str) -> None:
    given = {"topicPatterns": [".*"], field: ["(?!test-).*"]}
    with pytest.raises(SettingsError, match=rf"{field}\.0: .*exclude_topic_patterns leaves"):
        settings_of(consumer_group(**given), load_settings())


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"group": ".."}, "group"),
        ({"topics": ["_delta_log"]}, "directories in a lake"),
        ({"topics": ["a/b"]}, "a topic's name"),
        (
            {"sink": {"path": "/lake", "staging": "/lake/orders"}},
            "staging.path and lake.path overlap",
        ),
        ({"sink": {"staging": "/lake"}}, "staging.path and lake.path overlap"),
        ({"sink": 7}, "sink: "),
        ({"budgets": [1]}, "budgets: "),
        ({"topics": "orders"}, "topics: "),
        ({"group": 7}, "group: "),
    ],
)
def test_an_object_must_hold_like_settings(spec: Obj, fault: str) -> None:
    """Its staged files are deleted by age: a table's own must not lie among them."""
    base = load_settings(lake={"path": "/lake"})
    with pytest.raises(SettingsError, match=fault):
        settings_of(consumer_group(**spec), base)


def test_an_object_without_topics_is_refused() -> None:
    nothing: Obj = {"metadata": {"name": "x"}, "spec": {}}
    with pytest.raises(SettingsError, match="neither topics nor topicPatterns"):
        settings_of(nothing, load_settings())


def test_all_invalid_fields_are_named() -> None:
    with pytest.raises(SettingsError, match=r"max_slots: .*; mode: "):
        settings_of(consumer_group(mode="perhaps", maxConsumers=0), load_settings())


def test_a_sink_sets_staging_freshness_and_how_long_rows_are_kept() -> None:
    sink = {
        "path": "s3a://b/t",
        "staging": "s3a://b/s",
        "freshnessSeconds": 30,
        "keepDays": 90,
        "registerAs": "sales.{table}",
    }
    found = settings_of(consumer_group(sink=sink), load_settings())
    assert (found.lake.path, found.staging_path) == ("s3a://b/t", "s3a://b/s/orders")
    variables = environment(found)
    assert variables["BINWRIGHT_LAKE__FRESHNESS_S"] == "30.0"
    assert variables["BINWRIGHT_LAKE__KEEP_DAYS"] == "90.0"
    assert variables["BINWRIGHT_LAKE__REGISTER_AS"] == "sales.{table}"
    assert variables["BINWRIGHT_STAGING__PATH"] == "s3a://b/s"


def test_without_a_staging_path_consumers_stage_below_the_lake() -> None:
    found = settings_of(consumer_group(sink={"path": "s3a://b/t"}), load_settings())
    assert found.staging_path == "s3a://b/t/_staging/orders"
    assert "BINWRIGHT_STAGING__PATH" not in environment(found)


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ({"spark": "sc://spark:443/;use_ssl=true;token=s3cret"}, "holds a token"),
        ({"spark": "sc://a,sc://b/;token=s3cret"}, "set lake.token_file"),
        ({"staging": "s3://key:s3cret@b/s"}, "holds keys"),
    ],
)
def test_a_secret_of_an_object_never_reaches_a_deployment(
    sink: dict[str, str], message: str
) -> None:
    """Users who may read Deployments or ConsumerGroups often may not read Secrets."""
    with pytest.raises(SettingsError, match=message) as caught:
        settings_of(consumer_group(sink=sink), load_settings())
    assert "s3cret" not in str(caught.value)


def test_a_secret_of_the_controller_s_settings_never_reaches_a_deployment() -> None:
    base = load_settings(lake={"spark": "sc://spark:443/;token=s3cret"})
    with pytest.raises(SettingsError, match=r"lake\.token_file"):
        environment(base)


async def test_a_token_in_the_settings_is_refused_before_any_group_is_led() -> None:
    base = load(
        ControllerProgramSettings,
        controller={"fleet": "kubernetes"},
        kubernetes={"groups": True},
        lake={"spark": "sc://spark:443/;token=s3cret"},
    )
    with pytest.raises(SettingsError, match=r"kubernetes\.groups: .*lake\.token_file"):
        async with kubernetes_groups(
            base, FakeControlTopics(), Measurements(FakeControlTopics(), "metrics")
        ):
            pass


def test_the_token_file_of_the_settings_is_kept() -> None:
    base = load_settings(lake={"token_file": "/etc/binwright-spark/token"})
    assert settings_of(consumer_group(), base).lake.token_file == Path("/etc/binwright-spark/token")


def test_what_an_object_gives_no_order_changes() -> None:
    given = consumer_group(packing="sticky:4", budgets={"catchUpSeconds": 60})
    assert given_settings(given) == {"packing", "catch_up_s"}
    found = group_context(settings_of(given, load_settings()), given_settings(given)).config
    assert adoptable(found) == {"packing": None, "replan_interval_s": "60"}
    assert adoptable(group_context(load_settings()).config)["packing"] == "sticky"


WIDE = ", ".join(f"c{n} INT" for n in range(6_000))  # the schema lets 65,536 characters be


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        (
            [{"topics": [f"t{n}"], "format": "json", "columns": WIDE} for n in range(5)],
            "characters of columns, 262,144 at most together",
        ),
        (
            [
                {"topics": [f"t{n}"], "format": "raw", "key": {"format": "csv", "columns": WIDE}}
                for n in range(5)
            ],
            "characters of columns",
        ),
        (
            [{"topics": [f"t{n}-{m}" for m in range(1_000)], "format": "raw"} for n in range(11)],
            "11,001 topics named, 10,000 at most together",
        ),
        (
            [
                {"topics": [f"t{m}" for m in range(1_000)], "format": "raw"},
                *({"topicPatterns": [f"x{n}-{m}" for m in range(100)]} for n in range(11)),
            ],
            "1,001 topics and 1,100 patterns are 1,101,100 pairs, 1,000,000 at most",
        ),
        (
            [{"topicPatterns": [f"x{n}.*" * 9 for _ in range(100)]} for n in range(2)],
            "steps, 5,000 at most together",
        ),
    ],
)
def test_an_object_that_would_cost_its_controller_minutes_is_refused_unread(
    tables: list[dict[str, object]], fault: str
) -> None:
    """Each is within the schema; the controller leads the groups of others, too."""
    with pytest.raises(SettingsError, match=fault):
        settings_of(consumer_group(tables=tables), load_settings())


def test_what_an_object_may_have_at_most_is_read() -> None:
    tables = [{"topics": [f"t{n}-{m}" for m in range(900)], "format": "raw"} for n in range(11)] + [
        {"topicPatterns": [f"x{m}" for m in range(100)], "format": "raw"}
    ]
    settings = settings_of(consumer_group(tables=tables), load_settings())
    assert settings.targets("t10-899")[0].entry == settings.tables[10]
    assert settings.targets("x99")[0].entry == settings.tables[11]
