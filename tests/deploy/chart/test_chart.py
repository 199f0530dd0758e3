"""The Helm chart gives what kustomize gives, and what its values say."""

import json
import os
import tomllib
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from tests.deploy.chart.manifests import Objects, check_equal, kustomized, objects
from tests.helm import CHART, helm, run_helm
from tests.programs import ROOT, ProgramMissing
from tools.dist import pack_chart
from tools.locks import project

from binwright.controller.fleets.kubernetes.template import check_template, parse_template
from binwright.kubernetes.objects import Obj
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.programs import FILE_VARIABLE

pytestmark = pytest.mark.kubernetes

DEPLOY = ROOT / "deploy"
NAMESPACE = "binwright"
Render = Callable[..., Objects]


@pytest.fixture(scope="session", autouse=True)
def _tool() -> None:
    """Build Helm, if need be; skip, with the reason, without it."""
    try:
        helm()
    except ProgramMissing as exc:
        pytest.skip(str(exc))


@pytest.fixture
def render(tmp_path: Path) -> Render:
    def rendered(values: Obj | None = None, *arguments: str) -> Objects:
        file = tmp_path / "values.yaml"
        file.write_text(json.dumps(values or {}))
        where = ("--namespace", NAMESPACE, "--values", str(file))
        done = run_helm("template", "release", str(CHART), *where, *arguments, home=tmp_path)
        assert done.returncode == 0, done.stderr
        return objects(done.stdout)

    return rendered


def refusal(tmp_path: Path, *arguments: str) -> str:
    """Render with values that are refused; return why."""
    done = run_helm("template", "release", str(CHART), *arguments, home=tmp_path)
    assert done.returncode != 0
    return done.stderr


def test_the_defaults_give_the_manifests(render: Render, binaries: Path) -> None:
    check_equal(render(), kustomized(binaries, DEPLOY / "base"))


def test_a_volume_gives_the_local_overlay(render: Render, binaries: Path) -> None:
    manifests = kustomized(binaries, DEPLOY / "overlays" / "local")
    settings = manifests["ConfigMap", "binwright-settings"]["data"]["binwright.toml"]
    values = {"lake": {"claim": "binwright-lake", "size": "10Gi"}, "settings": settings}
    check_equal(render(values), manifests)


EVERYTHING: Obj = {
    "scaler": {"enabled": True, "allNamespaces": True},
    "balancer": {"enabled": True},
    "restrictedTemplates": {"enabled": True},
    "controller": {"allNamespaces": True, "nodeDrains": True},
}


TLS_CA = "/etc/binwright-spark-ca/ca.crt"
TLS: Obj = {
    "spark": {"tls": {"enabled": True, "image": "haproxy:own"}},
    "settings": {
        "lake": {
            "spark": "sc://binwright-spark:15002/;use_ssl=true",
            "ca_file": TLS_CA,
            "allow_cleartext_token": None,
        }
    },
}


def test_with_tls_it_gives_what_the_component_gives(
    render: Render, binaries: Path, tmp_path: Path
) -> None:
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [os.path.relpath(DEPLOY / "base", tmp_path.resolve())],
        "components": [os.path.relpath(DEPLOY / "spark-tls", tmp_path.resolve())],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    chart, manifests = render(TLS), kustomized(binaries, tmp_path)
    lake = chart["ConfigMap", "binwright-settings"]["data"]["binwright.toml"]["lake"]
    assert (lake["ca_file"], "allow_cleartext_token" in lake) == (TLS_CA, False)
    for each in (chart, manifests):
        del each["ConfigMap", "binwright-settings"]
    proxy = manifests["Deployment", "binwright-spark"]["spec"]["template"]["spec"]["containers"]
    next(each for each in proxy if each["name"] == "tls")["image"] = "haproxy:own"
    check_equal(chart, manifests)


@pytest.mark.parametrize(
    "lake", [{"spark": "sc://binwright-spark:15002"}, {"allow_cleartext_token": True}]
)
def test_with_tls_a_token_in_clear_text_is_refused(tmp_path: Path, lake: Obj) -> None:
    settings = {"lake": {**TLS["settings"]["lake"], **lake}}
    (tmp_path / "more.json").write_text(json.dumps({**TLS, "settings": settings}))
    assert "use_ssl=true" in refusal(tmp_path, "--values", str(tmp_path / "more.json"))


def test_all_that_can_be_turned_on_gives_the_manifests(
    render: Render, binaries: Path, tmp_path: Path
) -> None:
    def paths(*names: str) -> list[str]:
        return [os.path.relpath(DEPLOY / name, tmp_path.resolve()) for name in names]

    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": paths("base", "scaler", "balancer"),
        "components": paths(
            "restricted-templates", "all-namespaces", "node-drains", "scaler/all-namespaces"
        ),
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    check_equal(render(EVERYTHING), kustomized(binaries, tmp_path))


