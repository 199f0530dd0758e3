"""Which namespaces' ConsumerGroups the settings select."""

import pytest

from binwright.kubernetes.connection import watched_namespaces
from binwright.kubernetes.settings import KubernetesSettings


@pytest.mark.parametrize(
    ("namespaces", "expected"), [((), ["own"]), (("a", "b"), ["a", "b"]), (("*",), [""])]
)
def test_the_controller_s_own_namespace_or_the_named_ones_or_all_are_watched(
    namespaces: tuple[str, ...], expected: list[str]
) -> None:
    chosen = KubernetesSettings(groups=True, namespace="own", namespaces=namespaces)
    assert watched_namespaces(chosen) == expected
