"""Whether tests would notice: one thing in a function is changed, and those that reach it run.

    python -m tools.mutants                     # a sample of each package that decides
    python -m tools.mutants land --sample 2000 --json survivors.json

A mutant is a function's code with one comparison turned around, one condition always true or false,
one statement or keyword of `replace` left out, one number one larger. It is killed by the first
test that fails. Survivors are printed with their places: each is a change that no test of its
package notices, or that changes nothing. Coverage by test is measured first; then each mutant runs
in a fork of one process that has collected all tests, so that it costs no more than they.
"""

import argparse
import ast
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
CONSUMER = "services/consumer/binwright/consumer"
PACKAGES: Mapping[str, tuple[str, str]] = {
    "land": (f"{CONSUMER}/decide/land", "tests/consumer/decide"),
    "consumer": (f"{CONSUMER}/decide", "tests/consumer/decide"),
    "controller": ("services/controller/binwright/controller/decide", "tests/controller/decide"),
    "monitor": ("services/monitor/binwright/monitor/decide", "tests/monitor/decide"),
    "protocol": ("shared/binwright/protocol", "tests/protocol"),
    "group": ("shared/binwright/group", "tests/group"),
    "tables": ("shared/binwright/tables", "tests/tables"),
    "packing": ("shared/binwright/packing", "tests/packing"),
}
TEST_S = 5  # a test of a decision takes milliseconds: a mutant without end is killed
PROFILE = "--hypothesis-profile=mutants"
TURNED: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,  # codespell:ignore notin
    ast.NotIn: ast.In,  # codespell:ignore notin
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OTHERS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(slots=True)
class Mutant:
    """A change of a function: the `number`-th of those that can be made in it."""

    file: Path
    function: str
    number: int
    line: int
    change: str
    tests: Sequence[str] = field(default=(), repr=False)

    def __str__(self) -> str:
        """Name the place and the change."""
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.change}"


def functions(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Return functions and methods with their qualified names; not those within functions."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{prefix}{node.name}.")


