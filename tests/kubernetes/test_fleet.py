"""The Kubernetes fleet against a real API server, with the rights that are shipped."""

import asyncio
import os
import signal
from functools import partial

import pytest

from binwright.controller.kube.api import Obj
from binwright.controller.kube.deployment import STEADY_S, checked, is_available
from binwright.core.errors import ClusterRefused, TemplateRefused, WorldError
from binwright.core.model import Slot
from binwright.shell.gauges import Sample

from .site import TEMPLATE, Site, pid_of, template, until

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]


def slots(*numbers: int) -> list[Slot]:
    return [Slot(number) for number in numbers]


async def test_slots_come_and_go_as_they_are_desired(site: Site) -> None:
    fleet = await site.fleet()
    await fleet.reconcile(slots(0, 1, 2))
    assert await site.slots() == {0, 1, 2}

    async def all_run() -> bool:
        return await site.running() == {0, 1, 2}

    await until(all_run)
    await fleet.reconcile(slots(1))

    async def one_runs() -> bool:
        return set(await site.pods()) == {1}

    await until(one_runs)
    assert await site.slots() == {1}
    for slot in (0, 1, 2):
        await site.hear("ConsumerCreated", f"slot {slot}")


async def test_a_slot_is_one_pod_without_volume_that_vanishes_with_its_owner(site: Site) -> None:
    fleet = await site.fleet("Orders_EU")
    await fleet.reconcile(slots(7))
    found = (await site.deployments())[Slot(7)]
    spec = found["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert found["metadata"]["ownerReferences"][0]["name"] == "binwright-controller"
    assert found["metadata"]["annotations"]["binwright.dev/group-name"] == "Orders_EU"
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "binwright-controller"
    assert "volumes" not in spec["template"]["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert {"name": "SLOT", "value": "7"} in container["env"]
    assert {"name": "BINWRIGHT_GROUP", "value": "Orders_EU"} in container["env"]

    await site.api.delete(f"{site.path('deployments')}/binwright-controller")

    async def none_left() -> bool:
        return not await site.slots()

    fleet.rest()
    await until(none_left)


async def test_a_killed_process_comes_back_in_its_pod(site: Site) -> None:
    fleet = await site.fleet()
    await fleet.reconcile(slots(0))

    async def runs() -> bool:
        return await site.running() == {0}

    await until(runs)
    before = (await site.pods())[Slot(0)]
    os.kill(pid_of(before), signal.SIGKILL)

    async def runs_again() -> bool:
        pod = (await site.pods())[Slot(0)]
        restarts: int = pod["status"]["containerStatuses"][0]["restartCount"]
        return restarts == 1 and await site.running() == {0}

    await until(runs_again)
    assert (await site.pods())[Slot(0)]["metadata"]["uid"] == before["metadata"]["uid"]


async def test_destroy_ends_a_pod_that_would_not_go_and_another_comes(site: Site) -> None:
    await site.give(template("stubborn", terminationGracePeriodSeconds=600))
    fleet = await site.fleet()
    await fleet.reconcile(slots(0))

    async def runs() -> bool:
        return await site.running() == {0}

    await until(runs)
    before = (await site.pods())[Slot(0)]["metadata"]["uid"]
    await fleet.destroy(Slot(0))

    async def another_runs() -> bool:
        pods = await site.pods()
        return Slot(0) in pods and pods[Slot(0)]["metadata"]["uid"] != before and await runs()

    await until(another_runs)


async def test_a_deployment_deleted_by_hand_comes_back(site: Site) -> None:
    fleet = await site.fleet()
    await fleet.reconcile(slots(0, 1))
    name = (await site.deployments())[Slot(1)]["metadata"]["name"]
    await site.plane.kubectl("-n", site.namespace, "delete", "deployment", name)

    async def there() -> bool:
        return await site.slots() == {0, 1} and await site.told("ConsumerRestored", "slot 1")

    await until(there)


async def test_a_deployment_edited_by_hand_is_repaired(site: Site) -> None:
    fleet = await site.fleet()
    await fleet.reconcile(slots(0))
    name = (await site.deployments())[Slot(0)]["metadata"]["name"]
    await site.plane.kubectl("-n", site.namespace, "scale", "deployment", name, "--replicas=3")

    async def repaired() -> bool:
        found = (await site.deployments())[Slot(0)]
        return found["spec"]["replicas"] == 1 and await site.told("ConsumerRepaired", "slot 0")

    await until(repaired)


async def test_a_changed_template_goes_from_pod_to_pod_and_stops_at_a_broken_one(
    site: Site,
) -> None:
    fleet = await site.fleet()
    await fleet.reconcile(slots(0, 1, 2))

    async def all_run() -> bool:
        return await site.running() == {0, 1, 2}

    async def images() -> list[str]:
        found = await site.deployments()
        return [
            found[slot]["spec"]["template"]["spec"]["containers"][0]["image"]
            for slot in sorted(found)
        ]

    await until(all_run)
    await site.give(template("sleeper:2"))

    async def renewed() -> bool:
        steady = all(is_available(d) for d in (await site.deployments()).values())
        return await images() == ["sleeper:2"] * 3 and steady

    await until(renewed)
    await site.give(template("failing"))

    async def first_fails() -> bool:
        return await site.told("CrashLoopBackOff")

    await until(first_fails)
    assert sorted(await images()) == ["failing", "sleeper:2", "sleeper:2"]
    assert len(await site.running()) >= 2
    await site.give(template("sleeper:2"))
    await until(renewed)

    site.mute.add("sleeper:3")  # an image that runs well, and is no consumer
    await site.give(template("sleeper:3"))

    async def first_runs() -> bool:
        found = await site.deployments()
        return any(is_available(found[s]) for s in found if "sleeper:3" in str(found[s]["spec"]))

    await until(first_runs)
    await asyncio.sleep(3 * STEADY_S)
    assert sorted(await images()) == ["sleeper:2", "sleeper:2", "sleeper:3"]


@pytest.mark.parametrize(
    ("given", "told"),
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
async def test_a_broken_template_is_refused_and_what_runs_goes_on(
    site: Site, given: Obj | str, told: str
) -> None:
    fleet = await site.fleet()
    await fleet.reconcile(slots(0, 1))
    await site.give(given)

    async def refused() -> bool:
        return await site.told("TemplateRefused", told)

    await until(refused)
    with pytest.raises(TemplateRefused, match=told):
        await fleet.reconcile(slots(0, 2))
    assert await site.slots() == {0}  # what need not be is gone, nothing new came
    await site.give(template())

    async def mended() -> bool:
        return await site.slots() == {0, 2}

    await until(mended)
    assert not fleet.refusals


async def test_a_template_that_the_api_server_refuses_is_told_with_its_words(site: Site) -> None:
    fleet = await site.fleet()
    await site.give(template(dnsPolicy="Sometimes"))

    async def known() -> bool:
        found = fleet._cluster.templates.get(site.namespace, TEMPLATE)
        return found is not None and "Sometimes" in found["data"]["pod.yaml"]

    await until(known)
    with pytest.raises(ClusterRefused, match="dnsPolicy"):
        await fleet.reconcile(slots(0))

    async def told() -> bool:
        return await site.told("DeploymentRefused", "dnsPolicy")

    await until(told)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (template("failing"), "CrashLoopBackOff"),
        (template("nowhere/none:1"), "ImagePullBackOff"),
        (template(nodeSelector={"nobody": "has"}), "Unschedulable"),
    ],
)
async def test_a_pod_that_cannot_run_is_told_with_its_reason_and_others_go_on(
    site: Site, pod: object, reason: str
) -> None:
    cluster = await site.cluster()
    well = await site.fleet("well", cluster)
    await well.reconcile(slots(0))

    async def well_runs() -> bool:
        return await site.running() == {0}

    await until(well_runs)
    ill = await site.fleet("ill", cluster)
    ill._template = lambda: checked(pod, "a test")
    await ill.reconcile(slots(3))

    async def told() -> bool:
        return await site.told(reason, "slot 3")

    await until(told)
    assert ill.troubles[Slot(3)].reason == reason
    measured = {"group": "ill", "slot": "3", "reason": reason}
    assert Sample("binwright_slot_trouble", 1, measured) in list(ill.samples())
    assert await site.running() == {0}
    assert not well.troubles
    ill._template = partial(cluster.template, site.namespace)
    ill._changed.set()

    async def recovered() -> bool:
        return await site.told("ConsumerRecovered", reason)

    await until(recovered)
    assert not ill.troubles


async def test_pods_that_a_quota_forbids_are_told(site: Site) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await site.api.create(site.path("resourcequotas"), quota)
    fleet = await site.fleet()
    await fleet.reconcile(slots(0))

    async def told() -> bool:
        return await site.told("FailedCreate", "exceeded quota")

    await until(told)


async def test_a_slot_beyond_what_is_allowed_is_refused(site: Site) -> None:
    fleet = await site.fleet()
    with pytest.raises(WorldError, match="beyond the 60 allowed"):
        await fleet.reconcile(slots(60))


async def test_who_does_not_lead_repairs_nothing(site: Site) -> None:
    """Two that both keep up what they once wanted would undo each other's work for ever."""
    old, new = await site.fleet(), await site.fleet()
    await old.reconcile(slots(0, 1))
    old.rest()
    await new.reconcile(slots(0))
    name = (await site.deployments())[Slot(0)]["metadata"]["name"]
    await site.plane.kubectl("-n", site.namespace, "delete", "deployment", name)

    async def back() -> bool:
        return await site.slots() == {0} and await site.told("ConsumerRestored")

    await until(back)
    assert len(await site.events("ConsumerRestored")) == 1
    await new.reconcile(slots(0, 2))
    assert await site.slots() == {0, 2}


async def test_two_that_both_lead_for_a_moment_end_as_the_last_word_says(site: Site) -> None:
    one, two = await site.fleet(), await site.fleet()
    await asyncio.gather(one.reconcile(slots(0, 1)), two.reconcile(slots(0, 1, 2)))
    one.rest()
    await two.reconcile(slots(0, 2))

    async def as_last_said() -> bool:
        return await site.slots() == {0, 2}

    await until(as_last_said)


async def test_another_groups_deployments_are_named_and_left_alone(site: Site) -> None:
    gone = await site.fleet("gone")
    await gone.reconcile(slots(0, 1))
    gone.rest()
    fleet = await site.fleet("orders")
    await fleet.reconcile(slots(0))

    async def named() -> bool:
        return await site.told("LeftoversFound", "-l binwright.dev/group=gone")

    await until(named)
    names = {d["metadata"]["name"] for d in (await site.api.get(site.path("deployments")))["items"]}
    assert {"gone-consumer-0", "gone-consumer-1", "orders-consumer-0"} <= names
