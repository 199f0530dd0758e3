"""Errors carry what a caller needs to decide."""

from binwright.protocol.errors import ClusterRefused, ExternalError, StagedUnreadable


def test_a_refusal_has_a_status_and_a_retry_delay() -> None:
    refused = ClusterRefused(429, "too many requests", retry_after_s=2.0)
    assert isinstance(refused, ExternalError)
    assert str(refused) == "429: too many requests"
    assert (refused.status, refused.retry_after_s) == (429, 2.0)


def test_unreadable_staged_files_are_named_where_that_is_known() -> None:
    assert StagedUnreadable("gone", ["a", "b"]).files == {"a", "b"}
