"""App ids, versions and stamps of commits."""

import pytest
from tests.consumer.decide.writer.scene import TABLE, stamp

from binwright.protocol.ports.lake import Table
from binwright.protocol.stamp import COMMITS_PER_EPOCH, app_id, read_stamp, txn_version


def test_a_stamp_reads_back() -> None:
    found = stamp({1: 5, 0: 2}, cuts={0: 7}, full=True, needed_from=4)
    assert read_stamp(found.encode(), TABLE) == found


def test_equal_stamps_are_equal_text() -> None:
    assert stamp({1: 5, 0: 2}).encode() == stamp({0: 2, 1: 5}).encode()


def test_metadata_of_other_clients_is_not_a_stamp() -> None:
    other = Table(topic="orders", group="g", cluster="another")
    valid = stamp({0: 1}).encode()
    damaged = (valid.replace("stamp/2", "stamp/9"), valid.replace('"0":1', '"zero":1'))
    texts = (None, "", "OPTIMIZE", "[1]", "{}", *damaged)
    assert [read_stamp(text, TABLE) for text in texts] == [None] * 7
    assert read_stamp(valid, other) is None
    assert read_stamp(valid, Table(topic="orders", group="x", cluster=TABLE.cluster)) is None


def test_versions_increase_with_the_epoch_and_within_it() -> None:
    assert txn_version(2) > txn_version(1, COMMITS_PER_EPOCH - 1) > txn_version(1, 5)
    assert app_id(TABLE) == "binwright/g/orders"


@pytest.mark.parametrize("sequence", [-1, COMMITS_PER_EPOCH])
def test_a_number_outside_an_epoch_is_rejected(sequence: int) -> None:
    with pytest.raises(ValueError, match="an epoch has"):
        txn_version(1, sequence)
