"""What the controller reads beside the settings of its group."""

import pytest

from binwright.controller.settings import ControllerProgramSettings
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.loading import load


@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"namespaces": ["a"]}, "it needs kubernetes.groups = true"),
        ({"namespaces": ["a", "*"], "groups": True}, "and stands alone"),
        ({"namespaces": ["a", "a"], "groups": True}, "named twice: a"),
        (
            {"namespaces": ["A"], "groups": True},
            r"must be one of '\*'.*; or does not fit",
        ),
    ],
)
def test_invalid_values_are_reported(values: dict[str, object], result: str) -> None:
    with pytest.raises(SettingsError, match=result):
        load(ControllerProgramSettings, kubernetes=values)


def test_namespaces_may_be_those_of_the_scaler_s_objects() -> None:
    """Controller and scaler may read one file."""
    scaler = {"objects": True, "period_s": "whatever the scaler thinks of it"}
    settings = load(ControllerProgramSettings, kubernetes={"namespaces": ["a"]}, scaler=scaler)
    assert settings.kubernetes.namespaces == ("a",)
