"""Settings are checked as a whole, before anything starts."""

from pathlib import Path
from typing import Any

import pytest

from binwright.inspect import settings_file
from binwright.protocol.errors import SettingsError
from binwright.protocol.section import Section
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import load, settings_environment
from binwright.runtime.settings.programs import EVERY_NAME, ProgramSettings, TopicSettings


def test_the_environment_wins_over_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "binwright.toml"
    file.write_text('group = "a"\ntopics = ["x", "y"]\n[monitor]\nwindow_s = 10\ninterval_s = 2\n')
    monkeypatch.setenv("BINWRIGHT_SETTINGS", str(file))
    monkeypatch.setenv("BINWRIGHT_MONITOR__WINDOW_S", "20")
    settings = load_settings()
    assert settings.group == "a"
    assert settings.topics == ("x", "y")
    assert (settings.monitor.window_s, settings.monitor.interval_s) == (20.0, 2.0)


def test_all_faults_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_CONTROLLER__LIMIT_BYTES_PER_S", "0")
    monkeypatch.setenv("BINWRIGHT_KAFKA__BOOTSTRAP", "x:1")
    monkeypatch.setenv("BINWRIGHT_TOPICS", '["a", "a"]')
    with pytest.raises(SettingsError) as result:
        load_settings()
    text = str(result.value)
    assert "controller.limit_bytes_per_s: must be greater than 0, got '0'" in text
    assert "kafka.bootstrap: there is no such setting; did you mean bootstrap_servers?" in text
    assert "topics: named twice: a" in text


@pytest.mark.parametrize(
    ("section", "values", "result"),
    [
        ("controller", {"capacity_bytes_per_s": 20}, "limit_bytes_per_s is auto: give both"),
        ("controller", {"limit_bytes_per_s": "much"}, "limit_bytes_per_s: must be"),
        ("controller", {"slot_limits": {1: 0.0}}, "greater than 0"),
        ("controller", {"capacity_bytes_per_s": -1}, "greater than 0"),
        ("controller", {"capacity_bytes_per_s": "fast"}, "must be a number"),
        ("controller", {"zone_price": -1}, "zone_price: must be at least 0"),
        ("monitor", {"window_s": 1.5}, "at least twice interval_s"),
        ("monitor", {"pattern": "("}, r"pattern: not a regular expression: '\(': missing \)"),
        ("consumer", {"batch_cap_bytes": 1}, "at least batch_bytes"),
        ("lake", {"spark": "http://there:1"}, "expected a Spark Connect address"),
        ("lake", {"spark": "sc://a:1,b:2"}, "expected a Spark Connect address"),
        ("lake", {"path": ""}, "must name a directory"),
        ("staging", {"path": ""}, "must name a directory"),
        ("lake", {"freshness_s": 0}, "greater than 0"),
    ],
)
def test_invalid_values_are_reported(section: str, values: dict[str, object], result: str) -> None:
    with pytest.raises(SettingsError, match=result):
        load_settings(**{section: values})


def test_an_unknown_variable_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_TOPIC", "orders")
    with pytest.raises(
        SettingsError,
        match=r"BINWRIGHT_TOPIC \(did you mean BINWRIGHT_TOPICS\?\)",
    ):
        load_settings()


def test_an_unknown_key_of_the_file_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "binwright.toml"
    file.write_text('topic = "x"\n')
    monkeypatch.setenv("BINWRIGHT_SETTINGS", str(file))
    with pytest.raises(SettingsError, match=r"binwright\.toml, line 1: topic: .*mean topics\?"):
        load_settings()


FAULTY = """\
group = "a b"
topics = "orders"

[kafka]
bootstrap_server = "x:1"
sasl_password = 3

[controller]
max_slots = "many"
fleet = "docker"
slot_limits = { 0 = "x" }
"""
UNKNOWN = "there is no such setting; did you mean bootstrap_servers?"
NAME = "letters, digits, '.', '_' and '-' only, 200 at most, and is neither '.' nor '..'"
FLEETS = "'process', 'kubernetes' or 'fixed'"


