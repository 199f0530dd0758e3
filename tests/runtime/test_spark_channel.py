"""How a token travels to a Spark Connect server: `tests/integration/embedded` has real ones."""

import pytest

from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.spark_channel import SparkChannel

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - its name
HEADER = [("authorization", "Bearer a/b")]


@pytest.fixture(autouse=True)
def no_token_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of other tests may have left its own there, where pyspark looks."""
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("server", "allowed", "header"),
    [
        ("sc://spark:1/;token=a%2Fb", True, HEADER),
        ("sc://spark:1/;token=a%2Fb", False, []),
        ("sc://spark:1/;use_ssl=true;token=a%2Fb", True, []),
        ("sc://localhost:1/;token=a%2Fb", True, []),
        ("sc://127.0.0.1:1/;token=a%2Fb", True, []),
        ("sc://[::1]:1/;token=a%2Fb", True, []),
        ("sc://spark:1", True, []),
    ],
)
def test_a_token_is_sent_in_clear_text_only_where_that_is_allowed_and_needed(
    server: str, allowed: bool, header: list[tuple[str, str]]
) -> None:
    lake = LakeSettings(spark=server, allow_cleartext_token=allowed)
    assert list(SparkChannel(lake.connection(server)).metadata()) == header


def test_what_else_the_url_has_is_sent_as_pyspark_does() -> None:
    lake = LakeSettings(spark="sc://spark:1/;x-team=a", allow_cleartext_token=True)
    (server,) = lake.servers
    assert list(SparkChannel(lake.connection(server)).metadata()) == [("x-team", "a")]
