"""Which objects are led when a namespace may not have all: the older ones, in whatever order."""

from itertools import permutations
from typing import Any

import pytest

from binwright.controller.group_context import group_context
from binwright.controller.group_objects.admission import (
    Admitted,
    NamespaceLimits,
    RefusedObject,
    capped,
)
from binwright.controller.settings import ControllerProgramSettings
from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.loading import load


def limits(group_prefix: str = "", **values: int) -> NamespaceLimits:
    return NamespaceLimits(
        load(
            ControllerProgramSettings,
            controller={"max_slots": 10},
            kubernetes={"groups": True, "limits": values, "group_prefix": group_prefix},
        )
    )


def of_age(age: int, namespace: str = "team-a", name: str = "", **spec: Any) -> Obj:
    meta = {
        "name": name or f"group-{age}",
        "namespace": namespace,
        "creationTimestamp": f"2026-01-01T00:00:{age:02}Z",
    }
    return {"metadata": meta, "spec": spec}


def reasons(found: NamespaceLimits, *objects: Obj) -> dict[str, str]:
    return {
        name: admission.reason if isinstance(admission, RefusedObject) else "led"
        for (_, name), admission in found.admissions(objects).items()
    }


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_of_more_groups_than_allowed_the_older_ones_are_led(order: tuple[int, ...]) -> None:
    objects = [of_age(age) for age in order]
    assert reasons(limits(groups=2), *objects) == {
        "group-0": "led",
        "group-1": "led",
        "group-2": "OverLimit",
    }


def test_of_two_groups_of_one_second_the_first_name_is_led() -> None:
    objects = [of_age(0, name="b"), of_age(0, name="a")]
    assert reasons(limits(groups=1), *objects) == {"a": "led", "b": "OverLimit"}


def test_a_namespace_that_is_full_takes_nothing_from_another() -> None:
    flood = [of_age(age) for age in range(50)]
    other = of_age(59, "team-b", "orders")
    found = limits(groups=3, consumers=25).admissions([*flood, other])
    assert sum(isinstance(each, Admitted) for each in found.values()) == 4
    assert found["team-b", "orders"] == Admitted(10, 10)


def test_objects_that_are_refused_for_another_reason_take_no_place() -> None:
    found = limits(groups=2)
    objects = [
        of_age(0, group="orders"),
        of_age(1, group="orders"),  # taken
        of_age(2),
        of_age(3),
    ]
    assert reasons(found, *objects) == {
        "group-0": "led",
        "group-1": "GroupTaken",
        "group-2": "led",
        "group-3": "OverLimit",
    }


def test_an_object_in_a_namespace_of_kubernetes_is_refused_and_takes_no_place() -> None:
    found = limits(groups=1)
    objects = [of_age(0, "kube-system", group="orders"), of_age(1, "kubes", group="orders")]
    assert reasons(found, *objects) == {"group-0": "NamespaceRefused", "group-1": "led"}
    with pytest.raises(SettingsError, match="kube-system: of Kubernetes itself"):
        load(
            ControllerProgramSettings,
            kubernetes={"groups": True, "namespaces": ["team-a", "kube-system"]},
        )


def test_a_group_of_another_prefix_takes_no_place() -> None:
    objects = [of_age(0), of_age(1, group="team-a.orders")]
    assert reasons(limits(groups=1, group_prefix="{namespace}."), *objects) == {
        "group-0": "led",  # as far as its spec is read, and refused
        "group-1": "led",
    }


def test_the_group_that_does_not_fit_has_what_is_left_and_the_next_one_is_refused() -> None:
    found = limits(consumers=25)
    objects = [of_age(0), of_age(1, maxConsumers=12), of_age(2), of_age(3, maxConsumers=1)]
    admitted = found.admissions(objects)
    assert list(admitted.values())[:3] == [Admitted(10, 10), Admitted(12, 12), Admitted(3, 10)]
    refused = admitted["team-a", "group-3"]
    assert isinstance(refused, RefusedObject)
    assert refused.text == (
        "namespace team-a may have 25 consumers (kubernetes.limits.consumers of the settings), "
        "and older objects have them, by their maxConsumers"
    )


def test_a_capped_group_plans_with_no_more_consumers() -> None:
    settings = load_settings(controller={"max_slots": 10, "min_slots": 5})
    config = capped(group_context(settings), 3).config
    assert (config.settings.max_slots, config.settings.min_slots) == (3, 3)
    assert capped(group_context(settings), 10) == group_context(settings)


def test_the_condition_names_what_is_capped_how_many_and_the_limit() -> None:
    found = limits(consumers=12, topics=1, partitions=5)
    admissions = found.admissions([of_age(0), of_age(1)])
    found.apply(admissions)
    old, young = ("team-a", "group-0"), ("team-a", "group-1")
    first, second = admissions.values()
    assert isinstance(first, Admitted)
    assert isinstance(second, Admitted)
    assert found.condition(old, first).holds
    found.share(old).namespace.allow("group-0", "clicks", 4)
    found.share(young).namespace.allow("group-1", "orders", 7)
    condition = found.condition(young, second)
    assert (condition.type, condition.holds, condition.reason) == (
        "WithinLimits",
        False,
        "OverLimit",
    )
    assert condition.message == (
        "at most 2 of 10 consumers may run: namespace team-a may have 12 consumers "
        "(kubernetes.limits.consumers of the settings), and older objects have them, by their "
        "maxConsumers; 7 partitions of 1 topics are not read, among them of orders: namespace "
        "team-a may have 1 topics (kubernetes.limits.topics of the settings) with 5 partitions "
        "(kubernetes.limits.partitions), and older groups read 1 with 4"
    )
    assert found.condition(old, first).holds


def test_metrics_have_what_is_over_each_limit_of_each_namespace() -> None:
    found = limits(groups=2, consumers=12, topics=1)
    found.apply(found.admissions([of_age(0), of_age(1), of_age(2), of_age(3, "team-b")]))
    found.share(("team-a", "group-0")).namespace.allow("group-0", "a", 1)
    found.share(("team-a", "group-1")).namespace.allow("group-1", "b", 3)
    samples = {
        (sample.labels["namespace"], sample.labels["limit"]): sample.value
        for sample in found.samples()
    }
    kinds = ("groups", "consumers", "topics", "partitions")
    assert samples == {
        **dict(zip((("team-a", kind) for kind in kinds), (1, 8, 1, 3), strict=True)),
        **{("team-b", kind): 0 for kind in kinds},
    }
    found.clear()
    assert not list(found.samples())


def test_what_a_group_reads_is_kept_while_others_come_and_go() -> None:
    found = limits(topics=1)
    found.apply(found.admissions([of_age(0), of_age(1)]))
    found.share(("team-a", "group-0")).namespace.allow("group-0", "a", 1)
    found.apply(found.admissions([of_age(0), of_age(2)]))
    assert found.share(("team-a", "group-2")).namespace.allow("group-2", "b", 1) == 0
    found.apply(found.admissions([of_age(2)]))
    assert found.share(("team-a", "group-2")).namespace.allow("group-2", "b", 1) == 1
