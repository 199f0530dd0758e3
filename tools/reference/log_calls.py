"""Reads the calls of a module that log: the event, its levels and its fields.

An event is the first argument of a call of a structlog logger, or the name in a `Log` of a
decision. Loggers, names and fields may be bound to local names before, or chosen by a condition.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEVELS = {name: frozenset({name}) for name in ("debug", "info", "warning", "error", "critical")} | {
    "exception": frozenset({"error"})
}
"""Method of a logger -> the level at which it logs."""
LOGGERS = ("log", "_log")
ACTION = "Log"
"""What a decision returns for its shell to log; `fault=True` makes an error of it, and
`warning=True` a warning."""

EVENT = re.compile(r"[a-z][a-z_]*\.[a-z][a-z_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that logs; `names` is empty where its caller names the event."""

    names: tuple[str, ...]
    levels: frozenset[str]
    fields: frozenset[str]
    function: str  # around it
    is_action: bool  # a decision's `Log`, which a shell logs
    of_action: bool  # it logs what a decision has named: `case Log(event=event): log.info(event)`
    where: str  # FILE:LINE


def calls(tree: ast.Module, path: Path) -> Iterator[Call]:
    """Yield the calls that log, in the functions of a module."""
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
        self._actions: set[int] = set()  # ids of calls that log an action of a decision
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
        is_action = called(node) == ACTION
        if is_action:
            given = keywords(node)
            level = "error" if "fault" in given else "warning" if "warning" in given else "info"
            levels = frozenset({level})
            fields = frozenset[str]().union(*map(self._facts, node.args[1:]))
        else:
            levels, bound = self._logger(node.func)
            unpacked = (self._facts(k.value) for k in node.keywords if k.arg is None)
            fields = bound.union(keywords(node), *unpacked)
        if not levels:
            return None
        names = event_names(self._value(node.args[0])) if node.args else ()
        return Call(
            names=names,
            levels=levels,
            fields=fields,
            function=self.name,
            is_action=is_action,
            of_action=not names and id(node) in self._actions,
            where=f"{path}:{node.lineno}",
        )

    def _value(self, node: ast.expr) -> ast.expr:
        """Return what a local name stands for; any other expression as it is."""
        return self._locals.get(node.id, node) if isinstance(node, ast.Name) else node

    def _facts(self, node: ast.expr) -> Iterator[str]:
        """Yield the keys of a mapping of fields, also of one that is built before."""
        found = self._value(node)
        if isinstance(found, ast.Dict):
            for key, value in zip(found.keys, found.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value)
                elif key is None:
                    yield from self._facts(value)

    def _logger(self, node: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
        """Return the levels of a logger's method, and the bound fields; no level: it is none."""
        match self._value(node):
            case ast.Attribute(value=logger, attr=level) if level in LEVELS:
                match self._value(logger):
                    case ast.Name(id=name) if name in LOGGERS:
                        return LEVELS[level], frozenset()
                    case ast.Call(func=ast.Attribute(attr="bind")) as bind:
                        return LEVELS[level], keywords(bind)
            case ast.IfExp(body=body, orelse=orelse):
                (some, fields), (others, more) = self._logger(body), self._logger(orelse)
                return some | others, fields | more
        return frozenset(), frozenset()


def called(node: ast.Call) -> str:
    """Return the name of the function or method that is called; "" if it has none."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def event_names(node: ast.expr) -> tuple[str, ...]:
    """Return the events that an expression may be."""
    match node:
        case ast.Constant(value=str() as text) if EVENT.fullmatch(text):
            return (text,)
        case ast.IfExp(body=body, orelse=orelse):
            return event_names(body) + event_names(orelse)
    return ()


def keywords(node: ast.Call) -> frozenset[str]:
    """Return the names of the keyword arguments of a call."""
    return frozenset(k.arg for k in node.keywords if k.arg is not None)
