"""Traces of plans: complete ones, ones that are replaced, and ones of many moves."""

from binwright.controller.plan_traces import MAX_MOVES, PlanTraces
from binwright.protocol.metadata import Goodbye, Planned, Started, Stopped
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.traces import Span

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
A, B, C = Slot(0), Slot(1), Slot(2)


def planned(**moves: Slot) -> Planned:
    targets = {{"p": P, "q": Q}[name]: slot for name, slot in moves.items()}
    return plan_of(targets)


def plan_of(moves: dict[TopicPartition, Slot]) -> Planned:
    return Planned(
        term=1, reasons=("more load",), consumers=2, moves=moves, rscore=0.5, rates={}, targets={}
    )


def stopped(*partitions: TopicPartition, at_ms: int = 0) -> Stopped:
    offsets = dict.fromkeys(partitions, 7)
    return Stopped(slot=A, epoch=1, revision=1, next=offsets, stopped_ms=at_ms)


def started(slot: Slot, *partitions: TopicPartition) -> Started:
    return Started(slot=slot, epoch=1, revision=1, offsets=dict.fromkeys(partitions, 7))


def parts(span: Span) -> list[tuple[str, float, float]]:
    return [(part.name, part.began_ms, part.ended_ms) for part in span.parts]


def test_a_plan_ends_with_its_last_move_and_each_move_has_its_pause() -> None:
    seen: list[Span] = []
    traces = PlanTraces("g", seen.append)
    for at_ms, message in (
        (1_000, planned(p=B, q=C)),
        (1_020, stopped(P, at_ms=1_010)),
        (1_040, Goodbye(slot=A, epoch=1, next={Q: 7})),
        (1_050, started(A, P)),  # not its new reader
        (1_060, started(B, P)),
        (1_070, started(B, P)),
        (1_090, started(C, Q)),
    ):
        assert not seen
        traces.apply(at_ms, message)
    (plan,) = seen
    assert (plan.name, plan.began_ms, plan.ended_ms, plan.fault) == ("plan", 1_000, 1_090, "")
    assert (plan.attributes["binwright.moves"], plan.attributes["binwright.group"]) == (2, "g")
    assert [parts(move) for move in plan.parts] == [
        [("stop reading", 1_000, 1_010), ("start reading", 1_010, 1_060)],
        [("stop reading", 1_000, 1_040), ("start reading", 1_040, 1_090)],
    ]


def test_a_plan_that_another_one_replaces_is_a_fault() -> None:
    seen: list[Span] = []
    traces = PlanTraces("g", seen.append)
    traces.apply(1_000, planned(p=B, q=C))
    traces.apply(1_010, started(B, P))
    traces.apply(1_020, planned(q=B))
    (first,) = seen
    assert first.fault == "another plan replaced it, 1 moves had not ended"
    assert parts(first.parts[0])[1] == ("start reading", 1_000, 1_010)  # its reader was dead
    traces.apply(1_030, started(B, Q))
    assert (len(seen), seen[1].fault) == (2, "")


def test_a_plan_without_moves_is_traced_at_once_and_records_before_any_plan_are_not() -> None:
    seen: list[Span] = []
    traces = PlanTraces("g", seen.append)
    traces.apply(1_000, started(B, P))
    traces.apply(1_000, planned())
    assert [span.parts for span in seen] == [()]


def test_of_many_moves_the_first_are_traced_and_all_are_counted() -> None:
    seen: list[Span] = []
    many = [TopicPartition("orders", number) for number in range(MAX_MOVES + 1)]
    traces = PlanTraces("g", seen.append)
    traces.apply(1_000, plan_of(dict.fromkeys(many, B)))
    traces.apply(1_010, started(B, *many))
    (plan,) = seen
    assert (len(plan.parts), plan.attributes["binwright.moves"]) == (MAX_MOVES, MAX_MOVES + 1)
