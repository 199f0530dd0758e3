"""The manifests in `deploy/`: consumers' pod templates, and the controller's rights."""

import subprocess
import tomllib
from copy import deepcopy
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from binwright.controller.fleets.kubernetes.template import check_template, parse_template
from binwright.local.spark import TOKEN_VARIABLE, authentication, shipped_settings
from binwright.protocol.errors import TemplateRefused
from binwright.runtime.settings.consumer import LakeSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PLACES = ("base", "overlays/local", "overlays/production", "namespace", "namespace-spark")
"""Where settings are."""
LAKE = {"name": "lake", "persistentVolumeClaim": {"claimName": "binwright-lake"}}


def pod(file: str) -> dict[str, Any]:
    found = next(yaml.safe_load_all((DEPLOY / file).read_text()))["data"]["pod.yaml"]
    return deepcopy(parse_template(found, file).pod)


def spark_pod(file: str) -> dict[str, Any]:
    found = next(yaml.safe_load_all((DEPLOY / file).read_text()))["spec"]["template"]["spec"]
    found["containers"] = {each["name"]: each for each in found["containers"]}
    return dict(found)


def staging_path(container: dict[str, Any]) -> str:
    named = {each["name"]: each.get("value") for each in container["env"]}
    return str(named["BINWRIGHT_STAGING__PATH"])


def test_what_warms_spark_up_stages_as_sparks_user_on_a_disk_that_both_have() -> None:
    """Each deletes what the other wrote, under the path that both have for it."""
    found = spark_pod("spark/spark.yaml")
    spark, warm_up = found["containers"]["spark"], found["containers"]["warm-up"]
    disk = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - a container's
    assert disk in spark["volumeMounts"]
    assert disk in warm_up["volumeMounts"]
    assert staging_path(warm_up).startswith("/tmp/")  # noqa: S108
    assert found["securityContext"]["runAsUser"] == 185
    assert all("runAsUser" not in each["securityContext"] for each in (spark, warm_up))
    assert warm_up["readinessProbe"]


def test_what_warms_executors_up_stages_in_the_store_of_the_tables() -> None:
    warm_up = spark_pod("overlays/production/spark/driver.yaml")["containers"]["warm-up"]
    text = yaml.safe_load((DEPLOY / "overlays/production/settings.yaml").read_text())
    lake = tomllib.loads(text["data"]["binwright.toml"])["lake"]["path"]
    assert staging_path(warm_up).startswith(f"{lake}/_staging/")


def settings_in(file: str) -> dict[str, Any]:
    found = next(yaml.safe_load_all((DEPLOY / file).read_text()))
    return tomllib.loads(found["data"]["binwright.toml"])


@pytest.mark.parametrize("consumers", ["consumers", "overlays/local"])
@pytest.mark.parametrize("place", PLACES)
def test_spark_wants_the_token_that_consumers_mount(place: str, consumers: str) -> None:
    spark = spark_pod("spark/spark.yaml")["containers"]["spark"]
    (variable,) = (each for each in spark["env"] if each["name"] == TOKEN_VARIABLE)
    secret = variable["valueFrom"]["secretKeyRef"]
    assert not secret.get("optional", False)  # or a server without a token would start

    lake = settings_in(f"{place}/settings.yaml")["lake"]
    file = PurePosixPath(lake["token_file"])
    assert secret_at(file, consumers) == secret["name"]
    assert file.name == secret["key"]


def secret_at(file: PurePosixPath, consumers: str) -> str:
    """Return the Secret that the template mounts where a file is."""
    template = pod(f"{consumers}/consumer.yaml")["spec"]
    (mount,) = (
        each
        for each in template["containers"][0]["volumeMounts"]
        if each["mountPath"] == str(file.parent)
    )
    (volume,) = (each for each in template["volumes"] if each["name"] == mount["name"])
    return str(volume["secret"]["secretName"])


