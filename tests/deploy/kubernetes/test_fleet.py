"""The Kubernetes fleet with a real API server and the shipped rights."""

import asyncio
import os
import signal
from functools import partial

import pytest
from tests.deploy.kubernetes.sandbox import TEMPLATE, Sandbox, pid_of, template, until

from binwright.controller.fleets.kubernetes.deployment import STEADY_S, is_available
from binwright.controller.fleets.kubernetes.template import Template, check_template
from binwright.fleets.metrics import SLOT_TROUBLE
from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import ClusterRefused, ExternalError, TemplateRefused
from binwright.protocol.model import Slot
from binwright.runtime.metrics import Sample

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]


def slots(*numbers: int) -> list[Slot]:
    return [Slot(number) for number in numbers]


async def test_desired_slots_run_and_others_are_deleted(sandbox: Sandbox) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0, 1, 2))
    assert await sandbox.slots() == {0, 1, 2}

    await sandbox.wait_for_running(0, 1, 2)
    await fleet.reconcile(slots(1))

    async def one_runs() -> bool:
        return set(await sandbox.pods()) == {1}

    await until(one_runs)
    assert await sandbox.slots() == {1}
    for slot in (0, 1, 2):
        await sandbox.wait_for_event("ConsumerCreated", f"slot {slot}")


async def test_a_slot_is_one_pod_without_volume_that_is_deleted_with_its_owner(
    sandbox: Sandbox,
) -> None:
    fleet = await sandbox.fleet("Orders_EU")
    await fleet.reconcile(slots(7))
    found = (await sandbox.deployments())[Slot(7)]
    spec = found["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert found["metadata"]["ownerReferences"][0]["name"] == "binwright-controller"
    assert found["metadata"]["annotations"]["binwright.dev/group-name"] == "Orders_EU"
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "binwright-controller"
    assert "volumes" not in spec["template"]["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert {"name": "SLOT", "value": "7"} in container["env"]
    assert {"name": "BINWRIGHT_GROUP", "value": "Orders_EU"} in container["env"]

    await sandbox.api.delete(f"{sandbox.path('deployments')}/binwright-controller")

    async def none_left() -> bool:
        return not await sandbox.slots()

    fleet.detach()
    await until(none_left)


async def test_a_killed_process_is_restarted_in_its_pod(sandbox: Sandbox) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0))

    await sandbox.wait_for_running(0)
    before = (await sandbox.pods())[Slot(0)]
    os.kill(pid_of(before), signal.SIGKILL)

    async def runs_again() -> bool:
        pod = (await sandbox.pods())[Slot(0)]
        restarts: int = pod["status"]["containerStatuses"][0]["restartCount"]
        return restarts == 1 and await sandbox.running() == {0}

    await until(runs_again)
    assert (await sandbox.pods())[Slot(0)]["metadata"]["uid"] == before["metadata"]["uid"]


async def test_destroy_ends_a_pod_that_ignores_sigterm_and_another_is_created(
    sandbox: Sandbox,
) -> None:
    await sandbox.apply_template(template("stubborn", terminationGracePeriodSeconds=600))
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0))

    await sandbox.wait_for_running(0)
    before = (await sandbox.pods())[Slot(0)]["metadata"]["uid"]
    await fleet.destroy(Slot(0))

    async def another_runs() -> bool:
        pods = await sandbox.pods()
        is_another = Slot(0) in pods and pods[Slot(0)]["metadata"]["uid"] != before
        return is_another and await sandbox.running() == {0}

    await until(another_runs)


async def test_a_deployment_deleted_by_hand_is_created_again(sandbox: Sandbox) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0, 1))
    name = (await sandbox.deployments())[Slot(1)]["metadata"]["name"]
    await sandbox.plane.kubectl("-n", sandbox.namespace, "delete", "deployment", name)

    async def restored() -> bool:
        return await sandbox.slots() == {0, 1} and await sandbox.has_event(
            "ConsumerRestored", "slot 1"
        )

    await until(restored)


