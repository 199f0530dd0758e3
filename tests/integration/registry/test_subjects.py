"""`binwright doctor` asks a real registry for the subjects that tables have their columns of."""

from pathlib import Path

import pytest
from tests.consumer.decode.avro import record
from tests.integration.examination import examined
from tests.integration.registry.server import RegistryServer

pytestmark = pytest.mark.integration

AWAY = "127.0.0.1:9"  # nobody listens there
SCHEMA = record(("id", "long"))


async def test_each_subject_is_looked_up_although_kafka_is_away(
    registry: RegistryServer, lake: Path
) -> None:
    topics = ["doctor-known", "doctor-unknown", "doctor-bytes"]
    registry.register("doctor-known-value", SCHEMA)
    avro = {"topics": topics[:2], "format": "avro"}
    report = await examined(
        AWAY, lake, f"sc://{AWAY}", topics=topics, tables=[avro], registry={"url": registry.url}
    )
    assert report.of("ok")["registry subject doctor-known-value"].startswith("1 versions")
    assert "no such subject" in report.of("fault")["registry subject doctor-unknown-value"]
    assert not [each for each in report.findings if "doctor-bytes" in each["check"]]


async def test_subjects_of_every_format_are_looked_up(registry: RegistryServer, lake: Path) -> None:
    formats = ("avro", "protobuf", "json")
    tables: list[dict[str, object]] = [
        {"topics": [f"doctor-{name}"], "format": name} for name in formats
    ]
    named = {"topics": ["doctor-named"], "format": "json", "columns": "id BIGINT"}
    report = await examined(
        AWAY,
        lake,
        f"sc://{AWAY}",
        topics=[f"doctor-{name}" for name in (*formats, "named")],
        tables=[*tables, named],
        registry={"url": registry.url},
    )
    subjects = {check for check in report.of("fault") if check.startswith("registry")}
    assert subjects == {f"registry subject doctor-{name}-value" for name in formats}


async def test_a_registry_that_is_away_is_named(lake: Path) -> None:
    avro = {"topics": ["orders"], "format": "avro", "columns": "id BIGINT"}
    report = await examined(
        AWAY, lake, f"sc://{AWAY}", tables=[avro], registry={"url": f"http://{AWAY}"}
    )
    assert "Connection refused" in report.of("fault")["registry"]