def changes(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """Return what may be changed: a node, what that means, and what stands there instead."""
    inside = [node for statement in function.body for node in ast.walk(statement)]
    types = [node.annotation for node in inside if isinstance(node, ast.AnnAssign)]
    without_effect = {node for annotation in types for node in ast.walk(annotation)}
    for node in inside:
        if node not in without_effect:
            yield from ((node, *change) for change in _in_expression(node))
            yield from ((node, *change) for change in _in_statement(node))


def _in_expression(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in TURNED:
            turned = TURNED[type(op)]
            yield f"{_word(type(op))} is {_word(turned)}", _with(node, ops=[turned()])
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in TURNED and _counts(node):
            turned = TURNED[type(op)]
            yield f"{_word(type(op))} is {_word(turned)}", _with(node, op=turned())
        case ast.Call(func=ast.Name("replace"), keywords=[_, *_] as keywords):
            for at, keyword in enumerate(keywords):
                rest = keywords[:at] + keywords[at + 1 :]
                yield f"{keyword.arg} is not replaced", _with(node, keywords=rest)
        case ast.Call(func=ast.Name(name)) if name in OTHERS:
            yield f"{name} is {OTHERS[name]}", _with(node, func=ast.Name(OTHERS[name], ast.Load()))
        case ast.Constant(bool() as value):
            yield f"not {value}", ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield f"{value} is {value + 1}", ast.Constant(value + 1)


def _in_statement(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.If() | ast.IfExp():
            for value in (True, False):
                yield f"always {value}", _with(node, test=ast.Constant(value))
        case ast.comprehension(ifs=[_, *_]):
            yield "all of them", _with(node, ifs=[])
        case ast.Return(ast.expr()):
            yield "None is returned", ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue():
            yield "left out", ast.Pass()


def _word(kind: type[ast.AST]) -> str:
    return kind.__name__.lower()


def _counts(node: ast.AST) -> bool:
    """Whether it is no concatenation of text."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return not any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _with(node: Any, **parts: Any) -> Any:
    return type(node)(**{**dict(ast.iter_fields(node)), **parts})


class _Put(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        if node is self._old:
            return ast.copy_location(self._new, node)
        return self.generic_visit(node)


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Return all mutants of a module."""
    for name, function in functions(ast.parse(file.read_text()).body):
        for number, (node, change, _) in enumerate(changes(function)):
            line = getattr(node, "lineno", function.lineno)
            yield Mutant(file, name, number, line, f"{name}: {change}")


def code_of(mutant: Mutant) -> CodeType:
    """Compile the changed function."""
    tree = ast.parse(mutant.file.read_text())
    function = dict(functions(tree.body))[mutant.function]
    old, _, new = [*changes(function)][mutant.number]
    changed = ast.fix_missing_locations(_Put(old, new).visit(tree))

    def found(code: CodeType) -> Iterator[CodeType]:
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                if inner.co_qualname == mutant.function:
                    yield inner
                yield from found(inner)

    return next(found(compile(changed, str(mutant.file), "exec")))


def reached(source: Path, tests: str, home: Path) -> CoverageData:
    """Run the tests once; return which line is reached by which of them."""
    rules = home / "coverage.ini"
    rules.write_text(f"[run]\nsource = {source}\n")
    options = (f"--cov-config={rules}", "--cov", "--cov-context=test", "--cov-report=")
    subprocess.run(
        (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, tests),
        cwd=ROOT,
        env={**os.environ, "COVERAGE_FILE": str(home / "coverage")},
        stdout=sys.stderr,
        check=True,
    )
    data = CoverageData(str(home / "coverage"))
    data.read()
    return data


class Hunt:
    """A plugin of pytest: in place of all tests, it runs those that reach a mutant, in a fork."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self.survivors: list[Mutant] = []
        self._mutants = mutants
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        own: dict[tuple[str, str], FunctionType] = {}
        for one in gc.get_objects():
            if isinstance(one, FunctionType):
                own.setdefault((one.__code__.co_filename, one.__code__.co_qualname), one)
        gc.freeze()
        for mutant in self._mutants:
            function = own.get((str(mutant.file), mutant.function))
            if function is None:
                continue
            code = code_of(mutant)
            if code.co_freevars != function.__code__.co_freevars:
                continue
            child = os.fork()
            if child == 0:
                function.__code__ = code
                os._exit(self._killed([items[test] for test in mutant.tests if test in items]))
            _, status = os.waitpid(child, 0)
            if os.waitstatus_to_exitcode(status) == 0:
                self.survivors.append(mutant)
                sys.stderr.write(f"survives: {mutant}\n")
        return True

    def _killed(self, items: Sequence[pytest.Item]) -> int:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the fork: killed, too
        for item in items:
            signal.alarm(TEST_S)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self._failed:
                return 1
        return 0


def hunted(source: Path, tests: str, sample: int, seed: int) -> tuple[int, list[Mutant]]:
    """Return how many mutants were made of a package, and those that survived its tests."""
    with tempfile.TemporaryDirectory() as home:
        data = reached(source, tests, Path(home))
        found = []
        for file in sorted(source.rglob("*.py")):
            lines = data.contexts_by_lineno(str(file))
            for mutant in mutants_of(file):
                # A statement of several lines is known by its first.
                at = max((line for line in lines if line <= mutant.line), default=0)
                mutant.tests = sorted({each.split("|")[0] for each in lines.get(at, ()) if each})
                found.append(mutant)
    chance = random.Random(seed)
    chosen = chance.sample(found, min(sample, len(found)))
    hunt = Hunt(sorted(chosen, key=lambda mutant: (mutant.file, mutant.line, mutant.number)))
    quietly = ("-q", "-s", "--tb=no", "--assert=plain", "-o", "timeout=0", PROFILE)
    pytest.main([*quietly, "-p", "no:cacheprovider", "-p", "no:cov", tests], plugins=[hunt])
    return len(chosen), hunt.survivors


def main() -> int:
    """Hunt in one package, or in each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("package", nargs="?", choices=PACKAGES)
    parser.add_argument("--sample", type=int, default=300, help="of mutants of each package")
    parser.add_argument("--seed", type=int, default=1, help="draws the sample")
    parser.add_argument("--json", type=Path, help="of survivors, written there")
    asked = parser.parse_args()
    if asked.package is None:
        options = ("--sample", str(asked.sample), "--seed", str(asked.seed))
        command = (sys.executable, "-m", "tools.mutants")
        for name in PACKAGES:
            subprocess.run((*command, name, *options), check=True)
        return 0
    source, tests = PACKAGES[asked.package]
    made, survivors = hunted(ROOT / source, tests, asked.sample, asked.seed)
    sys.stdout.write(f"{asked.package}: {made - len(survivors)} of {made} mutants are killed\n")
    if asked.json:
        asked.json.write_text(json.dumps([str(mutant) for mutant in survivors], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