async def test_a_deployment_edited_by_hand_is_repaired(sandbox: Sandbox) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0))
    name = (await sandbox.deployments())[Slot(0)]["metadata"]["name"]
    await sandbox.plane.kubectl(
        "-n", sandbox.namespace, "scale", "deployment", name, "--replicas=3"
    )

    async def repaired() -> bool:
        found = (await sandbox.deployments())[Slot(0)]
        return found["spec"]["replicas"] == 1 and await sandbox.has_event(
            "ConsumerRepaired", "slot 0"
        )

    await until(repaired)


@pytest.mark.nightly
async def test_a_changed_template_goes_from_pod_to_pod_and_stops_at_a_broken_one(
    sandbox: Sandbox,
) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0, 1, 2))
    fleet.renew(slots(0, 1, 2))

    async def images() -> list[str]:
        found = await sandbox.deployments()
        return [
            found[slot]["spec"]["template"]["spec"]["containers"][0]["image"]
            for slot in sorted(found)
        ]

    await sandbox.wait_for_running(0, 1, 2)
    await sandbox.apply_template(template("sleeper:2"))

    async def renewed() -> bool:
        found = (await sandbox.deployments()).values()
        return all("sleeper:2" in str(d["spec"]) and is_available(d) for d in found)

    await until(renewed)
    await sandbox.apply_template(template("failing"))

    async def first_fails() -> bool:
        return await sandbox.has_event("CrashLoopBackOff")

    await until(first_fails)
    assert sorted(await images()) == ["failing", "sleeper:2", "sleeper:2"]
    assert len(await sandbox.running()) >= 2
    await sandbox.apply_template(template("sleeper:2"))
    await until(renewed)

    sandbox.silent.add("sleeper:3")  # an image that runs well, and is no consumer
    await sandbox.apply_template(template("sleeper:3"))

    async def first_runs() -> bool:
        found = await sandbox.deployments()
        return any(is_available(found[s]) for s in found if "sleeper:3" in str(found[s]["spec"]))

    await until(first_runs)
    await asyncio.sleep(3 * STEADY_S)
    assert sorted(await images()) == ["sleeper:2", "sleeper:2", "sleeper:3"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("spec: [", "not YAML"),
        ("just words", "expected a mapping with `spec`"),
        ("spec: {containers: [{name: other}]}", "one must be named `consumer`"),
        (template(restartPolicy="Never"), "must be Always"),
        (
            template(volumes=[{"name": "v", "hostPath": {"path": "/v"}}]),
            "keeps nothing of its own on volumes",
        ),
    ],
)
async def test_a_broken_template_is_refused_and_running_pods_go_on(
    sandbox: Sandbox, given: Obj | str, message: str
) -> None:
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0, 1))
    await sandbox.apply_template(given)

    async def refused() -> bool:
        return await sandbox.has_event("TemplateRefused", message)

    await until(refused)
    with pytest.raises(TemplateRefused, match=message):
        await fleet.reconcile(slots(0, 2))
    assert await sandbox.slots() == {0}  # slots are deleted, none is created
    await sandbox.apply_template(template())

    async def recovered() -> bool:
        return await sandbox.slots() == {0, 2}

    await until(recovered)
    assert not fleet.refusals


