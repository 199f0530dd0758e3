"""Addresses of Spark Connect, and what of them may be shown."""

import pytest

from binwright.shell.connect import server_of, shown
from binwright.shell.settings import LakeSettings

PRIVATE = "sc://spark:443/;use_ssl=true;token=s3cret"


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("sc://spark", ("spark", 15002)),
        ("sc://spark:443/;token=s3cret", ("spark", 443)),
        ("sc://", ("", 15002)),
    ],
)
def test_it_names_a_server(url: str, server: tuple[str, int]) -> None:
    assert server_of(url) == server


def test_a_token_is_not_shown() -> None:
    lake = LakeSettings(spark=PRIVATE)
    assert lake.spark == PRIVATE
    assert shown(PRIVATE) == "sc://spark:443"
    assert "s3cret" not in repr(lake)


def test_nor_by_a_complaint_about_the_address() -> None:
    with pytest.raises(ValueError, match=r"got 'http://spark'") as told:
        LakeSettings(spark="http://spark/;token=s3cret")
    assert "expected a Spark Connect address" in str(told.value)