@pytest.mark.parametrize("place", PLACES)
def test_a_token_crosses_the_network_in_clear_text_only_where_no_proxy_has_tls(place: str) -> None:
    """And consumers trust the authority that its Secret names."""
    directory = DEPLOY / place
    # In production Spark is in a part of its own.
    parts = [directory / "kustomization.yaml", directory / "spark" / "kustomization.yaml"]
    components = [
        component
        for part in parts
        if part.exists()
        for component in yaml.safe_load(part.read_text()).get("components", ())
    ]
    lake = settings_in(f"{place}/settings.yaml")["lake"]
    if not any(component.endswith("/spark-tls") for component in components):
        assert lake["allow_cleartext_token"]
        return
    assert "allow_cleartext_token" not in lake
    assert lake["spark"].endswith("/;use_ssl=true")
    assert LakeSettings.model_validate(lake).ca_file is not None
    file = PurePosixPath(lake["ca_file"])
    assert (secret_at(file, "consumers"), file.name) == ("binwright-spark-ca", "ca.crt")


def test_behind_the_proxy_spark_listens_on_the_loopback_alone() -> None:
    """So nothing reaches it around the proxy, whose address and port are those of the Service."""
    spark = spark_pod("spark/spark.yaml")["containers"]["spark"]
    changed = spark_pod("spark-tls/deployment.yaml")["containers"]
    own = {each["name"]: each.get("value") for each in spark["env"]}
    assert changed["spark"]["env"] == [{"name": "CONNECT_ADDRESS", "value": "127.0.0.1"}]
    assert own["CONNECT_ADDRESS"] == "0.0.0.0"  # noqa: S104 - without it
    driver = spark_pod("overlays/production/spark/driver.yaml")["containers"]["spark"]
    for args in (spark["args"], driver["args"]):
        assert "spark.connect.grpc.binding.address=$(CONNECT_ADDRESS)" in args
    (proxy,) = yaml.safe_load_all((DEPLOY / "spark-tls/proxy.yaml").read_text())
    assert "$" + '{POD_IP}:15002" ssl ' in proxy["data"]["haproxy.cfg"]
    assert "server spark 127.0.0.1:15002" in proxy["data"]["haproxy.cfg"]


def test_what_warms_spark_up_has_the_token() -> None:
    found = spark_pod("spark/spark.yaml")
    warm_up = found["containers"]["warm-up"]
    env = {each["name"]: each["value"] for each in warm_up["env"]}
    assert env["BINWRIGHT_LAKE__SPARK"] == "sc://localhost:15002"  # no TLS: to this name alone
    directory = str(PurePosixPath(env["BINWRIGHT_LAKE__TOKEN_FILE"]).parent)
    assert [directory] == [
        each["mountPath"] for each in warm_up["volumeMounts"] if each["name"] == "token"
    ]


