"""Templates that an object may not have: the controller and the API server refuse each."""

from typing import Any

from binwright.kubernetes.objects import Obj


def consumer(**fields: Any) -> Obj:
    """Return a template whose container has these fields."""
    return {"spec": {"containers": [{"name": "consumer", **fields}]}}


def variable(name: str, **fields: Any) -> Obj:
    """Return a template with a variable."""
    return consumer(env=[{"name": name, **fields}])


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def keeping_off(kind: str, **others: Any) -> Obj:
    """Return an affinity that keeps pods off its zone: of its namespace, or of `others`."""
    term = {"topologyKey": "zone", "labelSelector": {}, **others}
    rule = term if kind == REQUIRED else {"weight": 1, "podAffinityTerm": term}
    return {"podAntiAffinity": {kind: [rule]}}


def tolerating(*tolerations: Obj) -> Obj:
    """Return a template with these tolerations."""
    return {"spec": {"tolerations": list(tolerations)}}


SECRET = {"secretKeyRef": {"name": "others", "key": "token"}}
ENV = "spec.containers.consumer.env"

REFUSED: dict[str, tuple[Obj, str]] = {  # -> what its message names
    "account": ({"spec": {"serviceAccountName": "x"}}, "spec.serviceAccountName"),
    "old account": ({"spec": {"serviceAccount": "x"}}, "spec.serviceAccount"),
    "token": (
        {"spec": {"automountServiceAccountToken": True}},
        "spec.automountServiceAccountToken",
    ),
    "host network": ({"spec": {"hostNetwork": True}}, "spec.hostNetwork"),
    "host processes": ({"spec": {"hostPID": True}}, "spec.hostPID"),
    "node": ({"spec": {"nodeName": "node-1"}}, "spec.nodeName"),
    "runtime": ({"spec": {"runtimeClassName": "x"}}, "spec.runtimeClassName"),
    "pod security": ({"spec": {"securityContext": {"runAsUser": 0}}}, "spec.securityContext"),
    "volume": (
        {"spec": {"volumes": [{"name": "x", "secret": {"secretName": "others"}}]}},
        "spec.volumes",
    ),
    "first container": (
        {"spec": {"initContainers": [{"name": "x", "image": "evil"}]}},
        "spec.initContainers",
    ),
    "second container": (
        {"spec": {"containers": [{"name": "consumer"}, {"name": "x", "image": "evil"}]}},
        "spec.containers other than one",
    ),
    "other container": (
        {"spec": {"containers": [{"name": "x"}]}},
        "spec.containers other than one",
    ),
    "image": (consumer(image="evil"), "spec.containers.consumer.image"),
    "command": (consumer(command=["sh"]), "spec.containers.consumer.command"),
    "arguments": (consumer(args=["--group", "x"]), "spec.containers.consumer.args"),
    "privileged": (
        consumer(securityContext={"privileged": True}),
        "spec.containers.consumer.securityContext",
    ),
    "hook": (
        consumer(lifecycle={"preStop": {"exec": {"command": ["sh"]}}}),
        "spec.containers.consumer.lifecycle",
    ),
    "Secret by envFrom": (
        consumer(envFrom=[{"secretRef": {"name": "others"}}]),
        "spec.containers.consumer.envFrom",
    ),
    "Secret by env": (variable("BINWRIGHT_LOG_LEVEL", valueFrom=SECRET), ENV),
    "Secret beside a value": (variable("BINWRIGHT_LOG_LEVEL", value="", valueFrom=SECRET), ENV),
    "no value": (variable("BINWRIGHT_LOG_LEVEL"), ENV),
    "another variable's value": (variable("BINWRIGHT_LOG_LEVEL", value="$(PASSWORD)"), ENV),
    "path of code": (variable("PYTHONPATH", value="/tmp"), ENV),  # noqa: S108 - refused
    "library": (variable("LD_PRELOAD", value="/x.so"), ENV),
    "programs": (variable("PATH", value="/x"), ENV),
    "proxy": (variable("HTTPS_PROXY", value="http://evil"), ENV),
    "trust": (variable("SSL_CERT_FILE", value="/x"), ENV),
    "keys": (variable("AWS_ENDPOINT_URL", value="http://evil"), ENV),
    "settings": (variable("BINWRIGHT_SETTINGS", value="/x"), ENV),
    "Kafka": (variable("BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS", value="evil:9092"), ENV),
    "lake": (variable("BINWRIGHT_LAKE__TOKEN_FILE", value="/x"), ENV),
    "registry": (variable("BINWRIGHT_REGISTRY__URL", value="http://evil"), ENV),
    "lower case": (variable("binwright_kafka__sasl_mechanism", value="PLAIN"), ENV),
    "whole table": (variable("BINWRIGHT_CONSUMER", value="{}"), ENV),
    "line": (variable("BINWRIGHT_LOG_LEVEL\n", value="info"), ENV),
    "device": (
        consumer(resources={"limits": {"example.com/fuse": 1}}),
        "example.com/fuse",
    ),
    "claim": (
        consumer(resources={"claims": [{"name": "x"}]}),
        "spec.containers.consumer.resources.claims",
    ),
    "system's class": (
        {"spec": {"priorityClassName": "system-node-critical"}},
        "spec.priorityClassName",
    ),
    "another class": (
        {"spec": {"priorityClassName": "above-all"}},
        "spec.priorityClassName above-all",
    ),
    "nodes of the control plane": (
        tolerating({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}),
        "spec.tolerations of the control plane",
    ),
    "nodes of etcd": (
        tolerating({"key": "a"}, {"key": "node-role.kubernetes.io/etcd", "effect": "NoExecute"}),
        "spec.tolerations of the control plane",
    ),
    "nodes for addons": (
        tolerating({"key": "CriticalAddonsOnly", "operator": "Exists"}),
        "spec.tolerations of the control plane",
    ),
    "every taint": (
        tolerating({"operator": "Exists"}),
        "spec.tolerations of the control plane",
    ),
    "every taint by no name": (
        tolerating({"key": "", "operator": "Exists"}),
        "spec.tolerations of the control plane",
    ),
    "pods of a namespace": (
        {"spec": {"affinity": keeping_off(REQUIRED, namespaces=["others"])}},
        "spec.affinity of other namespaces",
    ),
    "pods of all namespaces": (
        {"spec": {"affinity": keeping_off(PREFERRED, namespaceSelector={})}},
        "spec.affinity of other namespaces",
    ),
    "our label": (
        {"metadata": {"labels": {"binwright.dev/slot": "0"}}},
        "metadata.labels.binwright.dev/slot",
    ),
    "an identity by a plain name": (
        {"metadata": {"labels": {"aadpodidbinding": "x"}}},
        "metadata.labels.aadpodidbinding",
    ),
    "a Service's pods": ({"metadata": {"labels": {"app": "shop"}}}, "metadata.labels.app"),
    "an annotation of another": (
        {"metadata": {"annotations": {"sidecar": "yes"}}},
        "metadata.annotations.sidecar",
    ),
    "a name that only begins so": (
        {"metadata": {"labels": {"team/x": "a"}}},
        "metadata.labels.team/x",
    ),
    "a cloud's role": (
        {"metadata": {"annotations": {"iam.amazonaws.com/role": "x"}}},
        "metadata.annotations.iam.amazonaws.com/role",
    ),
    "name": ({"metadata": {"generateName": "x"}}, "metadata.generateName"),
    "another part": ({"status": {}}, "status"),
}

ALLOWED: Obj = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"cost-center": "7"}},
    "spec": {
        "affinity": keeping_off(REQUIRED),
        "nodeSelector": {"disk": "fast"},
        "terminationGracePeriodSeconds": 6,
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "containers": [
            {
                "name": "consumer",
                "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}},
                "env": [
                    {"name": "BINWRIGHT_CONSUMER__BATCH_BYTES", "value": "1000"},
                    {"name": "BINWRIGHT_LOG_LEVEL", "value": "debug"},
                    {"name": "MALLOC_ARENA_MAX", "value": "1"},
                ],
            }
        ],
    },
}
