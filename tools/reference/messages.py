"""The page of all messages, from the dataclasses and the comments behind their fields."""

import ast
import inspect
import io
import tokenize
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, fields
from itertools import pairwise
from types import ModuleType
from typing import Any, get_args

from tools.reference.markdown import Entry, but_common, code, common, entries

from binwright.balancer.decide.proposals import BrokerPlanRecord
from binwright.protocol import fields as aliases
from binwright.protocol import metrics, wire
from binwright.protocol.commands import Command
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.landing import OffsetRange, RangeMessage, Staged
from binwright.protocol.metadata import (
    Inbound,
    MeasuredCapacity,
    StagedShare,
    TableCompaction,
    TableOperation,
    TableRegistration,
    TableReport,
)
from binwright.protocol.metrics import Measurement, Needs, PartitionRate
from binwright.protocol.orders import BadKind, OrderRecord, SettingName, SimulatedCost
from binwright.protocol.wire import MessagePart

HEAD = """\
# Messages

Every message is a JSON object in one Kafka record; `kind` names the message and its version. A
reader skips a kind that it does not know and logs `message.unknown` once; it logs
`message.malformed` for each record that is not a message. In parentheses stand a field's type and
its default: a field with one may be missing. A *count* is an integer, an *amount* a number, of 0
or more.
[The protocol](../design/protocol.md) explains who sends what when.

A *partition* is written `orders-3`. An *epoch* names a consumer process, a *term* a controller, a
*revision* a command ([glossary](../glossary.md)). Fields that end in `_s` are seconds, those that
end in `_ms` milliseconds.
"""

TOPICS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "GROUP.metadata": (
        "Consumers and controllers write, controllers read. One partition, compacted by key.",
        get_args(Inbound),
    ),
    "GROUP.group-orders": (
        """People's commands and the page write, controllers and tables' writers read. A controller
        writes what was approved by an object of Kubernetes. One partition, compacted by key.""",
        get_args(OrderRecord),
    ),
    "GROUP.commands, partition SLOT": (
        """Controllers write, the slot's consumer reads. A consumer ignores a command of a lower
        term than the highest that it has seen, and a command that is for another epoch.""",
        get_args(Command),
    ),
    "GROUP.landing": (
        """Consumers write, tables' writers read announcements, whose key, a table, selects the
        partition. Consumers of a split partition read what is between them.""",
        (Staged, *get_args(RangeMessage)),
    ),
    "binwright.metrics": ("Monitors write, controllers read.", (Measurement,)),
    "binwright.metrics.needs": (
        "Controllers write, monitors read. The topic is compacted by key.",
        (Needs,),
    ),
    "binwright.plans": (
        """The scaler writes, the assignors in the members of ordinary consumer groups read. The
        topic is compacted by key.""",
        (GroupPlan,),
    ),
    "binwright.brokers": (
        """Balancers with `brokers.mode` `approve` or `act` and people's commands write and read.
        Records are kept for 30 days.""",
        get_args(BrokerPlanRecord),
    ),
}
"""Each topic, what it is, and the messages in it."""

SHARED_MEANING = {"Epoch", "Revision", "SlotNumber", "Term"}
"""Types whose fields are the same thing everywhere."""

TYPES = {
    "Amount": "amount",
    "BadKind": " or ".join(map(code, get_args(BadKind))),
    "ConditionText": "text, 10 000 characters at most",
    "Consumers": "integer ≥ 1",
    "Epoch": "integer",
    "KnownOffsets": "partition → offset or null",
    "Moment": "count",
    "None": "null",
    "FieldName": "text, 200 characters at most",
    "FileName": "string",
    "Number": "count",
    "Offset": "count",
    "OperationId": "text of 32 hexadecimal digits",
    "Offsets": "partition → offset",
    "Partition": "partition",
    "PartitionNumber": "count",
    "PersonName": "text, 200 characters at most",
    "Quality": " or ".join(map(code, get_args(metrics.Quality))),
    "Rate": "amount",
    "Reason": "text, 500 characters at most",
    "Revision": "integer",
    "SettingName": " or ".join(map(code, get_args(SettingName))),
    "SettingValue": "text, 100 characters at most",
    "SlotNumber": "count",
    "Staged": "[staged/1](#staged1)",
    "Term": "integer",
    "TopicName": "string",
    "bool": "boolean",
    "int": "count",
    "str": "text",
}


