"""Everything that may come next in a universe: who may do what, and what may go wrong."""

from collections.abc import Callable, Iterator
from functools import partial

from tests.core.delta import Rows

from binwright.core.machine import Manage, Synchronize
from binwright.core.model import Slot
from binwright.core.synchronize import awaited

from .process import Consumer
from .ruler import Controller
from .universe import Step, Told, Universe


def steps(world: Universe) -> Iterator[Step]:
    """Yield every step; where it is a fault, one is left in the budget."""
    yield from _table(world)
    for i, consumer in enumerate(world.consumers):
        if consumer.paused:
            yield Step((_who(consumer), "wakes"), "", _its(i, _wake))
        else:
            yield from _consumer(world, i, consumer)
    for i, controller in enumerate(world.controllers):
        if controller.paused:
            yield Step((controller.name, "wakes"), "", _rules(i, _rouse))
        else:
            yield from _controller(world, i, controller)
    yield from _fleet(world)
    if world.faults:
        yield from _disasters(world)


def take(world: Universe, step: Step) -> Universe:
    """Return what the world is after a step; it pays for a fault."""
    after = world.copy()
    if step.kind == "move":
        after.moves -= 1
    elif step.kind:
        after.faults -= 1
    step.take(after)
    after.rest()
    return after


def _its(i: int, act: Callable[[Consumer], object]) -> Callable[[Universe], object]:
    return lambda world: act(world.consumers[i])


def _rules(i: int, act: Callable[[Controller], object]) -> Callable[[Universe], object]:
    return lambda world: act(world.controllers[i])


def _finish(i: int, world: Universe) -> None:
    world.finish(world.writes[i])


def _who(consumer: Consumer) -> str:
    return f"slot {consumer.slot}/{consumer.epoch if consumer.consumer else 'new'}"


def _wake(consumer: Consumer) -> None:
    consumer.paused = False


def _rouse(controller: Controller) -> None:
    controller.paused, controller.lags = False, bool(controller.unread) or controller.lags


# --- the table -----------------------------------------------------------------------------------


def _table(world: Universe) -> Iterator[Step]:
    for i, write in enumerate(world.writes):
        what = f"rows {_rows(write.rows)}" if write.rows else "a claim or fence"
        end = "commits" if world.lands(write) else "conflicts"
        told = ("table", write.topic, ":", what, "under", write.app, write.number >> 24, end)
        yield Step(told, "", partial(_finish, i))


def _rows(rows: Rows) -> str:
    return ", ".join(f"{p} {first}..{end}" for p, (first, end) in rows.items())


# --- consumers -----------------------------------------------------------------------------------


def _consumer(world: Universe, i: int, one: Consumer) -> Iterator[Step]:
    who = _who(one)
    if one.consumer is None:
        yield Step((who, "says Hello"), "", _its(i, Consumer.hello))
    else:
        yield from _work(world, i, one, who)
    if world.faults:
        yield from _consumer_faults(world, i, one, who)


def _work(world: Universe, i: int, one: Consumer, who: str) -> Iterator[Step]:
    if one.deeds:
        yield Step((who, "does", one.deeds[0]), "", _its(i, Consumer.do))
    if one.orders:
        yield Step((who, "obeys", one.orders[0]), "", _its(i, Consumer.obey))
    if not one.deeds and any(
        c.told_to_leave(one.slot, one.epoch) for c in world.controllers if not c.paused
    ):
        yield Step((who, "reports"), "", _its(i, Consumer.speak_up))
    if one.me.leaving and not one.me.ended:
        yield Step((who, "waits in vain to be relieved"), "", _its(i, Consumer.drain))
    yield from _session(world, i, one, who)


def _session(world: Universe, i: int, one: Consumer, who: str) -> Iterator[Step]:
    told: Told
    if one.call is not None:
        if one.call.lost or one.call.write.verdict != "":
            end = "lost" if one.call.lost else one.call.write.verdict
            told = (who, "takes the outcome of its", one.call.kind, ":", end)
            yield Step(told, "", _its(i, Consumer.take_verdict))
    elif one.unclaimed:
        yield Step((who, "claims"), "", _its(i, Consumer.work))
    else:
        if one.opens:
            told = (who, "fences or resolves", one.opens[0])
            yield Step(told, "", _its(i, Consumer.work))
        for rows in one.choices():
            told = (who, "writes", _rows(rows))
            yield Step(told, "", _its(i, partial(Consumer.write, rows=rows)))
        if world.bounds.hints and any(world.hints.get(p) != h for p, h in one.hints().items()):
            yield Step((who, "hints"), "", _its(i, Consumer.hint))


def _consumer_faults(world: Universe, i: int, one: Consumer, who: str) -> Iterator[Step]:
    told: Told
    kinds = world.bounds.kinds
    if "crash" in kinds:
        yield Step((who, "crashes"), "crash", _its(i, Consumer.end))
    if "freeze" in kinds and one.consumer is not None:
        yield Step((who, "freezes"), "freeze", _its(i, partial(_freeze, paused=True)))
    if "astray" in kinds and one.owned:
        told = (who, "is lost sight of")
        yield Step(told, "astray", _its(i, partial(_freeze, paused=False)))
    if "unclear" in kinds and one.call and not one.call.lost:
        told = (who, "gets no word about its", one.call.kind)
        yield Step(told, "unclear", _its(i, Consumer.give_up))
    if "leave" in kinds and one.consumer is not None and not one.me.leaving:
        yield Step((who, "is asked to leave"), "leave", _its(i, Consumer.leave))
    if "goodbye" in kinds and one.consumer is not None and not one.me.ended:
        yield Step((who, "is asked to end"), "goodbye", _its(i, Consumer.drain))
    if "lost" in kinds and one.orders:
        told = (who, "never reads", one.orders[0])
        yield Step(told, "lost", _its(i, Consumer._next_order))
    if "doubled" in kinds and one.said is not None:
        yield Step((who, "says again", one.said), "doubled", _its(i, Consumer.double))
    if "doubled" in kinds and one.deeds:
        told = (who, "does, and will again,", one.deeds[0])
        yield Step(told, "doubled", _its(i, Consumer.stutter))


