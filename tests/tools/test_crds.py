"""The fields of custom resources follow the settings behind them."""

from typing import Any

import pytest
import yaml
from tools import crds
from tools.crds import DEPLOY, RESOURCES, Fields, written

from binwright.runtime.settings.consumer import ConsumerSettings

NAMES = {"start": "start", "reportSeconds": "report_s", "zone": "zone"}


@pytest.mark.parametrize("file", RESOURCES)
def test_the_files_are_what_the_settings_give(file: str) -> None:
    assert (DEPLOY / file).read_text() == written(file), "python -m tools.crds"


def test_a_setting_becomes_a_field_and_what_kubernetes_adds_stays(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields: dict[str, Any] = {
        "start": {"type": "integer", "default": "latest"},
        "reportSeconds": {"type": "number", "minimum": 1, "maximum": 9},
        "gone": {"type": "string"},
    }
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": fields}}}}
    (tmp_path / "file.yaml").write_text(yaml.dump({"spec": {"versions": [{"schema": schema}]}}))
    monkeypatch.setattr(crds, "DEPLOY", tmp_path)
    fields_of = Fields((), ConsumerSettings, NAMES, whole=True, defaults=True)
    monkeypatch.setitem(crds.RESOURCES, "file.yaml", (fields_of,))
    found = yaml.safe_load(written("file.yaml"))["spec"]["versions"][0]["schema"]
    found = found["openAPIV3Schema"]["properties"]["spec"]["properties"]
    described = {name: field.pop("description") for name, field in found.items()}
    assert described["reportSeconds"] == "Interval between reports to the controller. Unset: 1."
    assert found == {
        "start": {"type": "string", "enum": ["earliest", "latest"], "default": "latest"},
        "reportSeconds": {"type": "number", "minimum": 1, "maximum": 9},
        "zone": {"type": "string"},
    }
