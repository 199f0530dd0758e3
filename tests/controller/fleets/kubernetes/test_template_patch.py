"""What a ConsumerGroup may set of its consumers' pod gives no right, and names no other program."""

import re
from ast import literal_eval
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from tests.controller.fleets.kubernetes.refused_patches import (
    ALLOWED,
    PREFERRED,
    REFUSED,
    REQUIRED,
    consumer,
)

from binwright.controller.fleets.kubernetes.template import check_template
from binwright.controller.fleets.kubernetes.template_patch import (
    CONTROL_PLANE,
    NAMESPACES,
    POD,
    RESOURCES,
    VARIABLES,
    check_patch,
    patched,
)
from binwright.kubernetes.objects import Obj
from binwright.kubernetes.settings import KubernetesSettings
from binwright.protocol.errors import TemplateRefused
from binwright.runtime.settings.consumer import ConsumerSettings

ROOT = Path(__file__).parents[4]
POLICY = ROOT / "deploy" / "restricted-templates" / "policy.yaml"
PAGE = ROOT / "docs" / "how-to" / "consumer-groups.md"
SETTINGS = KubernetesSettings()
OPERATORS: Obj = {
    "metadata": {"labels": {"network": "closed"}},
    "spec": {
        "serviceAccountName": "binwright-consumer",
        "nodeSelector": {"pool": "consumers"},
        "tolerations": [{"key": "old"}],
        "containers": [
            {"name": "beside", "image": "y"},
            {
                "name": "consumer",
                "image": "x",
                "resources": {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}},
                "env": [
                    {"name": "BINWRIGHT_LOG_LEVEL", "valueFrom": {"fieldRef": {}}},
                    {"name": "BINWRIGHT_SETTINGS", "value": "/etc/x"},
                ],
            },
        ],
    },
}


def over_the_operators(patch: Obj, settings: KubernetesSettings = SETTINGS) -> Obj:
    check_patch(patch, "object", settings)
    return patched(check_template(OPERATORS, "ConfigMap"), patch, "object").pod


@pytest.mark.parametrize("name", REFUSED)
def test_a_field_that_gives_a_right_is_refused_by_its_path(name: str) -> None:
    patch, path = REFUSED[name]
    with pytest.raises(TemplateRefused) as refused:
        check_patch(patch, "here", SETTINGS)
    assert path in str(refused.value)
    assert 'kubernetes.templates = "restricted"' in str(refused.value)


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        (7, "a template that is no mapping"),
        ({"metadata": []}, "metadata that is no mapping"),
        ({"metadata": {"labels": "x"}}, "metadata.labels that is no mapping"),
        ({"spec": None}, "spec that is no mapping"),
        ({"spec": {"affinity": None}}, "spec.affinity that is no mapping"),
        ({"spec": {"tolerations": {}}}, "spec.tolerations that is no list"),
        ({"spec": {"priorityClassName": 7}}, "spec.priorityClassName that is no text"),
        ({"spec": {"terminationGracePeriodSeconds": "7"}}, "Seconds that is no number"),
        ({"spec": {"containers": {}}}, "spec.containers other than one"),
        ({"spec": {"containers": [7]}}, "spec.containers other than one"),
        (consumer(resources=7), "consumer.resources that is no mapping"),
        (consumer(resources={"limits": 7}), "resources.limits that is no mapping"),
        (consumer(env=7), "env that is no list"),
        (consumer(env=[7]), "env.0 without a name"),
        (consumer(env=[{"name": "BINWRIGHT_LOG_LEVEL", "value": 7}]), "env.0 (BINWRIGHT_LOG_L"),
        ({f"x{n}": 1 for n in range(50)}, "x9; and 40 more"),
    ],
)
def test_what_has_another_form_is_refused(patch: object, path: str) -> None:
    with pytest.raises(TemplateRefused) as refused:
        check_patch(patch, "here", SETTINGS)
    assert path in str(refused.value)


@pytest.mark.parametrize("odd", [7, [7], [{"podAffinityTerm": 7}], None])
def test_an_affinity_of_another_form_is_left_to_the_api_server(odd: object) -> None:
    for kind in (REQUIRED, PREFERRED):
        check_patch({"spec": {"affinity": {"podAffinity": {kind: odd}}}}, "here", SETTINGS)


@pytest.mark.parametrize("odd", [7, None, {"key": 7}])
def test_a_toleration_of_another_form_is_left_to_the_api_server(odd: object) -> None:
    check_patch({"spec": {"tolerations": [odd]}}, "here", SETTINGS)