def test_each_fault_of_a_file_names_its_line_and_what_a_value_looks_like(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "b.toml"
    file.write_text(FAULTY)
    monkeypatch.setenv("BINWRIGHT_SETTINGS", str(file))
    monkeypatch.setenv("BINWRIGHT_MONITOR__WINDOW_S", "x")
    with pytest.raises(SettingsError) as result:
        load_settings(lake={"freshness_s": 0})
    assert sorted(str(result.value).splitlines()) == sorted(
        [
            "invalid settings:",
            f"  {file}, line 1: group: a group's name has {NAME}, got 'a b'",
            f"""  {file}, line 2: topics: must be a list, as in ["a", "b"], got 'orders'""",
            f"  {file}, line 5: kafka.bootstrap_server: {UNKNOWN}",
            f"""  {file}, line 6: kafka.sasl_password: must be text, as in "a\"""",
            f"  {file}, line 9: controller.max_slots: must be a whole number, as in 10, got 'many'",
            f"  {file}, line 10: controller.fleet: must be one of {FLEETS}, got 'docker'",
            f"  {file}, line 11: controller.slot_limits.0: must be a number, as in 2.5, got 'x'",
            "  BINWRIGHT_MONITOR__WINDOW_S: monitor.window_s: must be a number, as in 2.5, got 'x'",
            "  lake.freshness_s: must be greater than 0, got 0",
        ]
    )


def test_a_list_in_a_variable_that_is_not_json_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BINWRIGHT_TOPICS", "orders")
    with pytest.raises(SettingsError, match=r"BINWRIGHT_TOPICS is not JSON: write a list as"):
        load_settings()


@pytest.mark.parametrize(("value", "zone"), [("eu-1a", "eu-1a"), ("", None)])
def test_a_zone_from_a_label_that_a_pod_does_not_have_is_not_known(
    monkeypatch: pytest.MonkeyPatch, value: str, zone: str | None
) -> None:
    monkeypatch.setenv("BINWRIGHT_CONSUMER__ZONE", value)
    assert load_settings().consumer.zone == zone


def test_a_file_that_does_not_exist_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_SETTINGS", "/no/such.toml")
    with pytest.raises(SettingsError, match=r"no such file: /no/such\.toml \(--settings, or"):
        load_settings()


def test_a_file_that_is_not_toml_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "binwright.toml"
    file.write_text("topics = [")
    monkeypatch.setenv("BINWRIGHT_SETTINGS", str(file))
    with pytest.raises(SettingsError, match=r"settings cannot be read: .*binwright\.toml: "):
        load_settings()


def test_an_invalid_pattern_is_reported_with_its_location(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_TOPIC_PATTERNS", '["cl.*", "a["]')
    result = r"topic_patterns\[1\]: not a regular expression: 'a\[': missing \]"
    with pytest.raises(SettingsError, match=result):
        load_settings()


def test_topics_may_be_named_fitted_or_left_to_the_monitor() -> None:
    assert load_settings().landed_topics is None
    found = load_settings(topics=["orders"], topic_patterns=["cl.*"]).landed_topics
    assert found is not None
    assert [t for t in ("orders", "clicks", "tea", "cl.landing") if found.includes(t)] == [
        "orders",
        "clicks",
    ]
    some = load_settings(
        topics=["test-1"], topic_patterns=[".*"], exclude_topic_patterns=["test-.*"]
    ).landed_topics
    assert some is not None
    assert [t for t in ("orders", "test-1", "test-2") if some.includes(t)] == ["orders", "test-1"]
    everything = load_settings(topic_patterns=[".*"], monitor={"topic": "rates"}).landed_topics
    assert everything is not None
    assert not everything.includes("rates")


PROGRAMS = (TopicSettings, Settings, *settings_file.PROGRAMS)


def checked(program: type[ProgramSettings]) -> set[str]:
    """Return what a program checks wholly; of another's table it may read one value."""
    tables = {n: getattr(program(), n) for n in program.model_fields}
    return {
        name
        for name, table in tables.items()
        if not isinstance(table, Section) or table.model_config["extra"] == "forbid"
    }


def test_the_names_that_some_program_reads_are_known() -> None:
    assert {name for program in PROGRAMS for name in program.model_fields} == EVERY_NAME


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_passes_over_faults_in_what_only_others_read(
    program: type[ProgramSettings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    others = sorted(EVERY_NAME - checked(program) - {"topics", "topic_patterns"})
    file = tmp_path / "binwright.toml"
    file.write_text("".join(f'[{name}]\ntypo = "x"\n' for name in others))
    monkeypatch.setenv("BINWRIGHT_SETTINGS", str(file))
    for name in others:
        monkeypatch.setenv(f"BINWRIGHT_{name}__TYPO".upper(), "x")
    load(program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_refuses_a_typo_in_its_own_tables(
    program: type[ProgramSettings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tables = [n for n in checked(program) if isinstance(getattr(program(), n), Section)]
    file = tmp_path / "binwright.toml"
    file.write_text("".join(f'[{name}]\ntypo = "x"\n' for name in tables))
    monkeypatch.setenv("BINWRIGHT_SETTINGS", str(file))
    with pytest.raises(SettingsError) as refused:
        load(program)
    found = str(refused.value)
    assert [name for name in tables if f"{name}.typo: there is no such" not in found] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_refuses_a_table_that_none_reads(
    program: type[ProgramSettings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "binwright.toml"
    file.write_text("[controllers]\nmax_slots = 3\n")
    monkeypatch.setenv("BINWRIGHT_SETTINGS", str(file))
    with pytest.raises(SettingsError, match=r"controllers: there is no such setting"):
        load(program)


def test_a_secret_prints_as_stars() -> None:
    kafka = {
        "security_protocol": "SASL_SSL",
        "sasl_username": "me",
        "sasl_password": "s3cret",
    }
    assert "s3cret" not in repr(load_settings(kafka=kafka))


def test_a_child_reads_from_its_environment_what_its_parent_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load_settings(
        topics=("orders", "clicks"),
        kafka={
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_username": "me",
            "sasl_password": "s3cret",
        },
        controller={
            "process_logs": "/tmp/logs",  # noqa: S108 - not used
            "replan_interval_s": 7.5,
            "slot_limits": {3: 5e6},
        },
        lake={"path": "s3a://lake/x"},
    )
    for name, value in settings_environment(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings() == settings


def test_a_relative_lake_is_the_same_place_for_every_process() -> None:
    assert load_settings(lake={"path": "lake"}).lake.path == str(Path("lake").absolute())


def test_service_variables_of_kubernetes_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pod is told of `binwright-spark`: no service of ours would start."""
    for name in ("SERVICE_HOST", "SERVICE_PORT_CONNECT", "PORT", "PORT_15002_TCP_ADDR"):
        monkeypatch.setenv(f"BINWRIGHT_SPARK_{name}", "10.96.0.7")
    load_settings()
    monkeypatch.setenv("BINWRIGHT_SPARK_PATH", "x")
    with pytest.raises(SettingsError, match=r"unknown variables: BINWRIGHT_SPARK_PATH$"):
        load_settings()


def test_tables_are_spread_over_the_servers_that_are_named() -> None:
    lake = load_settings(lake={"spark": "sc://a:1, sc://b:2"}).lake
    assert lake.servers == ("sc://a:1", "sc://b:2")
    found = {topic: lake.server(topic) for topic in ("orders", "clicks", "views", "carts")}
    assert set(found.values()) == set(lake.servers)
    assert found == {topic: lake.server(topic) for topic in found}, "always the same one"


def test_staged_files_are_beside_the_tables_unless_a_place_is_named() -> None:
    assert load_settings(lake={"path": "s3a://lake/"}).staging_path == (
        "s3a://lake/_staging/binwright"
    )
    elsewhere = load_settings(lake={"path": "s3a://lake"}, staging={"path": "s3://fast/x"})
    assert elsewhere.staging_path == "s3://fast/x/binwright"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (None, "/lake/_staging/{}"),
        ("/fast/x/", "/fast/x/{}"),
        ("/fast?x", "/fast?x/{}"),
        ("file:///fast", "file:///fast/{}"),
        ("s3://b", "s3://b/{}"),
        ("s3://b/x?region=eu-west-1", "s3://b/x/{}?region=eu-west-1"),
        ("/lake/_staging", "/lake/_staging/{}"),
        ("/lake/_staging/a", "/lake/_staging/a/{}"),
    ],
)
def test_no_two_groups_stage_in_one_place_whatever_the_settings_name(
    path: str | None, place: str
) -> None:
    found = [
        load_settings(group=group, lake={"path": "/lake"}, staging={"path": path}).staging_path
        for group in ("a", "b")
    ]
    assert found == [place.format("a"), place.format("b")]


LOCAL, BUCKET = {"path": "/lake"}, {"path": "s3a://b/raw"}


@pytest.mark.parametrize(
    ("lake", "staging"),
    [
        (LOCAL, "/lake"),
        (LOCAL, "/lake/"),
        (LOCAL, "file:///lake/./x/.."),
        (LOCAL, "/"),
        (LOCAL, "/lake/orders"),
        (LOCAL, "/lake/orders/_delta_log"),
        (BUCKET, "s3://b/raw?region=eu-west-1"),
        (BUCKET, "s3://key:secret@b"),
        (BUCKET, "s3a://b/raw/orders"),
    ],
)
def test_a_staging_place_that_touches_tables_is_refused(lake: dict[str, str], staging: str) -> None:
    with pytest.raises(SettingsError, match=r"staging\.path and lake\.path overlap"):
        load_settings(lake=lake, staging={"path": staging})


@pytest.mark.parametrize(
    ("lake", "staging"),
    [
        (LOCAL, "/lake/_staging/x"),
        (LOCAL, "/lakeside"),
        (BUCKET, "s3://b/staging"),
        (BUCKET, "s3://other/raw"),
        (BUCKET, "/b/raw"),
    ],
)
def test_a_staging_place_beside_the_tables_is_accepted(lake: dict[str, str], staging: str) -> None:
    found = load_settings(lake=lake, staging={"path": staging}).staging_path
    assert found == f"{staging}/binwright"


@pytest.mark.parametrize(
    "given",
    [
        {"group": ".."},
        {"group": "."},
        {"group": "a/b"},
        {"topics": [".."]},
        {"topics": ["_delta_log"]},
        {"topics": ["_staging"]},
        {"lake": {"vacuum_retention_s": 1}},
        {"lake": {"vacuum_retention_s": 20_000}, "consumer": {"write_timeout_s": 1_300}},
        {"lake": {"log_commits": 63}},
    ],
    ids=str,
)
def test_what_would_reach_other_files_or_delete_needed_ones_is_refused(
    given: dict[str, Any],
) -> None:
    with pytest.raises(SettingsError):
        load_settings(**given)


def test_patterns_match_no_directory_of_a_lake() -> None:
    selected = load_settings(topic_patterns=[".*"]).landed_topics
    assert selected is not None
    assert not any(map(selected.includes, ["_delta_log", "_staging", "_up"]))
    assert selected.includes("_schemas")


def test_keys_of_the_staging_place_are_not_shown() -> None:
    settings = load_settings(staging={"path": "s3://key:s3cret@bucket/x"})
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(("freshness_s", "interval_s"), [(0.5, 0.5), (5.0, 3.75), (60.0, 10.0)])
def test_the_staging_interval_follows_freshness(freshness_s: float, interval_s: float) -> None:
    assert load_settings(lake={"freshness_s": freshness_s}).staging_interval_s == interval_s
    set_ = load_settings(lake={"freshness_s": freshness_s}, consumer={"batch_wait_s": 0.1})
    assert set_.staging_interval_s == 0.1