def test_labels_and_classes_of_the_settings_are_in_the_policy(render: Render) -> None:
    chosen = {"template_labels": ["example.com/", "team"], "template_priority_classes": []}
    values = {**EVERYTHING, "settings": {"kubernetes": chosen}}
    policy = render(values)["ValidatingAdmissionPolicy", "consumergroups.binwright.dev"]
    variables = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}
    assert json.loads(variables["labelNames"]) == chosen["template_labels"]
    assert json.loads(variables["priorityClasses"]) == []


def test_without_spark_nothing_of_it_is_left(render: Render) -> None:
    chart = render({"spark": {"enabled": False}})
    assert not [name for _, name in chart if name.startswith("binwright-spark")]
    assert ("Deployment", "binwright-controller") in chart


def containers(chart: Objects) -> dict[str, Obj]:
    """Return the containers of all pods, and of the consumers' template, by name."""
    pods = [
        each["spec"]["template"]["spec"]
        for (kind, _), each in chart.items()
        if kind == "Deployment"
    ]
    pods.append(consumer(chart)["spec"])
    return {each["name"]: each for pod in pods for each in pod["containers"]}


def consumer(chart: Objects) -> Obj:
    found: Obj = chart["ConfigMap", "binwright-consumer"]["data"]["pod.yaml"]
    return found


def test_images_come_from_the_registry_by_tag_or_digest(render: Render) -> None:
    digest = f"sha256:{'a' * 64}"
    images = {
        "registry": "registry.example.com/data",
        "tag": "2.0",
        "digests": {"binwright-monitor": digest},
        "pullPolicy": "Always",
        "pullSecrets": ["pull"],
    }
    chart = render({"images": images, "scaler": {"enabled": True}, **TLS})
    found = {name: each["image"] for name, each in containers(chart).items()}
    ours = "registry.example.com/data/binwright"
    assert found == {
        "monitor": f"{ours}-monitor@{digest}",
        "controller": f"{ours}-controller:2.0",
        "scaler": f"{ours}-controller:2.0",
        "consumer": f"{ours}-consumer:2.0",
        "warm-up": f"{ours}-consumer:2.0",
        "spark": f"{ours}-spark:2.0",
        "tls": "haproxy:own",
    }
    assert {each["imagePullPolicy"] for each in containers(chart).values()} == {"Always"}
    assert consumer(chart)["spec"]["imagePullSecrets"] == [{"name": "pull"}]


SECRETS = ("kafka", "kafkaCa", "lake", "sparkToken", "sparkTls", "sparkCa")


def test_secrets_have_the_names_of_the_values_everywhere(render: Render) -> None:
    names = {key: f"own-{key.lower()}" for key in SECRETS}
    text = json.dumps([*render({**EVERYTHING, **TLS, "secrets": names}).values()])
    for name in names.values():
        assert f'"{name}"' in text
    for name in (
        "binwright-kafka",
        "binwright-kafka-ca",
        "binwright-lake",
        "binwright-spark-token",
        "binwright-spark-tls",
        "binwright-spark-ca",
    ):
        assert f'"secretName": "{name}"' not in text
        assert f'"secretRef": {{"name": "{name}"' not in text
        assert f'"secretKeyRef": {{"key": "token", "name": "{name}"' not in text


def test_a_program_has_the_resources_and_nodes_of_its_values(render: Render) -> None:
    own = {
        "resources": {"limits": {"memory": "1Gi"}},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "data", "operator": "Exists"}],
    }
    programs = ("monitor", "controller", "spark", "scaler", "balancer")
    values = deepcopy(EVERYTHING)
    for name in (*programs, "consumer"):
        values[name] = {**values.get(name, {}), **own}
    values["monitor"]["replicas"] = 3
    chart = render(values)
    pods = {name: chart["Deployment", f"binwright-{name}"]["spec"]["template"] for name in programs}
    for name, pod in {**pods, "consumer": consumer(chart)}.items():
        assert pod["spec"]["nodeSelector"] == own["nodeSelector"]
        assert pod["spec"]["tolerations"] == own["tolerations"]
        assert containers(chart)[name]["resources"] == own["resources"]
    assert containers(chart)["warm-up"]["resources"] != own["resources"]
    assert chart["Deployment", "binwright-monitor"]["spec"]["replicas"] == 3


def test_the_template_of_consumers_is_one_that_the_controller_takes(render: Render) -> None:
    values = {"lake": {"claim": "binwright-lake"}, "images": {"pullSecrets": ["pull"]}}
    text = yaml.safe_dump(consumer(render(values)))
    check_template(deepcopy(parse_template(text, "chart").pod), "chart")


