"""Mutants are a function's code with one thing changed."""

from pathlib import Path
from types import FunctionType

from tools.mutants import code_of, mutants_of

TEXT = """
def largest(rates, limit):
    found: int | None = None
    for rate in rates:
        if rate < limit and (found is None or rate > found):
            found = rate
    return found
"""


def test_each_change_is_one_of_the_function(tmp_path: Path) -> None:
    file = tmp_path / "rates.py"
    file.write_text(TEXT)
    mutants = [*mutants_of(file)]
    changes = [mutant.change.removeprefix("largest: ") for mutant in mutants]
    assert {"lt is lte", "and is or", "or is and", "is is isnot", "always False"} <= {*changes}
    assert "bitor is bitand" not in changes, "types have no effect"
    assert {mutant.line for mutant in mutants} == {5, 7}
    results = []
    for mutant in mutants:
        largest = FunctionType(code_of(mutant), {"__builtins__": __builtins__})
        try:
            results.append(largest([1, 3, 5], 5))
        except TypeError:
            results.append("TypeError")
    assert results[changes.index("lt is lte")] == 5
    assert results[changes.index("None is returned")] is None
    assert results.count(3) < len(results) - 4, "most are noticed"
