"""A ScaledGroup names a workload that can be scaled."""

import pytest

from binwright.protocol.errors import SettingsError
from binwright.scaler.objects.spec import WorkloadRef, workload_of


def scaled_group(workload: object) -> dict[str, object]:
    return {"metadata": {"name": "x", "namespace": "team-a"}, "spec": {"workload": workload}}


def test_a_workload_without_a_kind_is_a_deployment() -> None:
    assert workload_of(scaled_group({"name": "app"})) == WorkloadRef("Deployment", "team-a", "app")
    other = scaled_group({"kind": "StatefulSet", "name": "app"})
    assert str(workload_of(other)) == "statefulset/app"


@pytest.mark.parametrize("workload", [None, 7, {}, {"name": 7}, {"kind": "Job", "name": "app"}])
def test_what_names_no_workload_is_refused(workload: object) -> None:
    with pytest.raises(SettingsError, match="workload"):
        workload_of(scaled_group(workload))
