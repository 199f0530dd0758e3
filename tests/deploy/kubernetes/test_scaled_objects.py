"""ScaledGroup objects on a real control plane, with the shipped rights; Kafka is a fake."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
import yaml
from tests.deploy.kubernetes.sandbox import ROOT, Sandbox, is_ready, token, until
from tests.scaler.fakes import FakeKafka

from binwright.kubernetes.objects import Obj
from binwright.kubernetes.settings import KubernetesSettings
from binwright.runtime.run import background_tasks, must_not_end
from binwright.scaler.assigning import Assigner
from binwright.scaler.objects.objects import ScaledObjects, scaled_objects
from binwright.scaler.passes import Scaler
from binwright.scaler.settings import ScalerProgramSettings

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

DEPLOY = ROOT / "deploy" / "scaler"
ACCOUNT = "binwright-scaler"
MANY = [40.0] * 6  # for three replicas of 100/s


def workload(kind: str = "Deployment", name: str = "worker", replicas: int = 1) -> Obj:
    labels = {"app": name}
    container = {"name": "worker", "image": "sleeper"}
    pod = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1}
    spec: Obj = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {**pod, "containers": [container]}},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def scaled_group(name: str = "orders", target: str = "worker", **spec: Any) -> Obj:
    chosen = {"recordsPerSecond": 100, "cooldownDownSeconds": 0, "cooldownUpSeconds": 0}
    return {
        "apiVersion": "binwright.dev/v1alpha1",
        "kind": "ScaledGroup",
        "metadata": {"name": name},
        "spec": {"group": "orders", "workload": {"name": target}, **chosen, **spec},
    }


@dataclass
class Place:
    """A namespace with a scaler in it."""

    sandbox: Sandbox
    settings: ScalerProgramSettings
    kafka: FakeKafka = field(default_factory=FakeKafka)
    objects: ScaledObjects | None = None
    assigner: Assigner | None = None

    @contextlib.asynccontextmanager
    async def scaler(self) -> AsyncIterator[None]:
        """Run a scaler that has passes every second."""
        async with scaled_objects(self.settings, lambda: None) as objects:
            made = Scaler(lambda: objects.targets, self.kafka, self.kafka, 1.0, 0.5)
            objects.request_pass, self.objects = made.request_pass, objects
            made.assigner = self.assigner
            work = (must_not_end(made.run()), must_not_end(objects.follow()))
            async with background_tasks(*work):
                yield

    async def apply(self, *objects: Obj) -> None:
        arguments = ("-n", self.sandbox.namespace, "apply", "-f", "-")
        await self.sandbox.plane.kubectl(*arguments, stdin=yaml.safe_dump_all(objects))

    async def kubectl(self, *arguments: str) -> str:
        return await self.sandbox.plane.kubectl("-n", self.sandbox.namespace, *arguments)

    async def replicas(self, plural: str = "deployments", name: str = "worker") -> int:
        found = await self.sandbox.api.get(
            f"/apis/apps/v1/namespaces/{self.sandbox.namespace}/{plural}/{name}"
        )
        number: int = found["spec"]["replicas"]
        return number

    async def status(self, name: str = "orders") -> Obj:
        root = f"/apis/binwright.dev/v1alpha1/namespaces/{self.sandbox.namespace}"
        found: Obj = (await self.sandbox.api.get(f"{root}/scaledgroups/{name}")).get("status", {})
        return found

    async def condition(self, kind: str, name: str = "orders") -> tuple[str, str]:
        """Return a condition's reason and message; empty without one."""
        for each in (await self.status(name)).get("conditions", ()):
            if each["type"] == kind:
                return each["reason"], each["message"]
        return "", ""

    async def until_replicas(self, number: int, plural: str = "deployments") -> None:
        async def reached() -> bool:
            return await self.replicas(plural) == number

        await until(reached)

    async def until_condition(self, kind: str, reason: str, name: str = "orders") -> str:
        async def reached() -> bool:
            return (await self.condition(kind, name))[0] == reason

        await until(reached)
        return (await self.condition(kind, name))[1]