def _freeze(consumer: Consumer, *, paused: bool) -> None:
    consumer.owned, consumer.paused = False, paused


# --- controllers ---------------------------------------------------------------------------------


def _controller(world: Universe, i: int, one: Controller) -> Iterator[Step]:
    who = f"{one.name} ({type(one.state).__name__})"
    if one.words:
        yield Step((who, "says", one.words[0]), "", _rules(i, Controller.speak))
    if one.unread:
        yield Step((who, "reads", *one.unread[0]), "", _rules(i, Controller.read))
    yield from _deadlines(world, i, one, who)
    for moves, target in one.plans():
        if not moves or world.moves:
            kind, told = "move" if moves else "", {str(p): s for p, s in target.items()}
            yield Step(
                (who, "plans", told),
                kind,
                _rules(i, partial(Controller.plan, target=target)),
            )
    if world.faults:
        yield from _controller_faults(world, i, one, who)


def _deadlines(world: Universe, i: int, one: Controller, who: str) -> Iterator[Step]:
    kinds = world.bounds.kinds
    for slot in one.overdue_slots():
        awake = _answers(world, one, slot)
        if not awake or (world.faults and "suspect" in kinds):
            yield Step(
                (who, "hears nothing of slot", slot),
                "suspect" if awake else "",
                _rules(i, partial(Controller.miss, slot=slot)),
            )
    if world.faults and "overdue" in kinds and isinstance(one.state, Manage):
        yield Step((who, "gives up its plan"), "overdue", _rules(i, Controller.overdue_plan))
    if one.gives_up_plan():
        yield Step((who, "gives up its plan"), "", _rules(i, Controller.overdue_plan))


def _answers(world: Universe, one: Controller, slot: Slot) -> bool:
    """Whether a slot would still be heard of; in Synchronize only an answer counts."""
    group = one.state.group
    epoch = group.member(slot).epoch
    if isinstance(one.state, Synchronize) and slot in awaited(group):
        mine = [c for c in world.consumers if c.epoch == epoch and not c.paused]
        return any(c.orders or c.deeds for c in mine) or bool(one.words or one.unread)
    return _awake(world, slot, epoch)


def _awake(world: Universe, slot: Slot, epoch: int | None) -> bool:
    return any(c.slot == slot and c.epoch == epoch and not c.paused for c in world.consumers)


def _controller_faults(world: Universe, i: int, one: Controller, who: str) -> Iterator[Step]:
    told: Told
    kinds = world.bounds.kinds
    if "controller crash" in kinds:
        told = (who, "crashes")
        yield Step(told, "controller crash", _rules(i, Controller.end))
    if "controller pause" in kinds:
        told = (who, "is paused")
        yield Step(told, "controller pause", _rules(i, _pause))
    if "again" in kinds and one.unanswered():
        told = (who, "says all again that is not answered")
        yield Step(told, "again", _rules(i, Controller.repeat))
    if "doubled" in kinds and one.words:
        told = (who, "says, and will again,", one.words[0])
        yield Step(told, "doubled", _rules(i, Controller.stutter))


def _pause(controller: Controller) -> None:
    controller.paused = True


# --- the fleet, and what goes wrong with everything ----------------------------------------------


def _fleet(world: Universe) -> Iterator[Step]:
    there = {c.slot for c in world.consumers if c.owned}
    for slot in world.slots:
        if slot not in there:
            yield Step(("the fleet starts slot", slot), "", partial(_start, slot=slot))
    reigning = sum(not c.paused for c in world.controllers)
    rival = reigning > 0
    if len(world.controllers) < 2 and (
        not rival or (world.faults and "rival" in world.bounds.kinds)
    ):
        yield Step(("another controller claims",), "rival" if rival else "", Universe.crown)
        if world.bounds.compacted:
            yield Step(
                ("another controller claims, and partition 0 is compacted",),
                "rival" if rival else "",
                partial(Universe.crown, compacted=True),
            )


def _start(world: Universe, slot: Slot) -> None:
    world.start(slot)
    if not world.bounds.lazy:
        world.consumers[-1].hello()


def _disasters(world: Universe) -> Iterator[Step]:
    kinds = world.bounds.kinds
    if "spark" in kinds and any(c.call for c in world.consumers):
        yield Step(("Spark is started anew; writes outlive it",), "spark", _spark_restart)
        if world.writes:
            yield Step(("Spark is started anew; writes die",), "spark", _spark_death)
    if "broker" in kinds and any(c.said or c.orders for c in world.consumers):
        yield Step(("every word under way stands there twice",), "broker", _broker_restart)
    if "compacted" in kinds:
        for i, one in enumerate(world.controllers):
            if len(one.unread) > 1:
                told = ("partition 0 is compacted before it is read by", one.name)
                yield Step(told, "compacted", _rules(i, Controller.compact))


def _spark_restart(world: Universe) -> None:
    for consumer in world.consumers:
        consumer.give_up()


def _spark_death(world: Universe) -> None:
    _spark_restart(world)
    world.writes.clear()


def _broker_restart(world: Universe) -> None:
    for consumer in world.consumers:
        consumer.orders = type(consumer.orders)(o for o in consumer.orders for _ in range(2))
        consumer.double()
