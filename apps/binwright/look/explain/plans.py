"""What a plan was made for."""

from binwright.look.explain.answers import MOST_NAMED, Explanation, GroupFacts, Line, clock, some


def explain_plan(group: GroupFacts, number: int | None) -> Explanation:
    """Say what the last plan, or the one of this number, was made for."""
    past = group.view.history.plan(number)
    if past is None:
        kept = some(str(each.number) for each in reversed(group.view.history.plans))
        text = f"the topic does not have it; it has {kept or 'none'}"
        return Explanation(f"plan {number}" if number else "the last plan", (Line("is", text),))
    moved = sorted(past.moves.items())
    lines = [
        Line(
            "is", f"{group.since(past.at_ms)}, {clock(past.at_ms)}; for {past.consumers} consumers"
        ),
        *(Line("why", reason) for reason in past.reasons),
        Line("otherwise", f"it moved {past.rscore:.2f} of what a plan gives one consumer"),
    ]
    for partition, (old, new) in moved[:MOST_NAMED]:
        origin = "no reader" if old is None else f"consumer {old}"
        lines.append(Line("is", f"{partition}: {origin} → consumer {new}"))
    if len(moved) > MOST_NAMED:
        lines.append(Line("is", f"and {len(moved) - MOST_NAMED} more partitions"))
    return Explanation(f"plan {past.number}", tuple(lines))
