"""Options override the settings, and only what is named counts as named."""

from pathlib import Path

import pytest

from binwright.cli.options import named_kafka, named_spark, settings_at
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.programs import FILE_VARIABLE


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(
        """
        topics = ["orders"]
        topic_patterns = ["cl.*"]
        [kafka]
        bootstrap_servers = "kafka:9092"
        request_timeout_s = 7
        [lake]
        spark = "sc://one:15002, sc://two:15002"
        freshness_s = 9
        """
    )
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    return path


def test_without_a_name_there_is_no_kafka_and_no_spark() -> None:
    settings = settings_at(None)
    assert (named_kafka(settings), named_spark(settings)) == (None, None)


def test_addresses_of_the_file_count(file: Path) -> None:
    assert file.exists()
    settings = settings_at(None)
    assert named_kafka(settings) == "kafka:9092"
    assert named_spark(settings) == "sc://one:15002, sc://two:15002"


def test_addresses_of_the_environment_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS", "kafka:1")
    assert named_kafka(settings_at(None)) == "kafka:1"


def test_options_override_the_file_value_by_value(file: Path) -> None:
    assert file.exists()
    settings = settings_at("here:1", topics=("mine",), lake="/lake", spark="sc://here:2")
    assert (named_kafka(settings), named_spark(settings)) == ("here:1", "sc://here:2")
    assert (settings.topics, settings.topic_patterns) == (("mine",), ())
    assert (settings.kafka.request_timeout_s, settings.lake.freshness_s) == (7, 9)
    assert settings.lake.path == "/lake"


def test_an_option_that_is_no_address_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match=r"lake\.spark: expected a Spark Connect address"):
        settings_at(None, spark="here:15002")