def page() -> str:
    """Return the reference, in Markdown."""
    shared = common(_entries(kind) for _, kinds in TOPICS.values() for kind in kinds)
    lines = [HEAD, f"## Fields of many messages\n\n{entries(shared)}"]
    for topic, (what, found) in TOPICS.items():
        lines.append(f"## {topic}\n\n{' '.join(what.split())}\n")
        lines += [_message(each, _key(each), shared) for each in found]
    lines.append("## Parts\n\nA message above 900 kB is sent as several records of this kind.\n")
    lines.append(_message(MessagePart, "part/KEY/NUMBER"))
    lines.append("## Inside other messages\n")
    inside = (
        *(TableReport, TableCompaction, TableRegistration, TableOperation),
        *(MeasuredCapacity, StagedShare),
        *(SimulatedCost, OffsetRange, PartitionRate),
    )
    for each in inside:
        lines.append(f"### {each.__name__}\n\n{_text(each)}\n\n{entries(_entries(each))}")
    lines.append(f"`quality` is one of:\n\n{_qualities()}")
    return "\n".join(lines)


def _message(kind: type[Any], key: str, shared: Collection[Entry] = ()) -> str:
    (name,) = get_args(kind.__annotations__["kind"])
    fields_of = but_common(list(_entries(kind)), shared)
    return f"### {name}\n\n{_text(kind)} Key: {code(key)}.\n\n{fields_of}"


def _key(kind: type[Any]) -> str:
    """Return the record key, with the names of the fields that are in it."""
    wanted = (f.name for f in fields(kind) if f.default is MISSING)
    return wire.key(kind(**{name: name.upper() for name in wanted})).decode()


def _text(kind: type[Any]) -> str:
    return " ".join((inspect.getdoc(kind) or "").replace(" (†)", "").split())


def _entries(kind: type[Any]) -> Iterator[Entry]:
    source = inspect.getsource(kind)
    comments = _comments(source)
    (body,) = (node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    for node in body:
        if not isinstance(node, ast.AnnAssign):
            continue
        if (name := ast.unparse(node.target)) in ("kind", "KEY"):
            continue
        meaning = comments.get(node.lineno) or _alias_meaning(node.annotation)
        if not meaning:
            raise ValueError(f"{kind.__name__}.{name}: no comment says what it is")
        yield code(name), (_type(node.annotation), _default(node.value)), _sentence(meaning)


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = (t for t in tokens if t.type == tokenize.COMMENT)
    return {t.start[0]: t.string.removeprefix("#").strip() for t in found}


def _alias_meaning(annotation: ast.expr) -> str:
    """Return what stands below the type's alias in `fields`, where that says what a field is."""
    name = ast.unparse(annotation)
    return _below(aliases, name) if name in SHARED_MEANING else ""


def _below(module: ModuleType, name: str) -> str:
    """Return the docstring of an assignment, if it has one."""
    body = ast.parse(inspect.getsource(module)).body
    for node, after in pairwise(body):
        named = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return " ".join(str(after.value.value).split())
    return ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _default(value: ast.expr | None) -> str:
    match value:
        case None | ast.Call():  # a call: the bounds of a field without a default
            return ""
        case ast.Tuple():
            return code("[]")
        case ast.Constant(value=None):
            return code("null")
        case ast.Constant(value=bool() as flag):
            return code(str(flag).lower())
        case _:
            return code(ast.unparse(value).replace("'", '"'))


def _type(annotation: ast.expr) -> str:
    match annotation:
        case ast.BinOp(left=left, right=right):
            return f"{_type(left)} or {_type(right)}"
        case ast.Subscript(value=ast.Name(id="Mapping"), slice=ast.Tuple(elts=[key, value])):
            return f"{_type(key)} → {_type(value)}"
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[item, _])):
            return f"array of {_type(item)}"
        case ast.Subscript(value=ast.Name(id="Literal"), slice=values):
            found = ast.literal_eval(values)
            return " or ".join(map(code, (found,) if isinstance(found, str) else found))
        case _:
            name = ast.unparse(annotation)
            return TYPES.get(name, f"[{name}](#{name.lower()})")


def _qualities() -> str:
    found = {name.strip(): text for name, text in _pairs(_below(metrics, "Quality"))}
    return entries((code(n), (), _sentence(t)) for n, t in found.items())


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for sentence in text.split(". "):
        name, colon, meaning = sentence.partition(": ")
        if colon:
            yield name, meaning
