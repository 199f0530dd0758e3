"""ScaledGroup objects of groups that were simulated, and in the place of ScaledObjects."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from binwright.lab.shadow.capacity import Capacity
from binwright.lab.shadow.objects import (
    keda_objects,
    object_name,
    scaled_group,
    translated,
    workload_of,
)
from binwright.lab.shadow.past import GroupPast, read_pasts
from binwright.lab.shadow.ranking import ASSIGNED, LAG, SCALED, Comparison
from binwright.protocol.orders import SimulatedCost
from binwright.scaler.keda.translation import Translation

from .builders import recorded_group, steady

KEDA = Translation(
    "billing-scaler",
    "shop",
    {"group": "orders", "workload": {"kind": "Deployment", "name": "billing"}, "minReplicas": 0},
    50.0,
    ("fallback",),
)


def cost(rule: str, minutes: float) -> SimulatedCost:
    return SimulatedCost(rule=rule, replica_minutes=minutes, within_sla=0.999)


def comparison(*clients: str, basis: Any = "measured") -> Comparison:
    (past,) = read_pasts(list(recorded_group("orders", steady(10), steady(3), seconds=60)), 30.0)
    assert isinstance(past, GroupPast)
    return Comparison(
        past=replace(past, clients=clients),
        capacity=Capacity(400.0, basis),
        own=cost("as-is", 100),
        rules={LAG: None, SCALED: cost(SCALED, 60), ASSIGNED: None},
    )


def parsed(text: str) -> tuple[list[str], dict[str, Any]]:
    comments = [line for line in text.splitlines() if line.startswith("#")]
    return comments, yaml.safe_load(text)


def test_an_object_holds_what_the_recording_shows() -> None:
    text = scaled_group(comparison("billing-0", "billing-1"), 30.0, "orders", None)
    comments, found = parsed(text)
    assert found == {
        "apiVersion": "binwright.dev/v1alpha1",
        "kind": "ScaledGroup",
        "metadata": {"name": "orders"},
        "spec": {
            "group": "orders",
            "workload": {"kind": "StatefulSet", "name": "billing"},
            "maxReplicas": 4,
            "recordsPerSecond": 400.0,
            "slaSeconds": 30.0,
            "beforeReplicas": 3.0,
            "mode": "observe",
        },
    }
    assert len(comments) == 3
    assert "40.0% fewer" in comments[2]


def test_a_workload_that_is_not_known_and_a_lower_bound_are_comments() -> None:
    comments, found = parsed(scaled_group(comparison(basis="seen"), 30.0, "orders", None))
    assert found["spec"]["workload"] == {"kind": "Deployment", "name": "orders"}
    assert "if it sustains more" in comments[0]
    assert "workload is not known" in comments[-1]


def test_what_assigning_would_save_more_is_a_comment() -> None:
    one = comparison("billing-0")
    comments, found = parsed(
        scaled_group(
            replace(one, rules={**one.rules, ASSIGNED: cost(ASSIGNED, 50)}), 5.0, "o", None
        )
    )
    assert "50.0% fewer" in comments[3]
    assert "assigns" not in found["spec"]


def test_keda_s_object_gives_name_workload_and_bounds() -> None:
    comments, found = parsed(scaled_group(comparison("billing-0"), 30.0, "orders", KEDA))
    assert found["metadata"] == {"name": "billing-scaler", "namespace": "shop"}
    spec = found["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"], spec["slaSeconds"]) == (0, 4, 30.0)
    assert spec["workload"] == {"kind": "Deployment", "name": "billing"}
    assert "without: fallback" in comments[-1]


def test_keda_s_object_of_a_group_that_was_not_recorded_is_translated() -> None:
    comments, found = parsed(translated(replace(KEDA, namespace="", left_out=())))
    assert found["metadata"] == {"name": "billing-scaler"}
    assert found["spec"] == {**KEDA.spec, "mode": "observe"}
    assert comments[-1].endswith("which is to be deleted")


@pytest.mark.parametrize(
    ("clients", "workload"),
    [
        (("billing-7c9f8d6b54-x2k9p", "billing-7c9f8d6b54-abcde"), ("Deployment", "billing")),
        (("billing-0", "billing-1"), ("StatefulSet", "billing")),
        (("billing-0", "other-1"), None),
        (("billing-0", "rdkafka"), None),
        (("consumer-orders-1", "consumer-orders-2"), None),  # Kafka's own default
        ((), None),
    ],
)
def test_names_of_pods_name_their_workload(
    clients: tuple[str, ...], workload: tuple[str, str] | None
) -> None:
    found = workload_of("orders", clients)
    assert (found and (found["kind"], found["name"])) == workload


def test_objects_have_names_that_kubernetes_accepts() -> None:
    assert object_name("Team.A_orders!") == "team-a-orders"
    assert object_name("orders", ["orders"]) == "orders-2"
    assert object_name("orders", ["orders", "orders-2"]) == "orders-3"
    assert len(object_name("x" * 200)) == len("x" * 63)
    assert object_name("___") == "group"


def test_scaled_objects_are_found_in_documents_and_lists() -> None:
    one, other = "kind: ScaledObject", "kind: Service"
    several = "kind: List\nitems: [{kind: ScaledObject}]"
    text = f"{one}\n---\n{other}\n---\n\n---\n{several}"
    assert keda_objects(text) == [{"kind": "ScaledObject"}] * 2