SETTINGS: Obj = {
    "topics": ["orders", "clicks"],
    "kafka": {"bootstrap_servers": "broker-1:9093,broker-2:9093", "request_timeout_s": 12.5},
    "controller": {"limit_bytes_per_s": 500_000, "max_slots": 8},
    "consumer": {"batch_cap_bytes": 12_345_678_901},
    "health": {"port": 8080},
    "log_format": None,
    "tables": [
        {
            "topics": ["orders"],
            "format": "json",
            "columns": 'id BIGINT,\n`<b>&"` STRING',
            "bad_share": 0.5,
        },
        {"topics": ["clicks"], "format": "variant", "bad_share": 0.25},
    ],
}


def test_settings_are_those_that_a_program_reads(
    render: Render, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    render({"settings": SETTINGS})
    where = ("--namespace", NAMESPACE, "--values", str(tmp_path / "values.yaml"))
    shown = ("--show-only", "templates/manifests.yaml", "--set", "settings.group=orders")
    done = run_helm("template", "release", str(CHART), *where, *shown, home=tmp_path)
    (written,) = (
        each["data"]["binwright.toml"]
        for each in yaml.safe_load_all(done.stdout)
        if each and each["metadata"]["name"] == "binwright-settings"
    )
    (tmp_path / "binwright.toml").write_text(written)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "binwright.toml"))
    found = load_settings()
    assert (found.group, found.topics) == ("orders", ("orders", "clicks"))
    assert found.kafka.request_timeout_s == 12.5
    assert "log_format" not in tomllib.loads(written)
    assert found.controller.limit_bytes_per_s == 500_000
    assert found.consumer.batch_cap_bytes == 12_345_678_901
    assert '`<b>&"`' in (found.tables[0].columns or "")  # no escape of JSON's is left
    assert found.tables[1].bad_share == 0.25


def test_other_settings_start_the_pods_that_read_them_again(render: Render) -> None:
    def sums(values: Obj) -> dict[str, str]:
        chart = render({**EVERYTHING, **values})
        pods = {
            name: each["spec"]["template"]
            for (kind, name), each in chart.items()
            if kind == "Deployment"
        }
        pods["consumer"] = consumer(chart)
        return {
            name: pod.get("metadata", {}).get("annotations", {}).get("binwright.dev/settings", "")
            for name, pod in pods.items()
        }

    before, after = sums({}), sums({"settings": {"topics": ["orders"]}})
    changed = {name for name, sum_ in before.items() if after[name] != sum_}
    assert changed == {"binwright-monitor", "binwright-controller", "consumer"}


def test_network_policies_take_further_rules_or_are_left_out(render: Render) -> None:
    rule, other = {"ports": [{"port": 19092}]}, {"ports": [{"port": 443}]}
    policies = {"egress": [rule], "consumerEgress": [other]}
    chart = render({**EVERYTHING, "networkPolicies": policies})
    for name in ("kafka", "scaler", "balancer"):
        assert rule in chart["NetworkPolicy", f"binwright-{name}"]["spec"]["egress"]
    assert other in chart["NetworkPolicy", "binwright-consumer"]["spec"]["egress"]
    left = render({"networkPolicies": {"enabled": False}})
    assert "NetworkPolicy" not in {kind for kind, _ in left}


def test_definitions_stay_and_can_be_left_out(render: Render) -> None:
    key = ("CustomResourceDefinition", "consumergroups.binwright.dev")
    annotations = render()[key]["metadata"]["annotations"]
    assert annotations["helm.sh/resource-policy"] == "keep"
    assert "annotations" not in render({"crds": {"keep": False}})[key]["metadata"]
    assert key not in render({"crds": {"install": False}})


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("monitor.replica=2", "replica"),
        ("controller.replicas=0", "controller/replicas"),
        ("settings.controller.max_slot=2", "max_slot"),
        ("settings.kafka.sasl_password=secret", "sasl_password"),
        ("images.digests.binwright-monitor=latest", "digests"),
        ("lake.path=lake", "lake/path"),
    ],
)
def test_values_that_are_wrong_are_refused(tmp_path: Path, argument: str, reason: str) -> None:
    assert reason in refusal(tmp_path, "--set", argument)


def test_the_chart_has_the_version_of_the_images_that_it_runs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = project()["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_a_packed_chart_gives_the_same(render: Render, tmp_path: Path) -> None:
    pack_chart(CHART, tmp_path / "chart.tgz", epoch=0)
    (tmp_path / "all.json").write_text(json.dumps(EVERYTHING))
    chart = (str(tmp_path / "chart.tgz"), "--values", str(tmp_path / "all.json"))
    done = run_helm("template", "release", *chart, "--namespace", NAMESPACE, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert objects(done.stdout) == render(EVERYTHING)


def test_helm_has_no_fault_to_find(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(json.dumps(EVERYTHING))
    values = ("--values", str(tmp_path / "values.yaml"))
    done = run_helm("lint", "--strict", str(CHART), *values, home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
