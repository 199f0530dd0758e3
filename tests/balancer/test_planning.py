"""Commands get the exact solver where scipy is installed."""

import sys

import pytest

from binwright.balancer.decide.exact import ExactSolver
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.planning import solver


def test_small_clusters_are_solved_exactly_where_scipy_is_installed() -> None:
    found = solver(2.0)
    assert isinstance(found, ExactSolver)
    assert found.limit_s == 2.0


def test_without_scipy_the_search_solves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert isinstance(solver(2.0), Heuristic)
