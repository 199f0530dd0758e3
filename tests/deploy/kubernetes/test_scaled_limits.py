"""ScaledGroups beyond a limit of their namespace are not scaled; the older ones are."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.deploy.kubernetes.sandbox import until

from binwright.kubernetes.limits import LimitSettings

from .test_scaled_objects import Place, place, scaled_group, workload

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

__all__ = ["place"]  # a fixture


def limited(at: Place, **limits: Any) -> Place:
    kubernetes = at.settings.kubernetes.model_copy(update={"limits": LimitSettings(**limits)})
    return replace(at, settings=at.settings.model_copy(update={"kubernetes": kubernetes}))


async def two_objects(at: Place) -> None:
    await at.apply(workload(name="second"))
    await at.apply(scaled_group("older"))
    await asyncio.sleep(1.1)  # creation times have whole seconds
    await at.apply(scaled_group("younger", "second"))


async def test_of_more_objects_than_allowed_the_older_one_is_scaled(place: Place) -> None:
    at = limited(place, groups=1)
    await two_objects(at)
    async with at.scaler():
        await at.until_replicas(3)
        text = await at.until_condition("Accepted", "OverLimit", "younger")
        assert f"namespace {at.sandbox.namespace} may have 1 groups" in text
        assert await at.replicas(name="second") == 1
        await at.sandbox.wait_for_event("OverLimit", "may have 1 groups")
        assert at.objects is not None
        over = {each.labels["limit"]: each.value for each in at.objects.samples()}
        assert over["groups"] == 1

        async def second_is_scaled() -> bool:
            return await at.replicas(name="second") == 3

        await at.kubectl("delete", "scaledgroup", "older")
        await until(second_is_scaled)


async def test_of_more_partitions_than_allowed_those_of_the_older_one_are_looked_up(
    place: Place,
) -> None:
    """How many a group has is known after its first pass."""
    at = limited(place, partitions=8)
    await two_objects(at)
    async with at.scaler():
        text = await at.until_condition("Accepted", "OverLimit", "younger")
        assert "may have 8 partitions" in text
        assert text.endswith("this one needs 6")
        await at.until_condition("Scaling", "Acts", "older")
        await at.kubectl("delete", "scaledgroup", "older")
        await at.until_condition("Scaling", "Acts", "younger")
