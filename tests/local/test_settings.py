"""What the servers are told by us."""

from pathlib import Path

from binwright.local.kafka import broker
from binwright.local.spark import connect


def test_a_cluster_id_never_looks_like_an_option() -> None:
    drawn = [broker.new_cluster_id() for _ in range(1_000)]
    assert not [one for one in drawn if one.startswith("-")]
    assert len(set(drawn)) == len(drawn)


def test_javas_properties_keep_what_is_not_ascii() -> None:
    text = broker.properties_text({"log.dirs": "C:\\ü 🦉", "a": "x=1\ny"})
    assert text == "log.dirs=C:\\\\\\u00fc \\ud83e\\udd89\na=x=1\\ny\n"


def test_the_broker_listens_on_this_machine_only() -> None:
    settings = broker.default_settings(Path("/home"), 1, 2)
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"
    assert settings["auto.create.topics.enable"] == "false"


def test_spark_leaves_its_traces_in_its_directory() -> None:
    settings = connect.default_settings(Path("/home/s"), 1, 2)
    assert settings["spark.local.dir"] == "/home/s/tmp"
    assert settings["spark.sql.warehouse.dir"] == "/home/s/warehouse"
    assert settings["spark.connect.grpc.binding.address"] == "127.0.0.1"
