"""Who reaches whom, and who may what, by the manifests in `deploy/`: tables of all there is."""

import re
from itertools import product

import pytest
import yaml
from tests.deploy.policies import (
    DEPLOY,
    OUTSIDE,
    Network,
    Obj,
    Place,
    Right,
    consumer_of,
    executor,
    objects,
    pod_of,
    rights_of,
)

MANIFESTS = [file for file in DEPLOY.rglob("*.yaml") if "helm" not in file.parts]  # not templates
PODS = {
    "monitor": pod_of("base/monitor.yaml", "binwright-monitor"),
    "controller": pod_of("base/controller.yaml", "binwright-controller"),
    "spark": pod_of("spark/spark.yaml", "binwright-spark"),
    "production's spark": pod_of("spark/spark.yaml", "binwright-spark", "binwright-spark"),
    "scaler": pod_of("scaler/scaler.yaml", "binwright-scaler"),
    "balancer": pod_of("balancer/balancer.yaml", "binwright-balancer"),
    "executor": executor(),
    "consumer": consumer_of("binwright"),
    "team's consumer": consumer_of("team-a"),
    "stranger's consumer": consumer_of("team-b"),  # of a namespace without the label
    "guest": consumer_of("team-c"),  # of a namespace with a Spark of its own
    "guest's spark": pod_of("spark/spark.yaml", "binwright-spark", "team-c"),
    "team's pod": Place("team-a", {"app": "theirs"}),
    "guest's pod": Place("team-c", {"app": "theirs"}),
    "pod beside us": Place("binwright", {"app": "theirs"}),
    "outside": OUTSIDE,
}
TEAM = ["namespace/network.yaml"]
OWN_SPARK = ["namespace-spark/consumer-network.yaml", "namespace-spark/network.yaml"]
PRODUCTION = "overlays/production/spark"
BASE = ["base/network.yaml", "scaler/network.yaml", "balancer/network.yaml"]
NAMESPACES = {
    "binwright": {},
    "binwright-spark": {},
    "team-a": {"binwright.dev/consumers": "allowed"},
    "team-b": {},
    "team-c": {},
}
KAFKA, HTTPS, API, HEALTH, KEDA = 9092, 443, 6443, 8080, 6000
SPARK, DRIVER, BLOCKS = 15002, 7078, 7079
PORTS = (KAFKA, 9098, 9099, HTTPS, API, HEALTH, KEDA, SPARK, DRIVER, BLOCKS, 22)
CONSUMERS = ("consumer", "team's consumer", "stranger's consumer", "guest")
FREE = ("team's pod", "guest's pod", "outside")  # their own egress is nothing of ours


def network(*files: str) -> Network:
    own = objects(*BASE, *files)
    team, apart = objects(*TEAM), objects(*OWN_SPARK)
    policies = {"binwright": own, "team-a": team, "team-b": team, "team-c": apart}
    spark = objects(f"{PRODUCTION}/network.yaml")
    return Network(NAMESPACES, policies | {"binwright-spark": spark})


def reached(made: Network) -> set[tuple[str, str, int]]:
    """Return who reaches whom at which port, apart from pods that are nothing of ours."""
    return {
        (source, target, port)
        for source, target, port in product(PODS, PODS, PORTS)
        if source != target and not (source in FREE and target in FREE)
        if made.reaches(PODS[source], PODS[target], port)
    }


def edges(
    sources: tuple[str, ...], targets: tuple[str, ...], *ports: int
) -> set[tuple[str, str, int]]:
    return {each for each in product(sources, targets, ports) if each[0] != each[1]}


