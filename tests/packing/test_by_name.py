"""Packings are looked up by name; `exact` needs scipy."""

import sys

import pytest

from binwright.controller.group_context import group_context
from binwright.packing.by_name import packing
from binwright.packing.exact import Exact
from binwright.packing.sticky.policy import Sticky
from binwright.protocol.errors import PackingError, SettingsError
from binwright.runtime.settings import load_settings


def test_a_packing_is_known_by_name() -> None:
    assert packing("exact") == Exact()
    assert packing("exact:0.4") == Exact(0.4)
    assert packing("sticky:0.4") == Sticky(0.4)


def test_an_unknown_name_or_a_wrong_price_is_refused() -> None:
    with pytest.raises(PackingError, match=r"'exakt'; there are: sticky, .*, kd_N, exact"):
        packing("exakt")
    with pytest.raises(PackingError, match="price must be"):
        packing("exact:0")


def test_a_controller_without_scipy_refuses_exact_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller's image has no scipy."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    settings = load_settings(controller={"packing": "exact:2"})
    with pytest.raises(SettingsError) as refused:
        group_context(settings)
    assert str(refused.value) == (
        "controller.packing: packing 'exact:2' needs scipy, which is not installed here: "
        "pip install 'binwright[exact]', or use sticky"
    )