@pytest_asyncio.fixture(loop_scope="session")
async def place(sandbox: Sandbox) -> Place:
    """A namespace with the shipped definition and rights, and a Deployment of one replica."""
    await sandbox.plane.kubectl("apply", "-f", str(DEPLOY / "scaledgroups.yaml"))
    await sandbox.plane.kubectl(
        "wait", "--for=condition=established", "crd/scaledgroups.binwright.dev"
    )
    await sandbox.plane.kubectl("-n", sandbox.namespace, "apply", "-f", str(DEPLOY / "rbac.yaml"))
    bearer = await token(sandbox.api, sandbox.namespace, ACCOUNT)
    kubeconfig = sandbox.plane.kubeconfig(f"scaler-{sandbox.namespace}", bearer)
    chosen = KubernetesSettings(
        namespace=sandbox.namespace, kubeconfig=kubeconfig, request_timeout_s=5.0
    )
    found = Place(sandbox, ScalerProgramSettings(kubernetes=chosen))
    found.kafka.rates["orders"] = MANY
    await found.apply(workload())
    return found


async def test_a_deployment_is_scaled_and_its_object_shows_why(place: Place) -> None:
    await place.apply(scaled_group())
    async with place.scaler():
        await place.until_replicas(3)

        async def run() -> bool:
            pods = (await place.sandbox.api.get(place.sandbox.path("pods")))["items"]
            return sum(map(is_ready, pods)) == 3

        await until(run)
        await place.until_condition("Scaling", "Acts")

        async def shown() -> bool:
            status = await place.status()
            return (status["replicas"], status["wantedReplicas"]) == (3, 3)

        await until(shown)
        status = await place.status()
        assert (status["orderedReplicas"], status["partitions"]) == (3, 6)
        assert (status["recordsPerSecond"], status["replicaRecordsPerSecond"]) == (240, 100)
        assert status["reasons"][0] == "240 records/s and a lag of 0 need 3 replicas of 100/s"
        packing = status["packing"]
        assert sorted(p for one in packing for p in one["partitions"]) == [
            f"orders-{n}" for n in range(6)
        ]
        last = status["lastScaled"]
        assert (last["from"], last["to"]) == (1, 3)
        await place.sandbox.wait_for_event("Scaled", "1 to 3 replicas")
        table = (await place.kubectl("get", "scaledgroups")).splitlines()
        assert table[0].split()[1:7] == ["GROUP", "WORKLOAD", "MODE", "REPLICAS", "WANTED", "LAG"]
        assert table[1].split()[1:6] == ["orders", "worker", "act", "3", "3"]


async def test_a_stateful_set_is_scaled(place: Place) -> None:
    await place.apply(workload("StatefulSet"))
    await place.apply(scaled_group(workload={"kind": "StatefulSet", "name": "worker"}))
    async with place.scaler():
        await place.until_replicas(3, "statefulsets")

    assert await place.replicas() == 1


async def test_a_group_goes_to_zero_and_back_on_its_first_record(place: Place) -> None:
    place.kafka.rates["orders"] = [0.0] * 6
    await place.apply(scaled_group(minReplicas=0, idleSeconds=1))
    async with place.scaler():
        await place.until_replicas(0)
        place.kafka.lags["orders"] = [0, 0, 0, 0, 0, 1]
        await place.until_replicas(1)


async def test_a_change_waits_for_the_annotation(place: Place) -> None:
    await place.apply(scaled_group(mode="approve"))
    async with place.scaler():
        await place.until_condition("Scaling", "WaitsForApproval")
        proposal = (await place.status())["proposal"]
        assert (proposal["number"], proposal["waits"], await place.replicas()) == (1, True, 1)
        await place.kubectl("annotate", "scaledgroup", "orders", "binwright.dev/approve=7")
        await place.sandbox.wait_for_event("ApprovalRefused", "proposal 7 does not wait; 1 does")
        annotation = "binwright.dev/approve=1"
        await place.kubectl("annotate", "scaledgroup", "orders", annotation, "--overwrite")
        await place.until_replicas(3)
        await place.sandbox.wait_for_event("ChangeApproved", "proposal 1")


