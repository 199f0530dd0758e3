"""What a table is like, by reports and by its log."""

import pytest

from binwright.inspect.decide.table_facts import (
    CommitFacts,
    commit_facts,
    listed_state,
    reader_features,
    shut_out,
)


@pytest.mark.parametrize(
    ("reported", "fault", "exists", "state"),
    [
        ("landing", "", True, "landing"),
        ("landing", "the registry does not answer", True, "waiting"),
        ("claiming", "Spark does not answer", False, "waiting"),
        ("paused", "paused by ann@host: a repair", True, "paused"),
        ("refused", "the table belongs to group b", False, "refused"),
        ("silent", "", True, "silent"),
        ("claiming", "", False, "absent"),
        ("unwritten", "", False, "absent"),
        (None, "", False, "absent"),
        (None, "", True, "unwritten"),
    ],
)
def test_a_state_is_one_word(reported: str | None, fault: str, exists: bool, state: str) -> None:
    assert listed_state(reported, fault, exists=exists) == state


@pytest.mark.parametrize(
    ("metrics", "rows", "files"),
    [
        ({"numOutputRows": "7", "numFiles": "2"}, 7, 2),
        ({"numAddedFiles": "1", "numRemovedFiles": "8"}, None, 1),
        ({"numOutputRows": "many", "numFiles": "-1"}, None, None),
        ({}, None, None),
        (None, None, None),
    ],
)
def test_a_commit_has_the_numbers_of_its_log(
    metrics: dict[str, str] | None, rows: int | None, files: int | None
) -> None:
    assert commit_facts(3, 5, "WRITE", metrics) == CommitFacts(3, 5, "WRITE", rows, files)


def test_readers_need_the_features_that_are_not_of_writers_alone() -> None:
    features = ("variantType", "appendOnly", "clustering", "deletionVectors", "domainMetadata")
    assert reader_features(features) == ("deletionVectors", "variantType")


def test_a_variant_shuts_readers_out_and_clustering_shuts_out_none() -> None:
    assert shut_out(("clustering", "deletionVectors")) == ()
    variant = shut_out(("variantType",))
    assert "Spark before 4.0" in variant
    assert shut_out(("variantType-preview", "variantType")) == variant
    assert shut_out(("typeWidening",)) == ("deltalake", "Polars")
