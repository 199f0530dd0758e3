"""When a batch is due, and where a slot listens."""

from binwright.core.consumer.batch import BatchRules, due, room
from binwright.core.model import Slot, metadata_partition


def test_a_batch_is_due_by_size_or_by_age() -> None:
    rules = BatchRules(bytes=100, wait_s=1.0, cap_bytes=300)
    assert not due(rules, 0, None, 9.0)
    assert not due(rules, 99, 9.5, 10.0)
    assert due(rules, 100, 10.0, 10.0)
    assert due(rules, 1, 9.0, 10.0)
    assert (room(rules, 120), room(rules, 400)) == (180, 0)


def test_a_slot_listens_on_the_partition_after_its_number() -> None:
    assert metadata_partition(Slot(4)) == 5
