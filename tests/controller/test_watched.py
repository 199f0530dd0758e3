"""Which namespaces' ConsumerGroups are run, by the settings."""

import pytest

from binwright.controller.deploy import watched
from binwright.shell.settings import KubernetesSettings


@pytest.mark.parametrize(
    ("namespaces", "found"), [((), ["home"]), (("a", "b"), ["a", "b"]), (("*",), [""])]
)
def test_our_own_those_that_are_named_or_all(namespaces: tuple[str, ...], found: list[str]) -> None:
    chosen = KubernetesSettings(groups=True, namespace="home", namespaces=namespaces)
    assert watched(chosen) == found
