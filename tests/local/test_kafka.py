"""Settings of the embedded brokers."""

from pathlib import Path

from binwright.local.kafka import default_settings, new_cluster_id, properties_text


def test_a_cluster_id_never_looks_like_an_option() -> None:
    drawn = [new_cluster_id() for _ in range(1_000)]
    assert not [one for one in drawn if one.startswith("-")]
    assert len(set(drawn)) == len(drawn)


def test_javas_properties_keep_what_is_not_ascii() -> None:
    text = properties_text({"log.dirs": "C:\\ü 🦉", "a": "x=1\ny"})
    assert text == "log.dirs=C:\\\\\\u00fc \\ud83e\\udd89\na=x=1\\ny\n"


def test_the_broker_listens_on_this_machine_only() -> None:
    settings = default_settings(Path("/home"), 1, 2)
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"
    assert settings["auto.create.topics.enable"] == "false"
