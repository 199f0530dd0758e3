"""A ConsumerGroup object as settings."""

import re
from pathlib import Path

import pytest
import yaml

from binwright.controller.deploy import kubernetes_groups
from binwright.controller.kube.api import Obj
from binwright.controller.kube.spec import environment, settings_of
from binwright.controller.measurements import Measurements
from binwright.controller.realm import realm
from binwright.core.errors import SettingsError
from binwright.shell.settings import load_settings
from binwright.testing.bus import FakeBus

CRD = Path(__file__).parents[2] / "deploy" / "base" / "consumergroups.yaml"


def made(**spec: object) -> Obj:
    return {"metadata": {"name": "orders"}, "spec": {"topics": ["orders"], **spec}}


def test_every_budget_of_the_schema_reaches_the_settings() -> None:
    crd = yaml.safe_load(CRD.read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    names = sorted(schema["properties"]["budgets"]["properties"])
    budgets = {name: 40.0 + number for number, name in enumerate(names)}
    found = settings_of(made(budgets=budgets), load_settings()).controller
    told = [
        found.consumer_timeout_s,
        found.look_again_s,
        found.plan_timeout_s,
        found.repeat_s,
        found.start_timeout_s,
    ]
    assert told == list(budgets.values())


@pytest.mark.parametrize("mode", ["observe", "approve", "act"])
def test_a_pause_observes_whatever_the_mode(mode: str) -> None:
    assert settings_of(made(mode=mode), load_settings()).controller.mode == mode
    assert settings_of(made(mode=mode, pause=True), load_settings()).controller.mode == "observe"


def test_a_capacity_of_the_settings_belongs_to_their_limit() -> None:
    base = load_settings(controller={"limit_bytes_per_s": 100.0, "capacity_bytes_per_s": 90.0})
    found = settings_of(made(limitBytesPerSecond=60.0), base).controller
    assert found.capacity == 50.0


def test_slots_may_have_limits_of_their_own() -> None:
    base = load_settings(controller={"slot_limits": {"1": 5.0}})
    found = settings_of(made(slotLimits={"0": 80, "12": 20.5}), base).controller
    assert found.slot_limits == {0: 80.0, 12: 20.5}
    assert settings_of(made(), base).controller.slot_limits == {1: 5.0}
    assert settings_of(made(limitBytesPerSecond=60), base).controller.slot_limits == {}
    with pytest.raises(SettingsError, match="no slots \\[4\\], max_slots is 3"):
        settings_of(made(slotLimits={"4": 80}, maxConsumers=3), base)


def test_a_group_may_have_a_least_number_of_consumers() -> None:
    found = settings_of(made(minConsumers=2, maxConsumers=3), load_settings())
    assert realm(found).rules.min_slots == 2
    with pytest.raises(SettingsError, match=r"min_slots \(4\) must not exceed max_slots \(3\)"):
        settings_of(made(minConsumers=4, maxConsumers=3), load_settings())


def test_topics_may_be_given_by_patterns_and_those_of_the_settings_do_not_count() -> None:
    base = load_settings(topics=["base"], topic_patterns=["b.*"])
    both = realm(settings_of(made(topicPatterns=["cl.*", "tea"]), base)).rules
    assert [t for t in ("orders", "clicks", "tea", "base") if both.takes(t)] == [
        "orders",
        "clicks",
        "tea",
    ]
    only: Obj = {"metadata": {"name": "x"}, "spec": {"topicPatterns": ["cl.*"]}}
    alone = realm(settings_of(only, base)).rules.topics
    assert alone is not None
    assert (alone.topics, alone.patterns) == (frozenset(), (re.compile("cl.*"),))
    assert not realm(settings_of(made(), base)).rules.takes("base")


def test_a_pattern_that_is_none_is_named_with_its_place() -> None:
    with pytest.raises(SettingsError, match=r"topicPatterns\.1: .*not a regular expression: '\('"):
        settings_of(made(topicPatterns=["cl.*", "("]), load_settings())


def test_a_group_of_no_topics_does_not_take_what_others_measure() -> None:
    nothing: Obj = {"metadata": {"name": "x"}, "spec": {}}
    with pytest.raises(SettingsError, match="neither topics nor topicPatterns"):
        settings_of(nothing, load_settings())


def test_all_that_does_not_hold_is_named() -> None:
    with pytest.raises(SettingsError, match=r"max_slots: .*; mode: "):
        settings_of(made(mode="perhaps", maxConsumers=0), load_settings())


def test_a_sink_says_where_rows_are_staged_and_how_old_they_may_be() -> None:
    sink = {"path": "s3a://b/t", "staging": "s3a://b/s", "freshnessSeconds": 30}
    found = settings_of(made(sink=sink), load_settings())
    assert (found.lake.path, found.staging_path) == ("s3a://b/t", "s3a://b/s")
    told = environment(found)
    assert told["BINWRIGHT_LAKE__FRESHNESS_S"] == "30.0"
    assert told["BINWRIGHT_STAGING__PATH"] == "s3a://b/s"


def test_without_a_staging_place_consumers_find_it_below_the_lake() -> None:
    found = settings_of(made(sink={"path": "s3a://b/t"}), load_settings())
    assert found.staging_path == "s3a://b/t/_staging/orders"
    assert "BINWRIGHT_STAGING__PATH" not in environment(found)


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ({"spark": "sc://spark:443/;use_ssl=true;token=s3cret"}, "holds a token"),
        ({"spark": "sc://a,sc://b/;token=s3cret"}, "set lake.token_file"),
        ({"staging": "s3://key:s3cret@b/s"}, "holds keys"),
    ],
)
def test_a_secret_never_reaches_a_deployment(sink: dict[str, str], words: str) -> None:
    """Who may read Deployments or ConsumerGroups may often not read Secrets."""
    with pytest.raises(SettingsError, match=words) as told:
        settings_of(made(sink=sink), load_settings())
    assert "s3cret" not in str(told.value)


def test_nor_does_one_of_the_controllers_own_settings() -> None:
    base = load_settings(lake={"spark": "sc://spark:443/;token=s3cret"})
    with pytest.raises(SettingsError, match=r"lake\.token_file"):
        environment(base)


async def test_groups_do_not_begin_with_a_token_in_the_settings() -> None:
    base = load_settings(
        controller={"fleet": "kubernetes"},
        kubernetes={"groups": True},
        lake={"spark": "sc://spark:443/;token=s3cret"},
    )
    with pytest.raises(SettingsError, match=r"kubernetes\.groups: .*lake\.token_file"):
        async with kubernetes_groups(base, FakeBus(), Measurements(FakeBus(), "metrics")):
            pass


def test_the_token_file_is_named_by_the_settings_that_consumers_mount() -> None:
    base = load_settings(lake={"token_file": "/etc/binwright-spark/token"})
    assert settings_of(made(), base).lake.token_file == Path("/etc/binwright-spark/token")
