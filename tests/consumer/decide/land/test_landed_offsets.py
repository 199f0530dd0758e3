"""How far a topic has landed."""

from binwright.consumer.decide.land.landed_offsets import least_landed
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_of_tables_the_lowest_offset_counts() -> None:
    one, other = {P: GroupOffset(7, "x"), Q: GroupOffset(3, "x")}, {P: GroupOffset(5, "x")}
    assert least_landed([one]) == one
    assert least_landed([one, {**other, Q: GroupOffset(9, "x")}]) == {**other, Q: one[Q]}


def test_a_partition_that_one_table_does_not_know_is_left_out() -> None:
    one = {P: GroupOffset(7, "x"), Q: GroupOffset(3, "x")}
    assert least_landed([one, {Q: GroupOffset(4, "x")}]) == {Q: one[Q]}
    assert least_landed([one, {}]) == {}


def test_tables_at_different_topics_of_one_name_have_nothing_in_common() -> None:
    assert least_landed([{P: GroupOffset(7, "x")}, {P: GroupOffset(2, "y")}]) == {}
