"""Names in the code are words of the field: the private ones of earlier versions stay out."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRIVATE = frozenset(
    {
        *("reign", "reigns", "reigning", "realm", "mandate", "depose", "deposed"),
        *("hear", "hears", "heard", "ear", "overhear", "overheard"),
        *("say", "says", "said", "tell", "tells", "told", "telling", "speak", "voice", "letter"),
        *("heir", "heirs", "newcomer", "leaver", "leavers", "forefather"),
        *("doubt", "condemn", "condemned", "vain", "comfort", "relief", "relieve", "relieved"),
        *("drift", "shelf", "holes", "spectator", "spectate", "chatter", "tether", "tethered"),
        *("picture", "canon", "ruler", "universe", "thrifty", "anew"),
        *("nobody", "everybody", "somebody", "whoever", "stranger", "strangers"),
    }
)
"""Words of earlier versions for which the field has names of its own; see docs/glossary.md."""


def words(name: str) -> Iterator[str]:
    """Yield the words of a snake_case or CamelCase name, in lower case."""
    for part in name.split("_"):
        yield from (word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", part))


def defined(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a module defines: classes, functions, arguments, variables, fields."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass


@pytest.mark.parametrize("part", ["shared", "services", "apps", "bench", "tools", "tests"])
def test_names_hold_no_private_words(part: str) -> None:
    found = []
    for file in sorted((ROOT / part).rglob("*.py")):
        path = file.relative_to(ROOT)
        names = {*defined(ast.parse(file.read_text())), *path.with_suffix("").parts}
        found += [
            f"{path}: {name}" for name in sorted(names) if not PRIVATE.isdisjoint(words(name))
        ]
    assert not found, "\n".join(found)
