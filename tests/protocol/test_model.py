"""The metadata partition of a slot."""

from binwright.protocol.model import Slot, metadata_partition


def test_a_slot_reads_its_commands_from_the_partition_after_its_number() -> None:
    assert metadata_partition(Slot(4)) == 5
