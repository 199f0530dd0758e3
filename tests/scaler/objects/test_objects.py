"""Which objects the scaler follows: those of their own namespace's workloads and groups."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.limits import LimitSettings
from binwright.kubernetes.objects import Obj
from binwright.runtime.run import background_tasks, must_not_end
from binwright.scaler.objects.cluster import Autoscalers, Namespace, ScaledCluster
from binwright.scaler.objects.objects import ScaledObjects

pytestmark = pytest.mark.looptime


class ListedObjects(list[Obj]):
    """An informer's objects, which do not change."""

    def add_handler(self, handler: Callable[[Obj], None]) -> None:
        """Take a handler of changes: there are none."""


class FakeApi:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.statuses: dict[str, Obj] = {}  # path -> the last one

    async def merge(self, path: str, change: Obj) -> None:
        self.statuses[path] = change["status"]


def scaled_group(namespace: str, name: str, group: str) -> Obj:
    """Return an object that assigns a group."""
    spec = {
        "group": group,
        "workload": {"name": name},
        "topics": ["orders"],
        "recordsPerSecond": 100,
        "assigns": True,
    }
    meta = {"namespace": namespace, "name": name, "uid": name, "generation": 1}
    created = {"creationTimestamp": f"2026-01-01T00:00:0{len(name)}Z"}
    return {"metadata": {**meta, **created}, "spec": spec}


async def followed(
    *objects: Obj, allowed: dict[str, list[str]], assigned: tuple[str, ...] = ()
) -> tuple[set[str], dict[str, str]]:
    """Return the targets, and by path why others are refused."""
    api: Any = FakeApi()
    listed: Any = ListedObjects(objects)
    none: Any = ListedObjects()
    namespace = Namespace(objects=listed, workloads={}, autoscalers=Autoscalers(none))
    cluster = ScaledCluster(api, EventRecorder(api), [namespace], 1.0)
    scaled = ScaledObjects(cluster, LimitSettings(), lambda: None, allowed, assigned)
    async with background_tasks(must_not_end(scaled.follow())):
        await asyncio.sleep(5)
        found = set(scaled.targets)
    refused = {
        path.split("/")[-2]: status["conditions"][0]["reason"]
        for path, status in api.statuses.items()
    }
    return found, refused


async def test_a_namespace_assigns_its_own_groups_only() -> None:
    targets, refused = await followed(
        scaled_group("team-a", "own", "a.orders"),
        scaled_group("team-a", "others", "b.orders"),
        scaled_group("team-c", "unnamed", "a.returns"),
        allowed={"team-a": ["a\\..*"]},
    )
    assert targets == {"team-a/own"}
    assert refused == {"others": "GroupRefused", "unnamed": "GroupRefused"}


async def test_unless_groups_are_named_the_older_object_and_the_settings_have_theirs() -> None:
    targets, refused = await followed(
        scaled_group("team-a", "old", "orders"),
        scaled_group("team-b", "younger", "orders"),
        scaled_group("team-b", "named", "clicks"),
        allowed={},
        assigned=("clicks",),
    )
    assert targets == {"team-a/old"}
    assert refused == {"younger": "GroupTaken", "named": "GroupTaken"}
