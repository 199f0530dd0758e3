"""Finds the log events in the source: what is logged, at which level, with which fields.

An event is the first argument of a call of a structlog logger, or the name in a `Log` of the pure
core, which its shell logs. A few functions log an event that their caller names; they are found by
the call that is in them, and their callers' arguments are searched for names.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LEVELS = ("debug", "info", "warning", "error", "exception", "critical")
LOGGERS = ("log", "_log")
ACTION = "Log"
"""What the core returns for its shell to log; `fault=True` makes an error of it."""

EVENT = re.compile(r"[a-z][a-z_]*\.[a-z][a-z_]*")


@dataclass
class Event:
    """One event, wherever it is logged."""

    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)  # whose log has it
    of_core: bool = False  # its shell logs it, and may add fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that logs; `names` is empty where its caller names the event."""

    names: tuple[str, ...]
    levels: frozenset[str]
    fields: frozenset[str]
    function: str  # around it
    is_action: bool  # the core's `Log`, which a shell logs
    of_action: bool  # it logs what the core has named: `case Log(event=event): log.info(event)`
    where: str  # FILE:LINE


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
    for source, call in [(s, call) for s, path, tree in trees for call in _calls(tree, path)]:
        for name in call.names:
            _add(found[name], source, call, frozenset())
        if call.of_action:
            shells[source] |= call.fields
        elif not call.names:
            forwarding[call.function].append(call)
    _follow(forwarding, [(source, tree) for source, _, tree in trees], found)
    for event in found.values():
        if event.of_core:
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
            if isinstance(node, ast.Call) and (inner := forwarding.get(_called(node))):
                for name, call in _forwarded(node, inner):
                    _add(found[name], source, call, _keywords(node))
                    named.add(call.function)
    for function, inner in forwarding.items():
        if function not in named:
            raise Unnamed(f"{inner[0].where}: the event is not a literal, and no caller names one")


def _add(event: Event, source: str, call: Call, more: frozenset[str]) -> None:
    event.levels |= call.levels
    event.fields |= call.fields | more
    event.sources.add(source)
    event.of_core |= call.is_action


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _forwarded(node: ast.Call, inner: list[Call]) -> Iterator[tuple[str, Call]]:
    """Yield the events that a caller names; of a tuple, one for each of the calls in order."""
    for argument in node.args:
        if isinstance(argument, ast.Tuple) and len(argument.elts) == len(inner):
            for element, call in zip(argument.elts, inner, strict=True):
                yield from ((name, call) for name in _names(element))
        else:
            yield from ((name, call) for name in _names(argument) for call in inner)


def _names(node: ast.expr) -> tuple[str, ...]:
    """Return the events that an expression may be."""
    match node:
        case ast.Constant(value=str() as text) if EVENT.fullmatch(text):
            return (text,)
        case ast.IfExp(body=body, orelse=orelse):
            return _names(body) + _names(orelse)
    return ()


def _keywords(node: ast.Call) -> frozenset[str]:
    return frozenset(k.arg for k in node.keywords if k.arg is not None)


def _calls(tree: ast.Module, path: Path) -> Iterator[Call]:
    for function in _functions(tree):
        scope = _Scope(function)
        for node in scope.calls:
            if call := scope.read(node, path):
                yield call


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST) -> Iterator[Function]:
    """Yield the functions and methods; one inside another belongs to the outer one."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node
        else:
            yield from _functions(node)


class _Scope:
    """A function, with what its local names stand for."""

    def __init__(self, function: Function) -> None:
        self.name = function.name
        self._locals: dict[str, ast.expr] = {}
        self._actions: set[int] = set()  # ids of calls that log an action of the core
        found = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        self.calls = sorted(found, key=lambda node: (node.lineno, node.col_offset))
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._locals[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._locals[name] = value
                case ast.match_case(pattern=ast.MatchClass(cls=ast.Name(id=action))):
                    if action == ACTION:
                        inside = (n for part in node.body for n in ast.walk(part))
                        self._actions |= {id(n) for n in inside if isinstance(n, ast.Call)}

    def read(self, node: ast.Call, path: Path) -> Call | None:
        """Return what a call logs; None if it logs nothing."""
        is_action = _called(node) == ACTION
        if is_action:
            levels = frozenset({"error" if "fault" in _keywords(node) else "info"})
            bound = frozenset(f for argument in node.args[1:] for f in self._facts(argument))
        elif (logger := self._logger(node.func)) is not None:
            levels, bound = logger
            bound |= _keywords(node).union(
                *(self._facts(k.value) for k in node.keywords if not k.arg)
            )
        else:
            return None
        names = self._events(node.args[0]) if node.args else ()
        return Call(
            names=names,
            levels=levels,
            fields=bound,
            function=self.name,
            is_action=is_action,
            of_action=not names and id(node) in self._actions,
            where=f"{path}:{node.lineno}",
        )

    def _events(self, node: ast.expr) -> tuple[str, ...]:
        if isinstance(node, ast.Name) and node.id in self._locals:
            return _names(self._locals[node.id])
        return _names(node)

    def _facts(self, node: ast.expr) -> Iterator[str]:
        """Yield the keys of a mapping of fields, also of one that is built before."""
        match node:
            case ast.Name(id=name) if name in self._locals:
                yield from self._facts(self._locals[name])
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant):
                        yield str(key.value)
                    elif key is None:
                        yield from self._facts(value)

    def _logger(self, node: ast.expr) -> tuple[frozenset[str], frozenset[str]] | None:
        """Return the levels and the fields that are bound, if it is a method of a logger."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=level) if level in LEVELS:
                if name in LOGGERS:
                    return frozenset({_logged_event(level)}), frozenset()
                match self._locals.get(name):
                    case ast.Call(func=ast.Attribute(attr="bind")) as bind:
                        return frozenset({_logged_event(level)}), _keywords(bind)
            case ast.IfExp(body=body, orelse=orelse):
                both = self._logger(body), self._logger(orelse)
                if both[0] is not None and both[1] is not None:
                    return both[0][0] | both[1][0], frozenset()
            case ast.Name(id=name) if isinstance(self._locals.get(name), ast.IfExp):
                return self._logger(self._locals[name])
        return None


def _logged_event(level: str) -> str:
    return "error" if level == "exception" else level
