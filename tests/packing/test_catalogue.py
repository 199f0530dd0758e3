"""Packings are looked up by name; `exact` needs scipy."""

import sys

import pytest

from binwright.packing.catalogue import algorithm
from binwright.packing.exact import Exact
from binwright.packing.sticky.policy import Sticky
from binwright.protocol.errors import PackingError


def test_a_packing_is_known_by_name() -> None:
    assert algorithm("exact") == Exact()
    assert algorithm("exact:0.4") == Exact(0.4)
    assert algorithm("sticky:0.4") == Sticky(0.4)


def test_an_unknown_name_or_a_wrong_price_is_refused() -> None:
    with pytest.raises(PackingError, match=r"'exakt'; there are: sticky, .*, kd_N, exact"):
        algorithm("exakt")
    with pytest.raises(PackingError, match="price must be"):
        algorithm("exact:0")


def test_without_scipy_exact_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller's image has no scipy."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(PackingError) as refused:
        algorithm("exact:2")
    assert str(refused.value) == (
        "packing 'exact:2' needs scipy, which is not installed here: "
        "pip install 'binwright[exact]', or use sticky"
    )
