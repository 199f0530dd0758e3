"""What must hold in every state."""

from tests.core.process import GROUP

from binwright.core.handover import Active
from binwright.core.model import TopicPartition
from binwright.core.stamp import WRITES_PER_EPOCH, app_id

from .process import Consumer
from .universe import Universe

Writer = tuple[str, int]  # app id, epoch


class Broken(Exception):
    """A state that must not be."""


def check(world: Universe) -> None:
    """Raise if two may land the same rows, or a controller's belief was denied.

    That no row lands twice or is skipped, the tables assert themselves.
    """
    _nobody_doubts(world)
    writers = _writes_under_way(world)
    for consumer in world.consumers:
        for partition in _may_write(world, consumer):
            _believes_no_more_than_is_true(world, consumer, partition)
            found = writers.setdefault(partition, set())
            found.add((app_id(GROUP, consumer.slot), consumer.epoch))
    for partition, found in writers.items():
        if len(found) > 1:
            raise Broken(f"two may write {partition}: {sorted(found)}")


def _nobody_doubts(world: Universe) -> None:
    for event, reason in world.said:
        if event == "assignment.doubted" and "compacted" not in world.bounds.kinds:
            raise Broken(f"a controller finds its beliefs denied: {reason}")
    world.said.clear()


def _writes_under_way(world: Universe) -> dict[TopicPartition, set[Writer]]:
    writers: dict[TopicPartition, set[Writer]] = {}
    for write in world.writes:
        if world.lands(write):
            for partition in write.rows:
                epoch = write.number // WRITES_PER_EPOCH
                writers.setdefault(partition, set()).add((write.app, epoch))
    return writers


def _believes_no_more_than_is_true(
    world: Universe, consumer: Consumer, partition: TopicPartition
) -> None:
    part = consumer.me.parts.get(partition)
    landed = world.tables[partition.topic].landed.get(partition, 0)
    if isinstance(part, Active) and part.landed > landed:
        raise Broken(f"{_named(consumer)} believes {partition} landed up to {part.landed}")


def _named(consumer: Consumer) -> str:
    return f"slot {consumer.slot}/{consumer.epoch}"


def _may_write(world: Universe, consumer: Consumer) -> set[TopicPartition]:
    if consumer.consumer is None:
        return set()
    parts = {} if consumer.me.ended else consumer.me.parts  # it reads nothing more
    mine = {p for p, part in parts.items() if isinstance(part, Active)}
    app = app_id(GROUP, consumer.slot)
    return {
        p
        for p in mine | consumer.me.flying.keys()
        if world.tables[p.topic].numbers.get(app, -1) // WRITES_PER_EPOCH == consumer.epoch
    }