KAFKA_CLIENTS = ("monitor", "controller", *CONSUMERS, "scaler", "balancer")
UNGUARDED = FREE  # pods without a policy, and Kafka: where a rule names a port alone
EXPECTED = {
    *edges(KAFKA_CLIENTS, UNGUARDED, KAFKA, 9098),
    *edges(("controller", "scaler"), UNGUARDED, HTTPS, API),
    *edges(("spark", "guest's spark"), UNGUARDED, HTTPS),
    *edges(("consumer", "team's consumer"), ("spark",), SPARK),
    *edges(("guest",), ("guest's spark",), SPARK),
    *edges(FREE, ("monitor", "controller", "consumer", "scaler", "balancer"), HEALTH),
    *edges(FREE, ("team's consumer", "stranger's consumer", "guest"), HEALTH),
    *edges(FREE, ("scaler",), KEDA),
    *edges(("team's consumer",), ("production's spark",), SPARK),
    *edges(("production's spark",), UNGUARDED, HTTPS, API),
    *edges(("executor",), UNGUARDED, HTTPS),
    *edges(("executor",), ("production's spark",), DRIVER, BLOCKS),
    *edges(("production's spark",), ("executor",), BLOCKS),
}
IN_PRODUCTION = {
    *edges(("consumer",), UNGUARDED, HTTPS),
    *edges(("consumer",), ("production's spark",), SPARK),
}


def test_pods_reach_what_they_need_and_nothing_else() -> None:
    assert reached(network()) == EXPECTED


def test_in_production_spark_elsewhere_and_the_store_are_reached_as_well() -> None:
    assert reached(network("overlays/production/network.yaml")) == EXPECTED | IN_PRODUCTION


def test_the_policy_of_consumers_is_replaced_where_spark_is_their_own() -> None:
    """Policies add up: a second one would leave the way to the other Spark open."""
    (theirs,) = objects(*TEAM)
    named = [each["metadata"]["name"] for each in objects(*OWN_SPARK)]
    patches = yaml.safe_load((DEPLOY / "namespace-spark/kustomization.yaml").read_text())["patches"]
    assert theirs["metadata"]["name"] == named[0]
    assert {"path": "consumer-network.yaml"} in patches


def test_the_table_is_of_all_of_our_pods() -> None:
    components = {
        each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
        for file in MANIFESTS
        for each in objects(str(file.relative_to(DEPLOY)))
        if each and each.get("kind") == "Deployment" and "template" in each["spec"]
        if "selector" in each["spec"]
    }
    known = {pod.labels.get("app.kubernetes.io/component") for pod in PODS.values()}
    assert components <= known


# --- ports ---------------------------------------------------------------------------------------

SHOWS = "shows only: no path changes anything"  # tests/runtime/test_http.py
GUARDS = {
    "monitor 8080": SHOWS,
    "controller 8080": SHOWS,
    "consumer 8080": SHOWS,
    "scaler 8080": SHOWS,
    "balancer 8080": SHOWS,
    "scaler 6000": "TLS with client certificates",
    "spark 15002": "token",
    "spark 7078": "spark.authenticate",  # test_manifests.py: in every server
    "spark 7079": "spark.authenticate",
    "compose kafka 127.0.0.1:29092": "nothing: docs/security.md",
    "compose spark 127.0.0.1:15002": "token",
    "compose page 127.0.0.1:8088": SHOWS,
}
"""What a port wants of whoever reaches it."""


def test_each_port_that_is_shipped_wants_a_secret_or_only_shows() -> None:
    """A new port needs a row above."""
    found = set()
    for file in MANIFESTS:
        for each in filter(None, objects(str(file.relative_to(DEPLOY)))):
            spec = each.get("spec", {})
            if "pod.yaml" in each.get("data", {}):
                spec = {"template": yaml.safe_load(each["data"]["pod.yaml"])}
            component = "app.kubernetes.io/component"
            if each.get("kind") == "Service":
                name = spec["selector"][component]
                found |= {f"{name} {port['port']}" for port in spec["ports"]}
            for container in spec.get("template", {}).get("spec", {}).get("containers", ()):
                labels = spec["template"].get("metadata", {}).get("labels", {})
                ports = container.get("ports", ())
                found |= {
                    f"{labels.get(component, 'consumer')} {port['containerPort']}" for port in ports
                }
    services = yaml.safe_load((DEPLOY.parent / "docker-compose.yml").read_text())["services"]
    for name, service in services.items():
        for text in service.get("ports", ()):
            address, default = re.findall(r"^(.*):\$\{[A-Z_]+:-([0-9]+)\}:[0-9]+$", text)[0]
            found.add(f"compose {name} {address}:{default}")
    assert found == GUARDS.keys()
    page = (DEPLOY.parent / "docs/security.md").read_text()
    (row,) = (line for line in page.splitlines() if "the embedded broker of" in line)
    assert "compose" in row


# --- rights ---------------------------------------------------------------------------------------

