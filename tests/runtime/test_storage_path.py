"""A path is below another one by whole names, however it is written, or it is not."""

import pytest

from binwright.runtime.storage_path import is_at_or_below, place, storage_parts


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("s3a://lake/a", "s3a://lake/a"),
        ("s3a://lake/a/", "s3a://lake/a"),
        ("s3a://lake/a", "s3a://lake/a/"),
        ("s3a://lake/a/b", "s3a://lake/a"),
        ("S3A://lake/a/b", "s3://lake/a"),
        ("s3a://lake", "s3a://lake/"),
        ("file:///lake/a", "/lake"),
        ("/lake/a", "/"),
        ("abfss://c@x.example.com/a", "abfss://c@x.example.com"),
        ("hdfs://name:8020/lake", "hdfs://name:8020/"),
    ],
)
def test_a_path_is_below_its_prefix(path: str, prefix: str) -> None:
    assert is_at_or_below(path, prefix)


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("s3a://lake/ab", "s3a://lake/a"),
        ("s3a://lake", "s3a://lake/a"),
        ("s3a://lake2/a", "s3a://lake"),
        ("s3a://Lake/a", "s3a://lake"),
        ("gs://lake/a", "s3a://lake"),
        ("/lake/a", "s3a://lake"),
        ("abfss://other@x.example.com/a", "abfss://c@x.example.com"),
        ("hdfs://name:9000/lake", "hdfs://name:8020/"),
    ],
)
def test_another_place_is_not(path: str, prefix: str) -> None:
    assert not is_at_or_below(path, prefix)


@pytest.mark.parametrize(
    "path",
    [
        *("", "lake", "s3a://lake/a/../b", "s3a://lake/a/..", "s3a://lake/./a", "s3a://lake//a"),
        *("s3a:///a", "s3a:/lake/a", "file:/lake", "file://host/lake", "s3a://lake/a%2F..%2Fb"),
        *("s3a://lake/a?x", "s3a://lake/a#/../b", "s3a://lake/{a,b}", "s3a://lake/*", "/lake\n"),
        *("s3a://lake/a\\..\\b", "s3a://la ke/a", "\ts3a://lake", "s3a://lake/\u2025/b", "//lake"),
        "s3a://lake/a//",
    ],
)
def test_what_programs_may_read_in_different_ways_is_below_nothing(path: str) -> None:
    assert storage_parts(path) is None
    assert not is_at_or_below(path, "s3a://lake")
    assert not is_at_or_below(path, "/")
    assert not is_at_or_below("s3a://lake/a", path)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/my lake/a", "file:/my%20lake/a/"),
        ("/lake/a", "file:///lake//a"),
        ("s3://lake/a", "s3a://lake/a"),
        ("s3://key:secret@lake/a", "s3a://lake/a"),
        ("abfss://c@x.example.com/a", "abfss://c@x.example.com/a/"),
    ],
)
def test_a_place_has_one_form(one: str, other: str) -> None:
    assert place(one) == place(other)


@pytest.mark.parametrize("other", ["s3a://lake/b", "gs://lake/a", "s3a://lake2/a", "/lake/a"])
def test_other_places_have_another_form(other: str) -> None:
    assert place("s3a://lake/a") != place(other)


def test_containers_of_one_account_are_other_places() -> None:
    assert place("abfss://c@x.example.com/a") != place("abfss://d@x.example.com/a")