async def test_an_autoscaler_on_the_same_workload_is_named_and_not_fought(place: Place) -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "keda-hpa-worker",
            "ownerReferences": [
                {
                    "apiVersion": "keda.sh/v1alpha1",
                    "kind": "ScaledObject",
                    "name": "worker",
                    "uid": "6d1d5a5b-8d0c-4f43-9d0a-3d3c3a9f0b11",
                }
            ],
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
            "maxReplicas": 5,
        },
    }
    await place.apply(autoscaler, scaled_group())
    async with place.scaler():
        text = await place.until_condition("Scaling", "AnotherOwner")
        expected = "HorizontalPodAutoscaler keda-hpa-worker of the ScaledObject worker"
        assert text == f"{expected} scales the workload, too"
        await place.sandbox.wait_for_event("AnotherOwner", expected)
        assert await place.replicas() == 1

        await place.kubectl("delete", "hpa", "keda-hpa-worker")
        await place.until_replicas(3)


async def test_what_another_manager_sets_is_left_alone(place: Place) -> None:
    await place.apply(scaled_group())
    async with place.scaler():
        await place.until_replicas(3)
        await place.kubectl("scale", "deployment", "worker", "--replicas=5")
        text = await place.until_condition("Scaling", "AnotherOwner")
        assert text.startswith("kubectl set 5 replicas; they are left alone for 600 s")
        assert await place.replicas() == 5


async def test_a_new_scaler_knows_what_the_last_one_ordered(place: Place) -> None:
    await place.apply(scaled_group())
    async with place.scaler():
        await place.until_replicas(3)

        async def written() -> bool:
            return (await place.status()).get("orderedReplicas") == 3

        await until(written)
    await place.kubectl("scale", "deployment", "worker", "--replicas=2")
    async with place.scaler():
        text = await place.until_condition("Scaling", "AnotherOwner")

    assert text.startswith("kubectl set 2 replicas")


async def test_the_older_of_two_objects_has_the_workload(place: Place) -> None:
    await place.apply(scaled_group("first"))
    await asyncio.sleep(1.1)  # objects are as old as the second in which they were created
    await place.apply(scaled_group("second", mode="observe"))
    async with place.scaler():
        text = await place.until_condition("Accepted", "WorkloadTaken", "second")
        first = f"{place.sandbox.namespace}/first"
        assert text == f"deployment/worker is scaled by the ScaledGroup {first}"
        await place.until_replicas(3)
        await place.kubectl("delete", "scaledgroup", "first")
        await place.until_condition("Scaling", "Observed", "second")


async def test_a_spec_that_does_not_hold_is_refused_with_its_faults(place: Place) -> None:
    await place.apply(scaled_group(schedules=[{"timeZone": "Mars/Olympus"}]))
    async with place.scaler():
        text = await place.until_condition("Accepted", "SpecRefused")
        assert "schedules.0.timeZone" in text
        assert "no such time zone: 'Mars/Olympus'" in text
        await place.apply(scaled_group(schedules=[{"timeZone": "Europe/Paris", "maxReplicas": 2}]))
        await place.until_replicas(2)


async def test_a_workload_that_does_not_exist_is_a_fault_until_it_does(place: Place) -> None:
    await place.apply(scaled_group(target="later"))
    async with place.scaler():

        async def missed() -> bool:  # until its watches have begun, that is the fault
            return await place.condition("Measured") == ("Fault", "the workload does not exist")

        await until(missed)
        await place.apply(workload(name="later"))

        async def scaled() -> bool:
            return await place.replicas(name="later") == 3

        await until(scaled)


@pytest.mark.parametrize(
    ("verb", "group", "resource", "subresource", "allowed"),
    [
        ("patch", "apps", "deployments", "scale", True),
        ("patch", "apps", "deployments", "", False),
        ("delete", "", "pods", "", False),
        ("get", "", "secrets", "", False),
    ],
)
async def test_the_scaler_may_set_replicas_and_nothing_else(  # noqa: PLR0917 - of a right
    place: Place, verb: str, group: str, resource: str, subresource: str, allowed: bool
) -> None:
    wanted = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    namespace = place.sandbox.namespace
    asked = {
        "user": f"system:serviceaccount:{namespace}:{ACCOUNT}",
        "resourceAttributes": {**wanted, "namespace": namespace},
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert (await place.sandbox.api.create(path, {"spec": asked}))["status"]["allowed"] is allowed