ROLES = [
    str(file.relative_to(DEPLOY))
    for file in MANIFESTS
    if re.search("kind: (Cluster)?Role", file.read_text())
]
READ = ("get", "list", "watch")


def rights(resource: str, *verbs: str, names: tuple[str, ...] = ()) -> set[Right]:
    return {Right(resource, verb, names) for verb in verbs}


CONTROLLER = {
    *rights("apps/deployments", *READ, "create", "patch", "delete"),
    *rights("pods", "list", "watch", "delete"),
    *rights("configmaps", *READ, names=("binwright-consumer",)),
    *rights("events", "create", "patch"),
    *rights("policy/poddisruptionbudgets", "create", "patch", "delete"),
    *rights("binwright.dev/consumergroups", *READ),
    *rights("binwright.dev/consumergroups/status", "patch"),
}
SCALER = {
    *rights("apps/deployments", *READ),
    *rights("apps/statefulsets", *READ),
    *rights("apps/deployments/scale", "patch"),
    *rights("apps/statefulsets/scale", "patch"),
    *rights("autoscaling/horizontalpodautoscalers", "list", "watch"),
    *rights("events", "create", "patch"),
    *rights("pods", "list", "patch"),  # of groups that it assigns: those that end first are marked
    *rights("binwright.dev/scaledgroups", *READ),
    *rights("binwright.dev/scaledgroups/status", "patch"),
}
NODES = rights("nodes", "list", "watch")
SPARK_DRIVER = {
    *rights("pods", *READ, "create", "patch", "delete", "deletecollection"),
    *rights("configmaps", *READ, "create", "delete", "deletecollection"),
}


@pytest.mark.parametrize(
    ("account", "files", "expected"),
    [
        ("binwright-controller", ["base/controller-rbac.yaml"], CONTROLLER),
        ("binwright-controller", ["namespace/rights.yaml"], CONTROLLER),
        ("binwright-controller", ["all-namespaces/rights.yaml"], CONTROLLER),
        ("binwright-controller", ["node-drains/rights.yaml"], NODES),
        ("binwright-scaler", ["scaler/rbac.yaml"], SCALER),
        ("binwright-scaler", ["scaler/all-namespaces/rights.yaml"], SCALER),
        ("binwright-spark", [f"{PRODUCTION}/executors.yaml"], SPARK_DRIVER),
        ("binwright-consumer", ROLES, set()),
        ("binwright-monitor", ROLES, set()),
        ("binwright-balancer", ROLES, set()),
        ("binwright-spark-executor", ROLES, set()),
        ("default", ROLES, set()),
    ],
)
def test_an_account_may_what_it_needs_and_nothing_else(
    account: str, files: list[str], expected: set[Right]
) -> None:
    assert set(rights_of(account, objects(*files))) == expected


def test_rights_in_the_whole_cluster_are_only_in_components_for_them() -> None:
    cluster = [
        file for file in ROLES if any(o["kind"].startswith("Cluster") for o in objects(file))
    ]
    assert sorted(cluster) == [
        "all-namespaces/rights.yaml",
        "node-drains/rights.yaml",
        "scaler/all-namespaces/rights.yaml",
    ]


def test_only_these_bindings_are_shipped() -> None:
    """A new account or a new file of rights needs a row in the table above."""
    bound = {
        (file, subject["name"])
        for file in ROLES
        for each in objects(file)
        if each["kind"].endswith("Binding")
        for subject in each["subjects"]
    }
    assert bound == {
        ("base/controller-rbac.yaml", "binwright-controller"),
        ("namespace/rights.yaml", "binwright-controller"),
        ("all-namespaces/rights.yaml", "binwright-controller"),
        ("node-drains/rights.yaml", "binwright-controller"),
        ("scaler/rbac.yaml", "binwright-scaler"),
        ("scaler/all-namespaces/rights.yaml", "binwright-scaler"),
        (f"{PRODUCTION}/executors.yaml", "binwright-spark"),
    }


def kustomization(place: str) -> Obj:
    (found,) = objects(f"{place}/kustomization.yaml")
    return found


