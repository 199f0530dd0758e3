"""Which pods end with their nodes, run by an older template, or are evicted."""

from typing import Any

import pytest

from binwright.controller.fleets.kubernetes.disruptions import (
    find_disruptions,
    kept_of_node,
    template_change,
)
from binwright.controller.fleets.kubernetes.template import check_template
from binwright.kubernetes.objects import Obj
from binwright.kubernetes.settings import KubernetesSettings
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption

S0, S1 = Slot(0), Slot(1)
TAINTS = frozenset(KubernetesSettings().ending_taints)
SPOT = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
DEDICATED = {"key": "pool", "value": "kafka", "effect": "NoExecute"}


def node(*taints: Obj, **spec: Any) -> Obj:
    full = {
        "metadata": {"name": "worker-3", "uid": "u", "labels": {"zone": "a"}},
        "spec": {**({"taints": list(taints)} if taints else {}), **spec, "podCIDR": "10.0.0.0/24"},
        "status": {"images": ["many"]},
    }
    return kept_of_node(full)


def pod(*tolerations: Obj, ending: bool = False, **more: Any) -> Obj:
    meta = {"name": "p", "deletionTimestamp": "now"} if ending else {"name": "p"}
    spec = {"nodeName": "worker-3", "tolerations": list(tolerations)}
    return {"metadata": meta, "spec": spec, **more}


def reason(found: Obj, *tolerations: Obj) -> str:
    """Return why a pod with these tolerations ends with its node; empty: it does not."""
    pods = [(S0, pod(*tolerations))]
    disruptions = find_disruptions(pods, {"worker-3": found}, TAINTS, {})
    assert {why.kind for why in disruptions.values()} <= {"node"}
    return disruptions[S0].reason if disruptions else ""


def test_a_node_that_serves_ends_no_pod() -> None:
    assert reason(node({"key": "pool", "effect": "NoSchedule"})) == ""


def test_a_cordoned_node_is_drained() -> None:
    assert reason(node(unschedulable=True)) == "node worker-3 is cordoned"


@pytest.mark.parametrize(
    "key", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", SPOT["key"]]
)
def test_a_taint_that_announces_the_end_counts_with_any_effect_and_toleration(key: str) -> None:
    everything = {"operator": "Exists"}
    text = reason(node({"key": key, "effect": "NoSchedule"}, unschedulable=True), everything)
    assert text == f"node worker-3 is about to end (taint {key})"


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [
        (None, False),
        ({"key": "pool", "value": "kafka", "effect": "NoExecute"}, True),
        ({"key": "pool", "value": "kafka"}, True),
        ({"key": "pool", "value": "spark"}, False),
        ({"key": "pool", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "pool", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "pool", "operator": "Exists", "tolerationSeconds": 300}, False),
    ],
)
def test_a_taint_that_ends_pods_counts_for_those_that_do_not_tolerate_it_for_ever(
    toleration: Obj | None, stays: bool
) -> None:
    text = "" if stays else "node worker-3 ends its pods (taint pool)"
    assert reason(node(DEDICATED), *filter(None, [toleration])) == text


def test_a_pod_without_a_node_or_on_an_unknown_one_is_not_disrupted() -> None:
    waiting: Obj = {"metadata": {"name": "p"}, "spec": {}}
    cordoned = {"worker-9": node(unschedulable=True)}
    assert find_disruptions([(S0, waiting), (S1, pod())], cordoned, TAINTS, {}) == {}


def test_a_node_that_goes_comes_before_an_older_template() -> None:
    cordoned = {"worker-3": node(unschedulable=True)}
    changes = {S0: "its image changes", S1: "its image changes"}
    assert find_disruptions([(S0, pod())], cordoned, TAINTS, changes) == {
        S0: Disruption("node", "node worker-3 is cordoned"),
        S1: Disruption("roll", "its image changes"),
    }


def conditions(kind: str, status: str = "True", **more: str) -> Obj:
    return {"conditions": [{"type": "Ready", "status": "True"}, condition(kind, status, **more)]}


def condition(kind: str, status: str, **more: str) -> Obj:
    return {"type": kind, "status": status, **more}


def test_a_pod_that_the_platform_asks_to_end_is_evicted_for_its_reason() -> None:
    status = conditions("DisruptionTarget", reason="EvictionByEvictionAPI")
    found = find_disruptions([(S0, pod(ending=True, status=status))], {}, TAINTS, {})
    assert found == {S0: Disruption("evicted", "its pod is evicted (EvictionByEvictionAPI)")}


@pytest.mark.parametrize(
    "status", [{}, conditions("DisruptionTarget", "False"), conditions("PodScheduled")]
)
def test_a_pod_that_ends_for_no_reason_of_the_platform_is_not_evicted(status: Obj) -> None:
    assert find_disruptions([(S0, pod(ending=True, status=status))], {}, TAINTS, {}) == {}


def test_a_slot_whose_next_pod_runs_is_not_evicted_any_more() -> None:
    ending = pod(ending=True, status=conditions("DisruptionTarget"))
    assert find_disruptions([(S0, ending), (S0, pod())], {}, TAINTS, {}) == {}


def deployment(image: str) -> Obj:
    return {"spec": {"template": {"spec": {"containers": containers(image)}}}}


def containers(image: str) -> list[Obj]:
    return [{"name": "side", "image": "s"}, {"name": "consumer", "image": image}]


def test_a_roll_names_the_images() -> None:
    template = check_template({"spec": {"containers": containers("a:2")}}, "test")
    assert template_change(deployment("a:1"), template) == "its image changes from a:1 to a:2"
    same = "its template or its settings change"
    assert template_change(deployment("a:2"), template) == same
