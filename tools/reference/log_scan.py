"""Finds the log events in the source: what is logged, at which level, with which fields.

`log_calls` reads the calls. A few functions log an event that their caller names; they are found by
the call that is in them, and their callers' arguments are searched for names. What a decision
has logged gets the fields that its shell adds.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.reference.log_calls import Call, called, calls, event_names, keywords


@dataclass
class Event:
    """One event, wherever it is logged."""

    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)  # whose log has it
    of_decision: bool = False  # its shell logs it, and may add fields


class Unnamed(Exception):
    """A call whose event cannot be told from the source."""


def events(roots: Mapping[Path, str]) -> dict[str, Event]:
    """Return all events in the Python files below these directories, by name.

    Args:
        roots: Each directory, and whose log has what is logged there.

    Raises:
        Unnamed: A call logs something, and nobody names it by a literal.
    """
    found: defaultdict[str, Event] = defaultdict(Event)
    trees = [
        (source, path, ast.parse(path.read_text()))
        for root, source in roots.items()
        for path in sorted(root.rglob("*.py"))
    ]
    forwarding: defaultdict[str, list[Call]] = defaultdict(list)
    shells: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for source, call in [(s, call) for s, path, tree in trees for call in calls(tree, path)]:
        for name in call.names:
            _add(found[name], source, call, frozenset())
        if call.of_action:
            shells[source] |= call.fields
        elif not call.names:
            forwarding[call.function].append(call)
    _follow(forwarding, [(source, tree) for source, _, tree in trees], found)
    for event in found.values():
        if event.of_decision:
            event.fields |= frozenset().union(*(shells[source] for source in event.sources))
    return dict(found)


def _follow(
    forwarding: Mapping[str, list[Call]],
    trees: Iterable[tuple[str, ast.Module]],
    found: defaultdict[str, Event],
) -> None:
    """Add the events that functions log for their callers."""
    named: set[str] = set()
    for source, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (inner := forwarding.get(called(node))):
                for name, call in _forwarded(node, inner):
                    _add(found[name], source, call, keywords(node))
                    named.add(call.function)
    for function, inner in forwarding.items():
        if function not in named:
            raise Unnamed(f"{inner[0].where}: the event is not a literal, and no caller names one")


def _add(event: Event, source: str, call: Call, more: frozenset[str]) -> None:
    event.levels |= call.levels
    event.fields |= call.fields | more
    event.sources.add(source)
    event.of_decision |= call.is_action


def _forwarded(node: ast.Call, inner: list[Call]) -> Iterator[tuple[str, Call]]:
    """Yield the events that a caller names; of a tuple, one for each of the calls in order."""
    for argument in node.args:
        if isinstance(argument, ast.Tuple) and len(argument.elts) == len(inner):
            for element, call in zip(argument.elts, inner, strict=True):
                yield from ((name, call) for name in event_names(element))
        else:
            yield from ((name, call) for name in event_names(argument) for call in inner)