def secrets_in(value: object) -> set[str]:
    """Return the Secrets that an object names, wherever it does."""
    if isinstance(value, list):
        return {name for each in value for name in secrets_in(each)}
    if not isinstance(value, dict):
        return set()
    own = [value[key] for key in ("secretRef", "secretKeyRef", "secret") if key in value]
    names = {each.get("name") or each.get("secretName") for each in own}
    return names | {name for each in value.values() for name in secrets_in(each)}


def test_no_account_that_runs_others_code_makes_pods_beside_an_account_with_rights() -> None:
    """Whoever has Spark's token runs code with its account, and a pod may name any account and
    Secret of its namespace. The controller, which makes Deployments, runs no code of others.
    """
    makers = {
        (file, subject["name"])
        for file in ROLES
        for each in objects(file)
        if each["kind"].endswith("Binding")
        for subject in each["subjects"]
        if Right("pods", "create") in rights_of(subject["name"], objects(file))
    }
    assert makers == {(f"{PRODUCTION}/executors.yaml", "binwright-spark")}
    own = kustomization(PRODUCTION)
    elsewhere = {
        each.get("namespace")
        for file in DEPLOY.rglob("kustomization.yaml")
        for each in objects(str(file.relative_to(DEPLOY)))
        if file.parent != DEPLOY / PRODUCTION
    }
    assert own["namespace"] not in elsewhere
    parts = ["spark/spark.yaml", "spark-tls/deployment.yaml", "spark-tls/proxy.yaml"]
    parts += [
        f"{PRODUCTION}/{name}.yaml" for name in ("namespace", "executors", "network", "driver")
    ]
    assert {*own["resources"]} == {
        "namespace.yaml",
        "../../../spark",
        "executors.yaml",
        "network.yaml",
    }
    assert (own["components"], own["patches"]) == (
        ["../../../spark-tls"],
        [{"path": "driver.yaml"}],
    )
    made = objects(*parts)
    accounts = {each["metadata"]["name"] for each in made if each["kind"] == "ServiceAccount"}
    assert accounts == {"binwright-spark", "binwright-spark-executor"}
    inside = [
        yaml.safe_load(each["data"]["pod.yaml"])
        for each in made
        if "pod.yaml" in each.get("data", {})
    ]
    assert secrets_in([*made, *inside]) == {
        "binwright-lake",
        "binwright-spark-token",
        "binwright-spark-tls",
    }
    args = objects(f"{PRODUCTION}/driver.yaml")[0]["spec"]["template"]["spec"]["containers"][0][
        "args"
    ]
    assert f"spark.kubernetes.namespace={own['namespace']}" in args
    deleted = kustomization("overlays/production")["patches"][-1]
    assert deleted["target"] == {"namespace": "binwright", "name": "binwright-spark.*"}
    assert yaml.safe_load(deleted["patch"])["$patch"] == "delete"


# --- admission policies ---------------------------------------------------------------------------

POLICIES = [
    "restricted-templates/policy.yaml",
    "all-namespaces/kube-namespaces.yaml",
    "scaler/all-namespaces/kube-namespaces.yaml",
]


@pytest.mark.parametrize("file", POLICIES)
def test_an_admission_policy_denies_also_where_it_cannot_be_evaluated(file: str) -> None:
    policy, binding = objects(file)
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"] == {
        "policyName": policy["metadata"]["name"],
        "validationActions": ["Deny"],
    }


@pytest.mark.parametrize(
    ("file", "account", "expected"),
    [("all-namespaces", "controller", CONTROLLER), ("scaler/all-namespaces", "scaler", SCALER)],
)
def test_every_change_that_an_account_may_make_is_refused_in_namespaces_of_kubernetes(
    file: str, account: str, expected: set[Right]
) -> None:
    policy, _ = objects(f"{file}/kube-namespaces.yaml")
    operations = {"create": "CREATE", "patch": "UPDATE", "delete": "DELETE"}
    refused = {
        (f"{group}/{kind}".lstrip("/"), operation)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for kind in rule["resources"]
        for operation in rule["operations"]
    }
    harmless = ("events", "/status")
    assert refused == {
        (right.resource, operations[right.verb])
        for right in expected
        if right.verb in operations and not right.resource.endswith(harmless)
    }
    (condition,) = policy["spec"]["matchConditions"]
    assert f"'^system:serviceaccount:[^:]+:binwright-{account}$'" in condition["expression"]
