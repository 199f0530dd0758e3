"""The settings of our side of the bench of landing."""

from pathlib import Path

import pytest
from bench.landing.binwright_side import GroupOptions, settings
from bench.landing.forms import BYTES, JSON, Form, avro

from binwright.runtime.settings.kafka import KafkaSettings

REGISTRY = "http://127.0.0.1:8081"


@pytest.mark.parametrize(
    ("form", "registry"), [(BYTES, None), (JSON, None), (avro(REGISTRY, 1), REGISTRY)]
)
def test_each_form_of_table_has_settings(form: Form, registry: str | None, tmp_path: Path) -> None:
    group = GroupOptions(name="bench", topics=["orders"], form=form)
    found = settings(group, KafkaSettings(), "sc://localhost", tmp_path)
    assert found.registry.url == registry
    assert bool(found.tables) == bool(form.entry)
