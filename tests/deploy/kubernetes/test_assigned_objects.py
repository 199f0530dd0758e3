"""ScaledGroups whose partitions are assigned, too: which pod ends, and who else may assign."""

import pytest
from tests.deploy.kubernetes.sandbox import is_ready, until
from tests.scaler.test_assigning import FakePlans

from binwright.protocol.model import TopicPartition
from binwright.scaler.assigning import Assigner
from binwright.scaler.decide.members import GroupDescription, GroupMember
from binwright.scaler.settings import LocalGroupSettings

from .test_scaled_objects import Place, place, scaled_group, workload

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

__all__ = ["place"]  # a fixture


def read_by(owned: dict[str, list[int]]) -> GroupDescription:
    """Return a stable group of members whose `client.id` is a pod's name."""
    members = {
        f"member of {pod}": GroupMember(
            topics=frozenset({"orders"}),
            owned=frozenset(TopicPartition("orders", number) for number in numbers),
            client=pod,
        )
        for pod, numbers in owned.items()
    }
    return GroupDescription("Stable", "binwright", members)


async def test_the_pod_that_was_emptied_is_the_one_that_ends(place: Place) -> None:
    """It is the older one, which a ReplicaSet would keep; its members name pods."""

    async def pods() -> list[str]:
        found = (await place.sandbox.api.get(place.sandbox.path("pods")))["items"]
        return [each["metadata"]["name"] for each in found if is_ready(each)]

    async def first() -> bool:
        return len(await pods()) == 1

    async def both() -> bool:
        return len(await pods()) == 2

    await until(first)
    (old,) = await pods()
    await place.apply(workload(replicas=2))
    await until(both)
    (new,) = set(await pods()) - {old}
    place.kafka.rates["orders"] = [10.0] * 4
    place.kafka.descriptions["orders"] = read_by({old: [3], new: [0, 1, 2]})
    after = read_by({old: [], new: [0, 1, 2, 3]})
    plans = FakePlans(place.kafka, after=after)
    place.assigner = Assigner(plans)
    await place.apply(scaled_group(assigns=True))
    async with place.scaler():
        await place.until_replicas(1)
        await until(first)
    assert plans.published[-1].leaving == (f"member of {old}",)
    assert await pods() == [new]


async def test_a_group_is_assigned_for_one_object_only(place: Place) -> None:
    await place.apply(scaled_group(assigns=True))
    async with place.scaler():
        await place.until_condition("Scaling", "Acts")
        await place.apply(workload(name="other"), scaled_group("second", "other", assigns=True))
        text = await place.until_condition("Accepted", "GroupTaken", "second")
    assert text.endswith("/orders assigns the group orders")


async def test_a_group_of_the_settings_is_not_assigned_as_well(place: Place) -> None:
    others = LocalGroupSettings(group="orders", assigns=True)
    scaler = place.settings.scaler.model_copy(update={"groups": (others,)})
    place.settings = place.settings.model_copy(update={"scaler": scaler})
    await place.apply(scaled_group(assigns=True))
    async with place.scaler():
        text = await place.until_condition("Accepted", "GroupTaken")
    assert text == "scaler.groups of the settings assigns the group orders"