async def test_a_template_that_the_api_server_refuses_is_reported_with_its_message(
    sandbox: Sandbox,
) -> None:
    fleet = await sandbox.fleet()
    await sandbox.apply_template(template(dnsPolicy="Sometimes"))

    async def known() -> bool:
        found = fleet._cluster.templates.get(sandbox.namespace, TEMPLATE)
        return found is not None and "Sometimes" in found["data"]["pod.yaml"]

    await until(known)
    with pytest.raises(ClusterRefused, match="dnsPolicy"):
        await fleet.reconcile(slots(0))

    async def reported() -> bool:
        return await sandbox.has_event("DeploymentRefused", "dnsPolicy")

    await until(reported)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (template("failing"), "CrashLoopBackOff"),
        (template("nowhere/none:1"), "ImagePullBackOff"),
        (template(nodeSelector={"missing": "label"}), "Unschedulable"),
    ],
)
async def test_a_pod_that_cannot_run_is_reported_with_its_reason_and_others_go_on(
    sandbox: Sandbox, pod: object, reason: str
) -> None:
    cluster = await sandbox.cluster()
    healthy = await sandbox.fleet("healthy", cluster)
    await healthy.reconcile(slots(0))

    await sandbox.wait_for_running(0)
    failing = await sandbox.fleet("failing", cluster)

    async def template() -> Template:
        return check_template(pod, "a test")

    failing._template = template
    await failing.reconcile(slots(3))

    async def reported() -> bool:
        return await sandbox.has_event(reason, "slot 3")

    await until(reported)
    assert failing.troubles[Slot(3)].reason == reason
    labels = {"group": "failing", "slot": "3", "reason": reason}
    assert Sample(SLOT_TROUBLE, 1, labels) in list(failing.samples())
    assert await sandbox.running() == {0}
    assert not healthy.troubles
    failing._template = partial(cluster.template, sandbox.namespace)
    failing._changed.set()

    async def recovered() -> bool:
        return await sandbox.has_event("ConsumerRecovered", reason)

    await until(recovered)
    assert not failing.troubles


async def test_pods_that_a_quota_forbids_are_reported(sandbox: Sandbox) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await sandbox.api.create(sandbox.path("resourcequotas"), quota)
    fleet = await sandbox.fleet()
    await fleet.reconcile(slots(0))

    async def reported() -> bool:
        return await sandbox.has_event("FailedCreate", "exceeded quota")

    await until(reported)


async def test_a_slot_beyond_max_slots_is_refused(sandbox: Sandbox) -> None:
    fleet = await sandbox.fleet()
    with pytest.raises(ExternalError, match="beyond the 60 allowed"):
        await fleet.reconcile(slots(60))


async def test_a_detached_fleet_repairs_nothing(sandbox: Sandbox) -> None:
    """Two fleets that both maintain their desired slots would undo each other's work for ever."""
    old, new = await sandbox.fleet(), await sandbox.fleet()
    await old.reconcile(slots(0, 1))
    old.detach()
    await new.reconcile(slots(0))
    name = (await sandbox.deployments())[Slot(0)]["metadata"]["name"]
    await sandbox.plane.kubectl("-n", sandbox.namespace, "delete", "deployment", name)

    async def back() -> bool:
        return await sandbox.slots() == {0} and await sandbox.has_event("ConsumerRestored")

    await until(back)
    assert len(await sandbox.events("ConsumerRestored")) == 1
    await new.reconcile(slots(0, 2))
    assert await sandbox.slots() == {0, 2}


async def test_of_two_fleets_the_one_that_is_not_detached_prevails(sandbox: Sandbox) -> None:
    one, two = await sandbox.fleet(), await sandbox.fleet()
    await asyncio.gather(one.reconcile(slots(0, 1)), two.reconcile(slots(0, 1, 2)))
    one.detach()
    await two.reconcile(slots(0, 2))

    async def as_desired_last() -> bool:
        return await sandbox.slots() == {0, 2}

    await until(as_desired_last)


async def test_another_groups_deployments_are_reported_and_left_alone(sandbox: Sandbox) -> None:
    gone = await sandbox.fleet("gone")
    await gone.reconcile(slots(0, 1))
    gone.detach()
    fleet = await sandbox.fleet("orders")
    await fleet.reconcile(slots(0))

    async def named() -> bool:
        return await sandbox.has_event("LeftoversFound", "-l binwright.dev/group=gone")

    await until(named)
    names = {
        d["metadata"]["name"] for d in (await sandbox.api.get(sandbox.path("deployments")))["items"]
    }
    assert {"gone-consumer-0", "gone-consumer-1", "orders-consumer-0"} <= names