def spark_arguments() -> dict[str, list[str]]:
    """Return the arguments of each Spark server that is shipped."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    pods = ("spark/spark.yaml", "overlays/production/spark/driver.yaml")
    found = {file: spark_pod(file)["containers"]["spark"]["args"] for file in pods}
    return found | {"compose": services["spark"]["command"]}


def test_none_of_spark_s_ports_takes_anybody() -> None:
    """The token guards Connect's; the others need a secret, or are the loopback's as well."""
    assert set(authentication().values()) == {"true"}
    assert authentication().items() <= shipped_settings().items()
    for place, args in spark_arguments().items():
        assert "/opt/binwright/spark-defaults.conf" in args, place
        assert not [each for each in args if each.startswith(tuple(authentication()))]
        loopback = {"spark.driver.bindAddress=127.0.0.1", "spark.driver.host=127.0.0.1"}
        in_pods = [each for each in args if each.startswith("spark.master=")]
        assert in_pods or loopback <= {*args}, place
        assert in_pods in ([], ["spark.master=k8s://https://kubernetes.default.svc"])


def test_compose_makes_spark_s_token_where_its_clients_read_it() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    spark = services["spark"]
    (lake,) = (each.split(":") for each in spark["volumes"] if each.startswith("lake:"))
    file = services["controller"]["environment"]["BINWRIGHT_LAKE__TOKEN_FILE"]
    assert (
        PurePosixPath(file).parent == PurePosixPath(spark["working_dir"]) == PurePosixPath(lake[1])
    )
    assert f"> {PurePosixPath(file).name}" in spark["entrypoint"][2].replace("$$", "$")
    for client in ("controller", "warm-up", "tools"):
        assert [each for each in services[client]["volumes"] if each.startswith(":".join(lake))]


def test_compose_s_spark_starts_with_a_token_of_each_start(tmp_path: Path) -> None:
    spark = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["spark"]
    *shell, script, name = (part.replace("$$", "$") for part in spark["entrypoint"])
    tokens = set()
    for _ in range(2):
        command = (*shell, script, name, "printenv", TOKEN_VARIABLE)
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        token = (tmp_path / "spark-token").read_text()
        assert ran.stdout == f"{token}\n"
        assert len(token) == 64
        tokens.add(token)
    assert len(tokens) == 2


def test_compose_starts_consumers_when_spark_is_warm() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    warm_up, controller, spark = (services[name] for name in ("warm-up", "controller", "spark"))
    place = PurePosixPath(warm_up["environment"]["BINWRIGHT_STAGING__PATH"])
    (mount,) = warm_up["volumes"]
    assert mount in spark["volumes"]
    assert place.is_relative_to(mount.partition(":")[2])
    assert warm_up["user"] == "185:185"  # the user of Spark's image
    assert warm_up["image"] == controller["image"]
    ended = {"condition": "service_completed_successfully"}
    assert controller["depends_on"]["warm-up"] == ended


def test_the_local_template_is_the_base_template_plus_the_lake_volume() -> None:
    base, local = pod("consumers/consumer.yaml"), pod("overlays/local/consumer.yaml")
    base["spec"]["securityContext"] |= {"fsGroup": 185, "fsGroupChangePolicy": "OnRootMismatch"}
    base["spec"]["volumes"].append(LAKE)
    base["spec"]["containers"][0]["volumeMounts"].append({"name": "lake", "mountPath": "/lake"})
    assert local == base


@pytest.mark.parametrize("kind", ["hostPath", "ephemeral"])
def test_a_volume_that_ties_a_consumer_to_a_node_or_pod_is_refused(kind: str) -> None:
    found = pod("consumers/consumer.yaml")
    found["spec"]["volumes"].append({"name": "own", kind: {}})
    with pytest.raises(TemplateRefused, match=f"{kind}: a consumer keeps nothing of its own"):
        check_template(found, "test")


@pytest.mark.parametrize("where", ["namespace", "all-namespaces"])
def test_the_controller_has_the_same_rights_in_all_namespaces(where: str) -> None:
    _, own, _ = yaml.safe_load_all((DEPLOY / "base/controller-rbac.yaml").read_text())
    other, binding = yaml.safe_load_all((DEPLOY / where / "rights.yaml").read_text())
    assert other["rules"] == own["rules"]
    assert binding["roleRef"]["kind"] == other["kind"]


def test_the_scaler_has_the_same_rights_in_all_namespaces() -> None:
    _, own, _ = yaml.safe_load_all((DEPLOY / "scaler/rbac.yaml").read_text())
    file = DEPLOY / "scaler/all-namespaces/rights.yaml"
    other, binding = yaml.safe_load_all(file.read_text())
    assert other["rules"] == own["rules"]
    assert binding["roleRef"]["kind"] == other["kind"]


def test_a_volume_claim_is_accepted_because_all_consumers_share_it() -> None:
    found = pod("consumers/consumer.yaml")
    found["spec"]["volumes"].append(LAKE)
    assert check_template(found, "test").pod == found
