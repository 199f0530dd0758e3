"""Errors say who is at fault, and what a caller decides by."""

from binwright.core.errors import ClusterRefused, EngineRefused, StagedUnreadable, WorldError


def test_a_refusal_tells_its_status_and_when_to_come_again() -> None:
    refused = ClusterRefused(429, "too many requests", after_s=2.0)
    assert isinstance(refused, WorldError)
    assert str(refused) == "429: too many requests"
    assert (refused.status, refused.after_s) == (429, 2.0)


def test_an_engine_s_refusal_tells_its_status() -> None:
    refused = EngineRefused(409, "the name is in use")
    assert isinstance(refused, WorldError)
    assert (str(refused), refused.status) == ("409: the name is in use", 409)


def test_unreadable_staged_files_are_named_where_that_is_known() -> None:
    assert StagedUnreadable("gone", ["a", "b"]).files == {"a", "b"}