def test_an_operator_names_labels_prefixes_and_classes() -> None:
    labels = {"app": "a", "example.com/team": "a", "example.com/x": "b"}
    patch = {
        "metadata": {"labels": labels, "annotations": labels},
        "spec": {"priorityClassName": "bulk"},
    }
    chosen = KubernetesSettings(
        template_labels=("app", "example.com/"), template_priority_classes=("bulk",)
    )
    check_patch(patch, "here", chosen)
    for settings in (
        SETTINGS,
        chosen.model_copy(update={"template_labels": ("app", "example.com")}),
        chosen.model_copy(update={"template_priority_classes": ()}),
    ):
        with pytest.raises(TemplateRefused):
            check_patch(patch, "here", settings)


def test_the_documented_example_is_allowed() -> None:
    (text,) = re.findall(r"```yaml\n(spec:\n  template:\n.*?)```", PAGE.read_text(), re.DOTALL)
    check_patch(yaml.safe_load(text)["spec"]["template"], "here", SETTINGS)


def test_an_objects_fields_are_laid_over_the_operators_template() -> None:
    pod = over_the_operators(ALLOWED)
    spec, own = pod["spec"], ALLOWED["spec"]
    assert pod["metadata"]["labels"] == {"network": "closed", "team": "a"}
    assert pod["metadata"]["annotations"] == {"cost-center": "7"}
    assert spec["serviceAccountName"] == "binwright-consumer"
    assert spec["nodeSelector"] == {"pool": "consumers", "disk": "fast"}
    assert spec["tolerations"] == own["tolerations"]
    beside, container = spec["containers"]
    assert beside == {"name": "beside", "image": "y"}
    assert container["image"] == "x"
    assert container["resources"] == {
        "requests": {"cpu": "10m", "memory": "10Mi"},
        "limits": {"memory": "1Gi"},
    }
    assert container["env"] == [
        {"name": "BINWRIGHT_SETTINGS", "value": "/etc/x"},
        *own["containers"][0]["env"],
    ]


def test_the_operators_labels_and_nodes_stand() -> None:
    """Network policies go by the labels, and pools of nodes by the selector."""
    pod = over_the_operators(
        {
            "metadata": {"labels": {"network": "open"}},
            "spec": {"nodeSelector": {"pool": "control"}},
        },
        KubernetesSettings(template_labels=("network",)),
    )
    assert pod["metadata"]["labels"] == {"network": "closed"}
    assert pod["spec"]["nodeSelector"] == {"pool": "consumers"}


def test_neither_template_is_changed() -> None:
    before = deepcopy((OPERATORS, ALLOWED))
    over_the_operators(ALLOWED)
    assert before == (OPERATORS, ALLOWED)


@pytest.mark.parametrize("patch", [{}, {"metadata": {}, "spec": {}}])
def test_an_empty_template_is_the_operators(patch: Obj) -> None:
    assert over_the_operators(patch)["spec"] == OPERATORS["spec"]


def test_what_no_pod_can_be_is_refused_after_the_merge() -> None:
    deep: Obj = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(TemplateRefused, match="ConfigMap with object: cannot be written as JSON"):
        over_the_operators({"spec": {"affinity": deep}})


def test_no_setting_of_a_consumer_that_an_object_may_give_names_a_file_or_a_server() -> None:
    """`BINWRIGHT_CONSUMER__*` is allowed as a whole: each is a size, a time or a choice.

    Or a zone: brokers and the controller compare it with other names, and nobody opens it.
    """
    for name, field in ConsumerSettings.model_json_schema()["properties"].items():
        for kind in field.get("anyOf", [field]):
            allowed = kind["type"] in {"integer", "number", "null"} or "enum" in kind
            assert allowed or name == "zone", name


def test_the_policy_has_the_same_lists() -> None:
    policy, binding = yaml.safe_load_all(POLICY.read_text())
    (refused,) = [v for v in policy["spec"]["variables"] if v["name"] == "refused"]
    pod = ", ".join(f"'{name}'" for name in sorted([*POD, "containers"]))
    text = refused["expression"]
    assert f"[{pod}]" in text
    assert f"'{VARIABLES}'" in text
    assert all(f"'{name}'" in text for name in (*RESOURCES, *NAMESPACES, *CONTROL_PLANE))
    variables = {v["name"]: v["expression"] for v in policy["spec"]["variables"]}
    assert literal_eval(variables["labelNames"]) == [*SETTINGS.template_labels]
    assert literal_eval(variables["priorityClasses"]) == [*SETTINGS.template_priority_classes]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
